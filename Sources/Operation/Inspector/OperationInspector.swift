import ReactiveStreams
import Synchronization

/// A socket at which other programs of the same user can inspect a client.
///
/// ```swift
/// let inspector = try client.serveInspector()
/// print("inspect \(inspector.path)")
/// ```
///
/// It ends when it is cancelled or deallocated, when the client is shut down, and when the client is
/// deallocated. It does not keep the client alive.
public final class OperationInspector: Sendable {
  private let server: InspectorServer
  private weak let client: OperationClient?

  /// The path of the socket.
  public var path: String { server.socket.path }

  init(_ server: InspectorServer, of client: OperationClient) {
    self.server = server
    self.client = client
  }

  /// Ends the inspector, and removes its socket. A second call does nothing.
  ///
  /// When this returns, no program can connect any more. A description in progress may still end.
  public func cancel() {
    server.cancel(because: "The program has ended the inspector.")
    let ended = client?.inspection.withLock { present in
      present?.inspector == ObjectIdentifier(self) ? present.take() : nil
    }
    withExtendedLifetime(ended) {}
  }

  deinit { cancel() }
}

extension OperationClient {
  /// Serves an inspector of this client on a Unix domain socket, until the returned object is released.
  ///
  /// The socket speaks lines of JSON: all stores first, then what changes, and commands to fetch,
  /// invalidate, reset, cancel and clear a store, and to work as if offline. Only processes of the same
  /// user can connect, at most 16 at once. It listens on no network.
  ///
  /// A command is performed on the thread of the inspector, and so are the handlers that it causes to be
  /// called.
  ///
  /// Until a program has connected, nothing is collected. Then a thread of the inspector describes the
  /// stores that have changed, ten times a second. A reader that is slow gets the newest state of each
  /// store, and the number of results and events that it has missed. It never delays this program.
  ///
  /// - Parameters:
  ///   - path: The path of the socket. A socket of this user that no program serves is replaced. By
  ///     default it is a new one in `swift-operation` in the directory `XDG_RUNTIME_DIR` of the
  ///     environment, or, if that is not set, in a private directory below `TMPDIR` or `/tmp`.
  ///     A variable that is no absolute path is not used. The socket at a relative path is removed at the
  ///     end only if the program has not changed its directory since.
  ///   - name: The name of the client that `inspect` displays.
  ///   - readOnly: Whether commands that change something are refused; `false` by default.
  ///   - valueLimit: The length up to which a value is described, in bytes of UTF-8; 10,000 by default.
  ///     A number below one is reported, and one is used. In a list, descriptions have at most 120
  ///     bytes.
  ///   - redacting: Returns what is shown in place of the description of a value, a failure, an argument
  ///     or a page; `nil` hides it. It is called on the thread of the inspector with no lock held, and
  ///     so are the descriptions of values. A description that is longer than `valueLimit` is cut
  ///     before. Paths are not redacted.
  /// - Throws: An error that says why the client cannot be served.
  public func serveInspector(
    at path: String? = nil, named name: String? = nil, readOnly: Bool = false,
    valueLimit: Int = 10_000,
    redacting: (@Sendable (_ path: OperationPath, _ description: String) -> String?)? = nil
  ) throws(OperationInspectorError) -> OperationInspector {
    let limit = valueLimit.checkedLimit(for: "The length of a description")
    return try serveInspector(
      at: path,
      InspectorServer.Options(
        name: name, isReadOnly: readOnly,
        describer: InspectorDescriber(limit: limit, redacting: redacting)))
  }

  func serveInspector(
    at path: String?, _ options: InspectorServer.Options
  ) throws(OperationInspectorError) -> OperationInspector {
    if hub.isClosed { throw .clientShutDown }
    let server = try InspectorServer(at: path, options, started: clock.now())
    let inspector = OperationInspector(server, of: self)
    // The inspector does not hold it, so that it ends with the client.
    let end = OperationSubscription { server.cancel(because: "The client has ended.") }
    let id = ObjectIdentifier(inspector)
    let isFree = inspection.withLock { present in
      if present == nil { present = (id, end) }
      return present?.inspector == id
    }
    guard isFree else { throw .alreadyServed }
    // A shutdown in between has not found it.
    if hub.isClosed { throw .clientShutDown }
    try server.start(for: self)
    return inspector
  }
}
