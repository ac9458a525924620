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
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    store = try fields.required("store")
    time = try fields.time("time") ?? 0
    kind = try fields.required("kind")
    run = try fields("run")
    cause = try fields("cause")
    attempt = try fields("attempt")
    outcome = try fields("outcome")
    message = try fields("message")
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
    default: "\(kind)\(note)"
    }
  }
}
