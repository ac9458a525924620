import Glibc

/// An open file descriptor, which is closed when the last reference is released.
final class FileDescriptor: Sendable {
  let number: Int32

  /// - Parameter number: The result of `open` or `socket`; negative where that failed.
  init(_ number: Int32) { self.number = number }

  deinit { if number >= 0 { close(number) } }

  /// Returns a connected pair of sockets. The first one can be read when the second one was shut down.
  static func pair() throws(SystemError) -> (FileDescriptor, FileDescriptor) {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemError() }
    return (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
  }
}

/// An error of a system call: the `errno` after it.
struct SystemError: Error {
  var code = errno

  /// The text of the system for the error.
  var text: String { String(cString: strerror(code)) }
}
