import Glibc

/// The streams of the program: tables go to standard output, everything else to standard error.
enum StandardStreams {
  static func output(_ text: String) { write(text, to: STDOUT_FILENO) }
  static func error(_ text: String) { write(text, to: STDERR_FILENO) }

  private static func write(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return }
    }
  }
}

/// The progress of a run, on standard error. On a terminal, each line replaces the one before.
final class Progress {
  private let total: Int
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var done = 0

  init(total: Int) {
    self.total = total
  }

  func begin(_ label: String) {
    done += 1
    let line = "[\(done)/\(total)] \(label)"
    StandardStreams.error(isTerminal ? "\r\u{1B}[2K\(line)" : line + "\n")
  }

  func end() {
    if isTerminal { StandardStreams.error("\r\u{1B}[2K") }
  }
}
