import Foundation
import FoundationNetworking
import Glibc
import Testing

@testable import LoopbackServer

/// Runs a server without latency for the time of the closure.
///
/// The closures of the tests say `async throws`, because the compiler does not look for a `try`
/// within `#expect`.
func withServer(
  _ router: Router = Router(BlogRoutes()), behaviour: ServerBehaviour? = nil,
  limits: ServerLimits = ServerLimits(), _ body: (LoopbackServer) async throws -> Void
) async throws {
  let behaviour = behaviour ?? ServerBehaviour(latency: .zero)
  let server = LoopbackServer(router: router, behaviour: behaviour, limits: limits)
  try server.start()
  defer { server.stop() }
  try await body(server)
}

/// Represents an answer as `URLSession` reports it.
struct Answer: Sendable {
  let data: Data
  let http: HTTPURLResponse

  var status: Int { http.statusCode }

  func header(_ name: String) -> String? { http.value(forHTTPHeaderField: name) }

  func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: data)
  }

  var message: String {
    get throws {
      struct Body: Decodable { let message: String, status: Int }
      let body = try decode(Body.self)
      #expect(body.status == status)
      return body.message
    }
  }
}

extension LoopbackServer {
  /// Sends a request with `URLSession`; the path is used as it stands.
  func fetch(
    _ path: String, method: String = "GET", body: String? = nil, key: String? = nil,
    session: URLSession = .shared
  ) async throws -> Answer {
    var request = URLRequest(url: try #require(URL(string: baseURL.absoluteString + path)))
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    request.setValue(key, forHTTPHeaderField: "Idempotency-Key")
    let (data, response) = try await session.data(for: request)
    return Answer(data: data, http: try #require(response as? HTTPURLResponse))
  }

  /// Sends text over a raw socket and returns all that comes back until the server closes.
  func exchange(_ text: String) throws -> String {
    let socket = try RawSocket(connectedTo: baseURL)
    try socket.send(text)
    return try socket.readToEnd()
  }
}

/// Connects a plain socket, in order to send what `URLSession` never would.
struct RawSocket: ~Copyable {
  private let descriptor: Int32

  init(connectedTo url: URL) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(try #require(url.port)).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw ServerError.system(call: "connect", code: errno) }
  }

  deinit { close(descriptor) }

  func send(_ text: String) throws {
    let bytes = Array(text.utf8)
    let sent = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    guard sent == bytes.count else { throw ServerError.system(call: "send", code: errno) }
  }

  /// Reads until the server closes, or until the text has arrived.
  func readToEnd(orUntil text: String? = nil) throws -> String {
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count >= 0 else { throw ServerError.system(call: "recv", code: errno) }
      received += chunk[..<count]
      let answer = String(decoding: received, as: UTF8.self)
      if count == 0 || answer == text { return answer }
    }
  }
}
