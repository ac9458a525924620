import Foundation
import Glibc
import Testing

@testable import inspect

/// The program `inspect` in a pseudo-terminal: the test types and reads at the other end.
final class TerminalChild {
  private let pid: pid_t
  private let keyboard: Descriptor
  private let terminal: Descriptor
  private var undecoded: [UInt8] = []
  private(set) var screen: VirtualTerminal
  private var hasEnded = false

  /// Returns the path of a program of this package. The build writes it beside the tests.
  static func program(_ name: String) -> String {
    let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    return tests.deletingLastPathComponent().appending(path: name).path()
  }

  init(
    _ arguments: [String], in runtime: TemporaryFolder, columns: Int = 80, rows: Int = 24,
    environment: [String] = [], hasSize: Bool = true
  ) throws {
    keyboard = Descriptor(owning: open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC))
    // The same as `unlockpt` and `ptsname`, whose declarations are not imported.
    var (lock, number): (Int32, UInt32) = (0, 0)
    try #require(ioctl(keyboard.number, 0x4004_5431, &lock) == 0)
    try #require(ioctl(keyboard.number, 0x8004_5430, &number) == 0)
    let path = "/dev/pts/\(number)"
    // The terminal stays open, so that its mode can be read after the program's end.
    terminal = Descriptor(owning: open(path, O_RDWR | O_NOCTTY | O_CLOEXEC))
    screen = VirtualTerminal(columns: columns, rows: rows)
    var size = winsize(
      ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    if hasSize { try #require(ioctl(keyboard.number, UInt(TIOCSWINSZ), &size) == 0) }
    let words = [Self.program("inspect")] + arguments
    let variables =
      ["XDG_RUNTIME_DIR=\(runtime.path)", "TERM=xterm-256color", "LANG=C.UTF-8"] + environment
    pid = try Self.spawn(words, variables, terminal: path)
  }

  private static func spawn(
    _ words: [String], _ variables: [String], terminal: String
  ) throws -> pid_t {
    var (files, attributes, pid) = (posix_spawn_file_actions_t(), posix_spawnattr_t(), pid_t())
    posix_spawn_file_actions_init(&files)
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, terminal, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO)
    posix_spawnattr_init(&attributes)
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    // POSIX_SPAWN_SETSID: the terminal that the child opens first becomes that of its session.
    posix_spawnattr_setflags(&attributes, Int16(0x80 | POSIX_SPAWN_SETSIGMASK))
    var argv = words.map { strdup($0) } + [nil]
    var envp = variables.map { strdup($0) } + [nil]
    let result = posix_spawn(&pid, words[0], &files, &attributes, &argv, &envp)
    for pointer in argv + envp { free(pointer) }
    posix_spawnattr_destroy(&attributes)
    posix_spawn_file_actions_destroy(&files)
    try #require(result == 0, "posix_spawn of \(words[0])")
    return pid
  }

  deinit {
    guard !hasEnded else { return }
    kill(pid, SIGKILL)
    waitpid(pid, nil, 0)
  }

  func type(_ text: String) throws {
    try #require(StandardStreams.write(text, to: keyboard.number))
  }

  func send(_ signal: Int32) { kill(pid, signal) }

  func resize(columns: Int, rows: Int) throws {
    screen.resize(columns: columns, rows: rows)
    var size = winsize(
      ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    try #require(ioctl(keyboard.number, UInt(TIOCSWINSZ), &size) == 0)
  }

  /// Reads the output until the screen satisfies a condition.
  func wait(_ what: String = "the screen", until isShown: (VirtualTerminal) -> Bool) throws {
    let deadline = Time.monotonic + 60
    while !isShown(screen) {
      var poll = Poll()
      poll.add(keyboard)
      poll.wait(60)
      guard poll.canRead(keyboard), Time.monotonic < deadline else {
        throw Stuck(description: "waited for \(what); the screen is:\n\(screen.text)")
      }
      guard case .bytes(let bytes) = keyboard.read() else {
        throw Stuck(description: "ended, waiting for \(what); the screen is:\n\(screen.text)")
      }
      undecoded += bytes
      // A character can be in two reads.
      let end = undecoded.lastIndex { $0 & 0xC0 != 0x80 } ?? 0
      let isComplete = String(validating: undecoded[end...], as: UTF8.self) != nil
      let complete = isComplete ? undecoded[...] : undecoded[..<end]
      screen.feed(String(decoding: complete, as: UTF8.self))
      undecoded.removeFirst(complete.count)
    }
  }

  func wait(for text: String) throws {
    try wait("'\(text)'") { $0.text.contains(text) }
  }

  /// Waits for the end, and returns the exit status.
  func waitForEnd() throws -> Int32 {
    try wait("the main screen") { !$0.isAlternate }
    var status: Int32 = 0
    try #require(waitpid(pid, &status, 0) == pid)
    hasEnded = true
    return status >> 8 & 0xFF
  }

  /// Waits until the program is stopped, and returns the signal.
  func waitUntilStopped() -> Int32? {
    var status: Int32 = 0
    guard waitpid(pid, &status, WUNTRACED) == pid, status & 0xFF == 0x7F else { return nil }
    return status >> 8 & 0xFF
  }

  /// A Boolean value that indicates whether the terminal echoes its input and reads whole lines.
  var isInOriginalMode: Bool {
    var mode = termios()
    tcgetattr(terminal.number, &mode)
    return mode.c_lflag & tcflag_t(ICANON | ECHO) == tcflag_t(ICANON | ECHO)
  }
}
