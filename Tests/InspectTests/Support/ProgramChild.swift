import Foundation
import Glibc
import Testing

@testable import inspect

/// A child process that is read line by line.
final class ProgramChild {
  private let pid: pid_t
  private let output: Descriptor
  private var lines = LineBuffer()
  private var hasEnded = false

  /// Starts a program.
  ///
  /// - Parameter descriptors: The descriptors 0, 1 and so on of the child. A missing one up to 2 is
  ///   the null device, except for standard output, which this object then reads.
  /// - Parameter readsErrors: Whether this object reads the lines of standard error as well.
  init(
    _ words: [String], environment: [String: String] = [:], descriptors: [Int32: Descriptor] = [:],
    readsErrors: Bool = false
  ) throws {
    let (own, childs) = try Descriptor.pair()
    output = own
    var (files, pid) = (posix_spawn_file_actions_t(), pid_t())
    posix_spawn_file_actions_init(&files)
    // Above the descriptors of the child, so that no copy closes the source of another one.
    var sources: [Descriptor] = []
    for (target, descriptor) in descriptors.merging(
      [STDOUT_FILENO: childs], uniquingKeysWith: { $1 })
    {
      let source = Descriptor(owning: fcntl(descriptor.number, F_DUPFD_CLOEXEC, 20))
      sources.append(source)
      posix_spawn_file_actions_adddup2(&files, source.number, target)
    }
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0)
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_RDWR, 0)
    if readsErrors { posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO) }
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    var argv = words.map { strdup($0) } + [nil]
    var envp = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    var (attributes, signals) = (posix_spawnattr_t(), sigset_t())
    posix_spawnattr_init(&attributes)
    // The threads of the tests block the signals.
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    let result = posix_spawn(&pid, words[0], &files, &attributes, &argv, &envp)
    for pointer in argv + envp { free(pointer) }
    posix_spawnattr_destroy(&attributes)
    posix_spawn_file_actions_destroy(&files)
    withExtendedLifetime(sources) {}
    try #require(result == 0, "posix_spawn of \(words[0])")
    self.pid = pid
  }

  deinit {
    guard !hasEnded else { return }
    kill(pid, SIGTERM)
    waitpid(pid, nil, 0)
  }

  func send(_ signal: Int32) { kill(pid, signal) }

  /// Waits for the next line of standard output; returns `nil` at its end.
  func line() throws -> String? {
    while true {
      if let line = lines.next() { return String(decoding: line, as: UTF8.self) }
      try wait(output, for: "a line")
      guard case .bytes(let bytes) = output.read() else { return nil }
      lines.append(bytes)
    }
  }

  /// Waits for the end, and returns the exit status.
  func waitForEnd() throws -> Int32 {
    while try line() != nil {}
    var status: Int32 = 0
    try #require(waitpid(pid, &status, 0) == pid)
    hasEnded = true
    return status >> 8 & 0xFF
  }
}
