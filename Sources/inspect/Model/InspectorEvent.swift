/// Something that happened to a store.
struct InspectorEvent: Equatable, Sendable, Decodable {
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

extension InspectorEvent {
  /// The event in words, without its store and time.
  var text: String {
    let run = run.map { "run \($0)" } ?? "run"
    let note = message.map { ": \($0)" } ?? ""
    return switch kind {
    case "added": "added"
    case "removed": "removed"
    case "runStarted": "\(run) started" + (cause.map { " (\($0))" } ?? "")
    case "attempt": "\(run) attempt \((attempt ?? 0) + 1)\(note)"
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
