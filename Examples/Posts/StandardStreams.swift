import Glibc

enum StandardStreams {
  /// Puts the null device where a stream is closed, or else the first socket would take its number.
  static func open() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
      _ = Glibc.open("/dev/null", O_RDWR)
    }
  }

  /// Writes to standard output.
  ///
  /// When the reader has closed the pipe, as with `posts | head -1`, the process ends with success.
  static func output(_ text: String) {
    switch write(text, to: STDOUT_FILENO) {
    case 0:
      return
    case EPIPE:
      _exit(EXIT_SUCCESS)
    case let code:
      error("posts: cannot write: \(String(cString: strerror(code)))\n")
      _exit(EXIT_FAILURE)
    }
  }

  /// Writes to standard error.
  static func error(_ text: String) {
    _ = write(text, to: STDERR_FILENO)
  }

  /// Writes all of a text, and returns 0 or the `errno` of the failure.
  private static func write(_ text: String, to descriptor: Int32) -> Int32 {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }
}
