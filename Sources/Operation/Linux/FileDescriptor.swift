import Glibc

/// An open file descriptor, which is closed when the last reference is released.
final class FileDescriptor: Sendable {
  let number: Int32

  /// - Parameter number: The result of `open` or `socket`; negative where that failed.
  init(_ number: Int32) { self.number = number }

  deinit { if number >= 0 { close(number) } }
}

/// An error of a system call: the `errno` after it.
struct SystemError: Error {
  var code = errno

  /// The text of the system for the error.
  var text: String { String(cString: strerror(code)) }
}
