/// Something that happened to a store.
struct InspectorEvent: Equatable, Sendable {
  var store: Int
  /// Seconds since 1970.
  var time: Double
  /// One of the protocol's kinds, such as `runStarted`.
  var kind: String
  /// The number of the run, where the event belongs to one.
  var run: Int?
  var cause: String?
  var attempt: Int?
  var outcome: String?
  var message: String?
}

extension InspectorEvent: Decodable {
  private enum Key: String, CodingKey {
    case store, time, kind, run, cause, attempt, outcome, message
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    store = try fields.decode(Int.self, forKey: .store)
    time = try fields.decodeTime(forKey: .time) ?? 0
    kind = try fields.decode(String.self, forKey: .kind)
    run = try fields.decodeIfPresent(Int.self, forKey: .run)
    cause = try fields.decodeIfPresent(String.self, forKey: .cause)
    attempt = try fields.decodeIfPresent(Int.self, forKey: .attempt)
    outcome = try fields.decodeIfPresent(String.self, forKey: .outcome)
    message = try fields.decodeIfPresent(String.self, forKey: .message)
  }
}

extension KeyedDecodingContainer {
  /// Decodes seconds since 1970, within some ten thousand years, so that all arithmetic is exact.
  func decodeTime(forKey key: Key) throws -> Double? {
    try decodeIfPresent(Double.self, forKey: key).map { min(max($0, -1e12), 1e12) }
  }
}

extension InspectorEvent {
  /// The number of the attempt, from 1.
  var attemptNumber: Int { min(max(attempt ?? 0, 0), 1_000_000) + 1 }

  /// The event in words, without its store and time.
  var text: String {
    let run = run.map { "run \($0)" } ?? "run"
    let note = message.map { ": \($0)" } ?? ""
    return switch kind {
    case "added": "added"
    case "removed": "removed"
    case "runStarted": "\(run) started" + (cause.map { " (\($0))" } ?? "")
    case "attempt": "\(run) attempt \(attemptNumber)\(note)"
    case "waiting": "\(run) waits\(note)"
    case "paused": "\(run) paused\(note)"
    case "yielded": "\(run) yielded\(note)"
    case "pageBegan": "\(run) began a page\(note)"
    case "pageEnded": "\(run) ended a page\(note)"
    case "runEnded": "\(run) ended: \(outcome ?? "unknown outcome")\(note)"
    case "joined": "\(run) joined"
    case "hit": "hit"
    default: "\(kind)\(note)"
    }
  }
}
