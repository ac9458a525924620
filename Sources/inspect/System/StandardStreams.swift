import Glibc

/// The standard streams of the process.
enum StandardStreams {
  /// Opens the null device where a stream is closed; the first socket would take its number.
  static func open() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
      _ = Glibc.open("/dev/null", O_RDWR)
    }
    // A closed pipe is then an error of `write`, and not the end of the process.
    signal(SIGPIPE, SIG_IGN)
  }

  /// Writes to standard output. The process ends with success if nobody reads it any more.
  static func output(_ text: String) {
    if write(text, to: STDOUT_FILENO) { return }
    _exit(errno == EPIPE ? EXIT_SUCCESS : EXIT_FAILURE)
  }

  /// Writes to standard error.
  static func error(_ text: String) { write(text, to: STDERR_FILENO) }

  /// Writes all of a text, and returns whether it could.
  @discardableResult
  static func write(_ text: String, to descriptor: Int32) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, -1)
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
