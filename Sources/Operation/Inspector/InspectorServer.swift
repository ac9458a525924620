import FoundationEssentials
import Glibc
import Synchronization

/// An inspector: its socket, and the thread that serves it.
///
/// The lock guards the reason for the end. The thread owns everything else that changes. It calls code
/// of the user, so nothing waits for it.
final class InspectorServer: Sendable {
  struct Options: Sendable {
    var name: String?
    var isReadOnly = false
    var describer: InspectorDescriber
    /// The user whose processes can connect.
    var user = geteuid()
  }

  let socket: InspectorSocket
  let options: Options
  let started: Date
  /// It can be read when the inspector has ended.
  let end: FileDescriptor
  private let endSender: FileDescriptor
  private let reason = Mutex<String?>(nil)

  /// - Parameter path: The path of the socket; `nil` for one in the private directory.
  init(at path: String?, _ options: Options, started: Date) throws(OperationInspectorError) {
    let path = if let path { path } else { try Self.newPath() }
    do throws(SystemError) { (end, endSender) = try FileDescriptor.pair() } catch {
      throw .system(path: path, code: error.code)
    }
    socket = try InspectorSocket(at: path)
    self.options = options
    self.started = started
  }

  private static let count = Atomic(0)

  /// The name of the program, for the path and the peers.
  static let program =
    CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "program"

  private static func newPath() throws(OperationInspectorError) -> String {
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    let name = "\(shortened(program))-\(getpid())-\(number)"
    return "\(try InspectorSocket.directory())/\(name).sock"
  }

  /// Returns the name of a program as a part of the path of a socket, which has at most 107 bytes.
  static func shortened(_ program: String) -> String {
    // A character that is cut becomes one of three bytes.
    String(decoding: program.replacing(" ", with: "-").utf8.prefix(40), as: UTF8.self)
  }

  /// Starts the thread. If this throws, the inspector is released, which ends this.
  func start(for client: OperationClient) throws(OperationInspectorError) {
    do throws(SystemError) {
      let thread = try PosixThread { [weak client] in
        // Without a reference that keeps the client alive.
        var loop = client.map { InspectorLoop(self, $0) }
        loop?.run()
      }
      thread.detach()
    } catch {
      throw .system(path: socket.path, code: error.code)
    }
  }

  /// Why the inspector has ended; `nil` before.
  var endReason: String? { reason.withLock { $0 } }

  /// Ends the inspector. When this returns, its file is removed.
  func cancel(because reason: String) {
    // Under the lock, so that a second call does not return before the file is removed.
    self.reason.withLock { present in
      if present != nil { return }
      present = reason
      socket.remove()
      shutdown(endSender.number, Int32(SHUT_WR))
    }
  }
}
