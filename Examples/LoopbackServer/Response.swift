public import Foundation

/// The response of a route handler.
public struct Response: Sendable {
  /// The status code.
  public var status: Int
  /// The header fields. The server adds `Content-Length` and `Connection`.
  public var headers: Headers
  /// The body.
  public var body: Data

  /// Creates a response, which has no body by default.
  public init(status: Int = 200, headers: Headers = [:], body: Data = Data()) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Encodes a value as the JSON body of a response.
  public static func json(
    _ value: some Encodable, status: Int = 200, headers: Headers = [:]
  ) throws -> Response {
    var response = Response(
      status: status, headers: headers, body: try JSONCoding.encoder().encode(value))
    response.headers["Content-Type"] = "application/json"
    return response
  }

  /// Creates a JSON response of the form `{"message": "...", "status": 404}`.
  public static func status(_ status: Int, _ message: String) -> Response {
    let body = ErrorBody(status: status, message: message)
    // Encoding a number and a text cannot fail; if it did, the bare status is still right.
    return (try? json(body, status: status)) ?? Response(status: status)
  }

  private struct ErrorBody: Encodable {
    let status: Int
    let message: String
  }
}

extension Response {
  init(_ error: HTTPError) {
    self = .status(error.status, error.message)
  }

  /// Serialises the response. A response to `HEAD` has the same head, without the body.
  func bytes(includingBody: Bool) -> Data {
    // A 204 must not have a length, and a 304 would need the length of the omitted body.
    let isBodyless = status == 204 || status == 304
    var fields = headers
    fields["Content-Length"] = isBodyless ? nil : String(body.count)
    fields["Connection"] = "close"

    var head = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "")\r\n"
    for (name, value) in fields.fields { head += "\(name): \(value)\r\n" }
    let bytes = Data((head + "\r\n").utf8)
    return includingBody && !isBodyless ? bytes + body : bytes
  }

  private static let reasons = [
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 302: "Found",
    304: "Not Modified",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict",
    413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported",
  ]
}

/// A failure with its own HTTP status, which a handler can throw as its response.
public struct HTTPError: Error, Equatable, CustomStringConvertible {
  /// The status code of the response.
  public let status: Int
  /// The description of the failure for the client.
  public let message: String

  /// Creates an error whose response has a status and a JSON message.
  public init(_ status: Int, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The status and the message.
  public var description: String { "\(status): \(message)" }
}

/// The JSON coders, so that requests and responses agree about dates and key order.
enum JSONCoding {
  static func encoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return encoder
  }

  static func decoder() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return decoder
  }
}
