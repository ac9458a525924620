/// The reason why a client cannot be inspected.
public enum OperationInspectorError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The client is served already.
  case alreadyServed
  /// The client was shut down.
  case clientShutDown
  /// The path is longer than that of a socket can be, in bytes.
  case pathTooLong(path: String, limit: Int)
  /// The directory is not a directory of this user that no other user can access.
  case unsafeDirectory(path: String)
  /// A program serves there now.
  case occupied(path: String)
  /// There is a file that is not a socket, or a socket of another user.
  case foreignFile(path: String)
  /// A system call failed with this value of `errno`.
  case system(path: String, code: Int32)

  /// A sentence that names the path and the reason.
  public var description: String {
    switch self {
    case .alreadyServed: "The client is served by another inspector already."
    case .clientShutDown: "The client was shut down, and cannot be inspected any more."
    case .pathTooLong(let path, let limit):
      "\(path) is too long for the path of a socket, which has at most \(limit) bytes."
    case .unsafeDirectory(let path):
      "\(path) is not a directory of this user that no other user can access."
    case .occupied(let path): "A program serves an inspector at \(path)."
    case .foreignFile(let path):
      "\(path) is not a socket of this user; it is not replaced."
    case .system(let path, let code): "\(path): \(SystemError(code: code).text)."
    }
  }
}
