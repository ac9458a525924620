/// A request of a browser.
struct HTTPRequest: Equatable, Sendable {
  var method: String
  /// The path without the query.
  var path: String
  var query: [String: String] = [:]
  /// The fields of the head, by their lower-case names.
  var fields: [String: String] = [:]
  var body: [UInt8] = []

  enum Parsing: Equatable, Sendable {
    /// The request is not complete.
    case incomplete
    case request(HTTPRequest)
    /// The bytes are no request that is accepted; the status says why.
    case refused(status: Int)
  }

  private static let headLimit = 16_384
  private static let bodyLimit = 65_536

  /// Parses the bytes that a connection has received since its start.
  static func parse(_ bytes: [UInt8]) -> Parsing {
    guard let end = endOfHead(bytes) else {
      return bytes.count > headLimit ? .refused(status: 431) : .incomplete
    }
    guard end.head <= headLimit,
      let head = String(validating: bytes[..<end.head], as: UTF8.self),
      var request = HTTPRequest(head: head)
    else { return .refused(status: 400) }
    if request.fields["transfer-encoding"] != nil { return .refused(status: 501) }
    guard let length = Int(request.fields["content-length"] ?? "0"), length >= 0 else {
      return .refused(status: 400)
    }
    guard length <= bodyLimit else { return .refused(status: 413) }
    guard bytes.count - end.body >= length else { return .incomplete }
    request.body = Array(bytes[end.body..<end.body + length])
    return .request(request)
  }

  /// Returns where the head ends and where the body begins.
  private static func endOfHead(_ bytes: [UInt8]) -> (head: Int, body: Int)? {
    let mark = Array("\r\n\r\n".utf8)
    guard bytes.count >= mark.count else { return nil }
    for index in 0...min(bytes.count - mark.count, headLimit)
    where bytes[index] == mark[0] && bytes[index..<index + mark.count].elementsEqual(mark) {
      return (index, index + mark.count)
    }
    return nil
  }
}

extension HTTPRequest {
  fileprivate init?(head: String) {
    let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
    let words = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[1].hasPrefix("/") else {
      return nil
    }
    let method = String(words[0])
    let parts = words[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.init(method: method, path: String(parts[0]))
    for item in parts.count > 1 ? parts[1].split(separator: "&") : [] {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query[String(pair[0])] = pair.count > 1 ? String(pair[1]) : ""
    }
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let name = line[..<colon].lowercased()
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      // Two fields of one name could be read differently by the check and by the use.
      guard !name.isEmpty, fields[name] == nil else { return nil }
      fields[name] = String(value)
    }
  }
}

/// An answer to a browser.
struct HTTPResponse: Equatable, Sendable {
  var status: Int
  var type = "text/plain; charset=utf-8"
  var fields: [String: String] = [:]
  var body = ""

  private static let reasons = [
    200: "OK", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 413: "Content Too Large",
    415: "Unsupported Media Type", 431: "Request Header Fields Too Large",
    501: "Not Implemented",
  ]

  /// The bytes of the answer. A stream has no length, and goes on after them.
  func encoded(isStream: Bool = false) -> [UInt8] {
    var head = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Status")\r\n"
    var fields = fields
    fields["Content-Type"] = type
    fields["Cache-Control"] = "no-store"
    fields["Connection"] = "close"
    fields["X-Content-Type-Options"] = "nosniff"
    fields["Referrer-Policy"] = "no-referrer"
    fields["Cross-Origin-Opener-Policy"] = "same-origin"
    fields["Cross-Origin-Resource-Policy"] = "same-origin"
    if !isStream { fields["Content-Length"] = "\(body.utf8.count)" }
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) { head += "\(name): \(value)\r\n" }
    return Array("\(head)\r\n\(body)".utf8)
  }
}
