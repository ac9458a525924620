import Foundation

/// Decides what a request gets. Only the page that was opened with the token gets anything.
struct WebGate: Sendable {
  let port: UInt16
  let token: String

  enum Decision: Equatable, Sendable {
    case page
    case events
    /// A command for the program of a stream.
    case command(InspectorCommand, id: Int, stream: Int)
    case refused(status: Int)
  }

  /// Creates a gate with a token of 128 random bits.
  init(port: UInt16) {
    var random = SystemRandomNumberGenerator()
    let digits = (0..<2).map { _ in
      let text = String(random.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
    self.init(port: port, token: digits.joined())
  }

  init(port: UInt16, token: String) {
    self.port = port
    self.token = token
  }

  var address: String { "http://127.0.0.1:\(port)/?token=\(token)" }

  func decide(_ request: HTTPRequest) -> Decision {
    // A foreign name that resolves to this machine has that name as its host.
    // A browser leaves out the port 80.
    let end = port == 80 ? "" : ":\(port)"
    let hosts = ["127.0.0.1\(end)", "localhost\(end)"]
    guard let host = request.fields["host"], hosts.contains(host) else {
      return .refused(status: 403)
    }
    if let origin = request.fields["origin"], origin != "http://\(host)" {
      return .refused(status: 403)
    }
    // Other ports of this machine are the same site, but another origin.
    let site = request.fields["sec-fetch-site"]
    guard site == nil || site == "none" || site == "same-origin",
      isToken(request.query["token"] ?? "")
    else { return .refused(status: 403) }
    switch (request.method, request.path) {
    case ("GET", "/"): return .page
    case ("GET", "/events"): return .events
    case ("POST", "/command"): return command(request)
    case (_, "/"), (_, "/events"), (_, "/command"): return .refused(status: 405)
    default: return .refused(status: 404)
    }
  }

  private func command(_ request: HTTPRequest) -> Decision {
    guard request.fields["origin"] != nil else { return .refused(status: 403) }
    guard request.fields["content-type"]?.hasPrefix("application/json") == true else {
      return .refused(status: 415)
    }
    guard let stream = request.query["stream"].flatMap({ Int($0) }),
      let fields = try? JSONDecoder().decode(CommandFields.self, from: Data(request.body)),
      let command = fields.value
    else { return .refused(status: 400) }
    return .command(command, id: fields.id, stream: stream)
  }

  /// Compares all characters, so that the time does not depend on how many are right.
  private func isToken(_ text: String) -> Bool {
    let (given, expected) = (Array(text.utf8), Array(token.utf8))
    guard given.count == expected.count else { return false }
    return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private struct CommandFields: Decodable {
    let id: Int
    let command: String
    var store: Int?
    var offline: Bool?

    var value: InspectorCommand? {
      switch (command, store) {
      case ("watch", let store?): .watch(store: store)
      case ("unwatch", _): .unwatch
      case ("offline", _): offline.map { .offline($0) }
      case (_, let store?):
        InspectorCommand.Operation(rawValue: command).map { .perform($0, store: store) }
      default: nil
      }
    }
  }
}
