import Foundation
import Synchronization

/// Serves one connection: reads the request, counts it, waits for the latency, and responds.
final class RequestHandler: Sendable {
  let counts = Mutex(RequestCounts())

  private let router: Router
  private let behaviour: ServerBehaviour
  private let limits: ServerLimits

  init(router: Router, behaviour: ServerBehaviour, limits: ServerLimits) {
    self.router = router
    self.behaviour = behaviour
    self.limits = limits
  }

  func serve(_ connection: Connection) {
    do {
      try answerOne(on: connection)
    } catch {
      // The client has disconnected, or the server stops. No response can be sent.
    }
  }

  private func answerOne(on connection: Connection) throws {
    var reader = RequestReader(connection, limits: limits)
    do {
      guard let request = try reader.read() else { return }
      let (response, length) = try respond(to: request, on: connection)
      let bytes = response.bytes(includingBody: request.method != "HEAD")
      try connection.send(bytes.prefix(length), before: .now + limits.timeout)
    } catch let error as HTTPError {
      let deadline = ContinuousClock.now + limits.timeout
      try connection.send(Response(error).bytes(includingBody: true), before: deadline)
      try connection.finishAndDrain(before: deadline)
    }
  }

  /// Returns the response, and the number of its bytes to send.
  private func respond(
    to request: Request, on connection: Connection
  ) throws -> (Response, length: Int) {
    let path = request.segments
    // Decided on arrival, so that the order of concurrent responses does not matter.
    let fault = counts.withLock { counts in
      counts.add(path)
      return behaviour.fault(at: path, counts: counts)
    }
    try connection.pause(for: behaviour.latency(at: path))
    switch fault?.kind {
    case nil: return (router.respond(to: request), .max)
    case .status(let status): return (.status(status, "This failure is planned."), .max)
    case .hangUp(let length): return (router.respond(to: request), length)
    }
  }
}

/// Reads one request from a connection, within the limits of the server.
struct RequestReader {
  private let connection: Connection
  private let limits: ServerLimits
  private let deadline: ContinuousClock.Instant
  private var buffer: [UInt8] = []

  init(_ connection: Connection, limits: ServerLimits) {
    self.connection = connection
    self.limits = limits
    deadline = .now + limits.timeout
  }

  /// Returns the request, or nil if the client disconnected without sending anything.
  mutating func read() throws -> Request? {
    guard let bytes = try readHead() else { return nil }
    let head = try RequestHead(parsing: bytes)
    let length = try head.bodyLength(atMost: limits.bodySize)
    // A client may wait for this before it sends a long body.
    if length > buffer.count, head.headers["Expect"]?.lowercased() == "100-continue" {
      try connection.send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8), before: deadline)
    }
    return Request(head: head, body: try readBody(length))
  }

  private mutating func readHead() throws -> ArraySlice<UInt8>? {
    let blankLine = Array("\r\n\r\n".utf8)
    while true {
      let end = buffer.firstRange(of: blankLine)
      guard (end?.lowerBound ?? buffer.count) <= limits.headSize else {
        throw HTTPError(431, "The request head must not exceed \(limits.headSize) bytes.")
      }
      if let end {
        defer { buffer.removeSubrange(..<end.upperBound) }
        return buffer[..<end.lowerBound]
      }
      guard try receive() else {
        if buffer.isEmpty { return nil }
        throw HTTPError(400, "The request head is incomplete.")
      }
    }
  }

  private mutating func readBody(_ length: Int) throws -> Data {
    while buffer.count < length {
      guard try receive() else {
        throw HTTPError(400, "The body is shorter than its Content-Length.")
      }
    }
    return Data(buffer.prefix(length))
  }

  /// Appends the next bytes, and returns false at the end of the stream.
  private mutating func receive() throws -> Bool {
    let chunk = try connection.receive(before: deadline)
    buffer += chunk
    return !chunk.isEmpty
  }
}
