public import Foundation

/// A request that a route handler receives.
public struct Request: Sendable {
  /// The method in capitals, for example `GET`.
  public let method: String
  /// The percent-decoded values of the names in the route, such as `id` in `/posts/:id`.
  public internal(set) var parameters: [String: String] = [:]
  /// The percent-decoded query values. Of a repeated name, the first value applies.
  public let query: [String: String]
  /// The header fields.
  public let headers: Headers
  /// The body, which is empty if the client sent none.
  public let body: Data

  let segments: [String]

  init(head: RequestHead, body: Data) {
    method = head.method
    segments = head.segments
    query = head.query
    headers = head.headers
    self.body = body
  }

  /// The percent-decoded path without the query.
  public var path: String { "/" + segments.joined(separator: "/") }

  /// Decodes the JSON body, or throws a 400.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    do {
      return try JSONCoding.decoder().decode(type, from: body)
    } catch let error as DecodingError {
      throw HTTPError(400, "The body is not the expected JSON: \(error.summary)")
    }
  }

  /// Converts a path parameter, or throws a 400.
  public func parameter<Value: LosslessStringConvertible>(
    _ name: String, as type: Value.Type = Value.self
  ) throws(HTTPError) -> Value {
    guard let text = parameters[name], let value = Value(text) else {
      throw HTTPError(400, "The path needs a valid '\(name)'.")
    }
    return value
  }

  /// Converts a query value, or returns the default if the client did not send one.
  public func query<Value: LosslessStringConvertible>(
    _ name: String, default fallback: Value
  ) throws(HTTPError) -> Value {
    guard let text = query[name] else { return fallback }
    guard let value = Value(text) else {
      throw HTTPError(400, "The query value '\(name)' is not valid.")
    }
    return value
  }
}

extension DecodingError {
  fileprivate var summary: String {
    switch self {
    case .typeMismatch(_, let context), .valueNotFound(_, let context),
      .keyNotFound(_, let context), .dataCorrupted(let context):
      context.debugDescription
    @unknown default:
      "unknown reason"
    }
  }
}

/// Parses the request line and the header fields strictly: invalid data is a 400.
struct RequestHead {
  let method: String
  let segments: [String]
  let query: [String: String]
  let headers: Headers

  init(parsing bytes: some Collection<UInt8>) throws(HTTPError) {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HTTPError(400, "The request head is not UTF-8.")
    }
    // Swift treats CR LF as one character, so that a bare CR or LF remains in its line.
    let lines = text.split(separator: "\r\n" as Character, omittingEmptySubsequences: false)
    let target: Substring
    (method, target) = try Self.parseRequestLine(lines[0])
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    segments = try Self.parsePath(parts[0])
    query = try parts.count > 1 ? Self.parseQuery(parts[1]) : [:]
    headers = try Self.parseFields(lines.dropFirst())
  }

  /// Returns the length of the body, and refuses a body that this server does not support.
  func bodyLength(atMost limit: Int) throws(HTTPError) -> Int {
    guard headers["Transfer-Encoding"] == nil else {
      throw HTTPError(501, "Only bodies with a Content-Length are supported.")
    }
    guard let text = headers["Content-Length"] else { return 0 }
    // `Int` would accept a sign, which HTTP does not.
    guard !text.isEmpty, text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
    else {
      throw HTTPError(400, "The Content-Length is not a number.")
    }
    guard let length = Int(text), length <= limit else {
      throw HTTPError(413, "The body must not exceed \(limit) bytes.")
    }
    return length
  }

  private static func parseRequestLine(
    _ line: Substring
  ) throws(HTTPError) -> (method: String, target: Substring) {
    let parts = line.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, isToken(parts[0]), isTarget(parts[1]), parts[2].hasPrefix("HTTP/")
    else {
      throw HTTPError(400, "The request line is malformed.")
    }
    guard ["HTTP/1.0", "HTTP/1.1"].contains(parts[2]) else {
      throw HTTPError(505, "Only HTTP/1.0 and HTTP/1.1 are supported.")
    }
    return (String(parts[0]), parts[1])
  }

  /// Splits before it decodes, so that an encoded slash remains within its segment.
  private static func parsePath(_ path: Substring) throws(HTTPError) -> [String] {
    var segments: [String] = []
    for segment in path.split(separator: "/") { segments.append(try decode(segment)) }
    return segments
  }

  private static func parseQuery(_ text: Substring) throws(HTTPError) -> [String: String] {
    var query: [String: String] = [:]
    for item in text.split(separator: "&") {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = try decode(parts[0])
      let value = try parts.count > 1 ? decode(parts[1]) : ""
      if query[name] == nil { query[name] = value }
    }
    return query
  }

  /// Does not decode a plus sign, because `URLComponents` does not encode one.
  private static func decode(_ text: Substring) throws(HTTPError) -> String {
    guard let decoded = text.removingPercentEncoding else {
      throw HTTPError(400, "The percent-encoding of '\(text)' is malformed.")
    }
    return decoded
  }

  private static func parseFields(_ lines: ArraySlice<Substring>) throws(HTTPError) -> Headers {
    var headers: Headers = [:]
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, isToken(parts[0]), !parts[1].utf8.contains(where: isForbidden) else {
        throw HTTPError(400, "A header field is malformed.")
      }
      headers.add(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
    }
    return headers
  }

  private static func isToken(_ text: Substring) -> Bool {
    let letters = CharacterSet.asciiToken
    return !text.isEmpty && text.unicodeScalars.allSatisfy(letters.contains)
  }

  private static func isTarget(_ text: Substring) -> Bool {
    // From the exclamation mark to the tilde: all visible characters of ASCII.
    text.hasPrefix("/") && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }

  private static func isForbidden(_ byte: UInt8) -> Bool {
    byte == 0 || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
  }
}

extension CharacterSet {
  /// The characters that HTTP allows in a method and in a field name.
  fileprivate static let asciiToken = CharacterSet(
    charactersIn: "!#$%&'*+-.^_`|~0123456789"
      + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

/// Header fields in their order, which are found without regard to the case of their names.
public struct Headers: Sendable, ExpressibleByDictionaryLiteral {
  private(set) var fields: [(name: String, value: String)] = []

  /// Creates headers from names and values, and keeps their order.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(name, value) }
  }

  /// Appends a field, even when one of that name exists already.
  public mutating func add(_ name: String, _ value: String) {
    fields.append((name, value))
  }

  /// Reads all the values of a name, joined by commas as HTTP permits, or replaces them by one.
  public subscript(name: String) -> String? {
    get {
      let values = fields.filter { Self.areSame($0.name, name) }.map { $0.value }
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
    set {
      fields.removeAll { Self.areSame($0.name, name) }
      if let newValue { add(name, newValue) }
    }
  }

  private static func areSame(_ first: String, _ second: String) -> Bool {
    first.lowercased() == second.lowercased()
  }
}
