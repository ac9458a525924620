import Foundation
import Glibc
import Operation
import Synchronization
import Testing

/// A child process that is stopped and continued, in a process group of its own.
///
/// Its calls block, so a test makes them on a thread: see ``run(_:isOrphaned:_:)``.
final class SignalChildProcess: Sendable {
  /// The error of a call when the child writes nothing for a minute.
  struct Stuck: Error {}

  private let pid: pid_t
  private let input: Int32
  private let output: Int32
  private let buffer = Mutex("")

  /// Runs `body` with a child on a thread of its own, and ends the child.
  ///
  /// - Parameter isOrphaned: Whether the child has a session of its own, in which no shell can
  ///   continue it.
  static func run<Output: Sendable>(
    _ arguments: [String], program: String = "SignalChild", isOrphaned: Bool = false,
    _ body: @escaping @Sendable (SignalChildProcess) throws -> Output
  ) async throws -> Output {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let child = try SignalChildProcess(program, arguments, isOrphaned: isOrphaned)
            defer { child.end() }
            return try body(child)
          })
      }
    }
  }

  private init(_ name: String, _ arguments: [String], isOrphaned: Bool) throws {
    // The build puts the executables of a package beside its tests.
    let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    let program = tests.deletingLastPathComponent().appending(path: name).path()
    var (ends, pid) = ([Int32](repeating: -1, count: 2), pid_t())
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    var (files, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
    posix_spawn_file_actions_init(&files)
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO)
    posix_spawnattr_init(&attributes)
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for number in [SIGTSTP, SIGCONT] { sigaddset(&signals, number) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // A group of its own in the session of the tests is not orphaned, so the kernel stops it.
    let group = isOrphaned ? 0x80 /* POSIX_SPAWN_SETSID */ : POSIX_SPAWN_SETPGROUP
    posix_spawnattr_setflags(
      &attributes, Int16(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    let result = posix_spawn(&pid, program, &files, &attributes, &words, environ)
    for word in words { free(word) }
    posix_spawnattr_destroy(&attributes)
    posix_spawn_file_actions_destroy(&files)
    close(ends[1])
    self.pid = pid
    input = ends[0]
    output = ends[0]
    try #require(result == 0, "posix_spawn of \(program)")
  }

  func send(_ signal: Int32) { kill(pid, signal) }

  /// Writes a line to the input of the child.
  func reply(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    // A child that has ended reads nothing.
    _ = Glibc.send(input, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Ends one wait of the child for its input.
  func resume() { _ = write(input, "\n", 1) }

  /// Waits until the child is stopped, and returns the signal that stopped it.
  func waitUntilStopped() -> Int32? {
    let status = wait(WUNTRACED)
    return status & 0xff == 0x7f ? status >> 8 & 0xff : nil
  }

  func waitUntilContinued() -> Bool {
    wait(0x8 /* WCONTINUED */) == 0xffff
  }

  /// The next line, or `nil` where the output ends.
  func line() throws -> String? {
    while true {
      let line = buffer.withLock { text -> String? in
        guard let end = text.firstIndex(of: "\n") else { return nil }
        defer { text.removeSubrange(...end) }
        return String(text[..<end])
      }
      if let line { return line }
      guard try readMore(within: 60_000 * Int32(patience)) else { return nil }
    }
  }

  func lines(_ count: Int) throws -> [String] {
    try (0..<count).compactMap { _ in try line() }
  }

  /// Waits for a line, and returns whether there is one to read.
  func hasLine(within milliseconds: Int32 = 0) -> Bool {
    if !buffer.withLock({ $0.contains("\n") }) { _ = try? readMore(within: milliseconds) }
    return buffer.withLock { $0.contains("\n") }
  }

  private func readMore(within milliseconds: Int32) throws -> Bool {
    var polled = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
    guard poll(&polled, 1, milliseconds) > 0 else { throw Stuck() }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(output, &bytes, bytes.count)
    guard count > 0 else { return false }
    buffer.withLock { $0 += String(decoding: bytes[..<count], as: UTF8.self) }
    return true
  }

  private func wait(_ options: Int32) -> Int32 {
    var status: Int32 = 0
    return waitpid(pid, &status, options) == pid ? status : -1
  }

  private func end() {
    send(SIGKILL)
    send(SIGCONT)
    _ = wait(0)
    close(input)
  }
}
