public import Foundation
import Glibc
import Synchronization

/// Serves HTTP/1.1 on a free port of 127.0.0.1, one request per connection.
///
/// ```swift
/// let server = LoopbackServer(router: Router(BlogRoutes()))
/// try server.start()
/// defer { server.stop() }
/// let (data, _) = try await URLSession.shared.data(from: server.baseURL.appending(path: "posts"))
/// ```
public final class LoopbackServer: Sendable {
  private let handler: RequestHandler
  private let state = Mutex(State())

  private struct State {
    var listener: Listener?
    var port: UInt16?
  }

  /// Creates a server, which does nothing until it is started.
  public init(
    router: Router, behaviour: ServerBehaviour = ServerBehaviour(),
    limits: ServerLimits = ServerLimits()
  ) {
    handler = RequestHandler(router: router, behaviour: behaviour, limits: limits)
  }

  deinit { stop() }

  /// The root of all paths, with the port of the latest start.
  ///
  /// - Precondition: The server has been started.
  public var baseURL: URL {
    guard let port = state.withLock({ $0.port }),
      let url = URL(string: "http://127.0.0.1:\(port)")
    else {
      preconditionFailure("Start the server before you ask for its URL.")
    }
    return url
  }

  /// Opens a port and begins to accept connections, or throws a `ServerError`.
  public func start() throws {
    try state.withLock { state in
      guard state.listener == nil else { throw ServerError.alreadyRunning }
      let listener = try Listener(serve: handler.serve)
      state.listener = listener
      state.port = listener.port
    }
  }

  /// Closes all connections, and returns when every thread has closed its socket.
  ///
  /// It waits for running handlers, so a handler must not call it. A stopped server can
  /// start again, and a second stop does nothing.
  public func stop() {
    let listener = state.withLock { $0.listener.take() }
    listener?.stop()
  }

  /// Returns the number of requests to a path so far, or to all paths that match `/posts/:id`.
  public func requestCount(for path: String) -> Int {
    handler.counts.withLock { $0.total(for: RoutePattern(path)) }
  }
}

/// The limits of what one client can use.
public struct ServerLimits: Sendable {
  /// The limit of the request line and the header fields together, in bytes.
  public var headSize: Int
  /// The limit of the request body, in bytes.
  public var bodySize: Int
  /// The limit of the time to receive a whole request, and of the time to send the whole response.
  public var timeout: Duration

  /// Creates limits that are sufficient for an example program.
  public init(
    headSize: Int = 16 * 1024, bodySize: Int = 1024 * 1024, timeout: Duration = .seconds(5)
  ) {
    self.headSize = headSize
    self.bodySize = bodySize
    self.timeout = timeout
  }
}

/// The reasons for which a server cannot run.
public enum ServerError: Error, Equatable, CustomStringConvertible {
  /// A second `start()` without a `stop()`.
  case alreadyRunning
  /// The system call that failed, with its `errno`.
  case system(call: String, code: Int32)

  /// A description of the error in a sentence.
  public var description: String {
    switch self {
    case .alreadyRunning:
      "The server is running already."
    case .system(let call, let code):
      "The call of \(call) failed: \(String(cString: strerror(code)))."
    }
  }
}
