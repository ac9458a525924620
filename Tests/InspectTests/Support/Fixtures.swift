import Foundation

@testable import inspect

/// The messages of a small blog, as a program sends them.
enum Blog {
  typealias Fields = [String: any Sendable]

  /// The time of the messages, in seconds since 1970.
  static let now = 1_700_000_000.0

  static func hello(
    program: String = "posts", pid: Int = 123, name: String? = nil, isReadOnly: Bool = false,
    canGoOffline: Bool = true
  ) -> String {
    var fields: Fields = [
      "type": "hello", "protocol": 1, "program": program, "pid": pid, "started": now - 754,
      "now": now, "readOnly": isReadOnly, "canGoOffline": canGoOffline, "isOffline": false,
    ]
    fields["name"] = name
    return json(fields)
  }

  static let counts: [String: Int] = [
    "hits": 120, "joins": 14, "runs": 88, "failures": 3, "cancellations": 1, "retries": 4,
    "evictions": 0,
  ]

  static let stores: [Fields] = [
    store(1, ["posts"], "PostsQuery", value: "[Post 1, Post 2, Post 3]", runs: 4, subscribers: 2),
    store(
      2, ["posts", "2"], "PostQuery", isStale: true, age: 95, value: "Post(id: 2)", readBy: [6]),
    store(3, ["posts", "10"], "PostQuery", status: "loading", age: nil, value: "", leases: 2),
    store(
      4, ["posts", "3"], "PostQuery", status: "failure", isStale: true,
      error: "the server answered with status 503", runs: 3),
    store(5, ["create"], "CreatePost", kind: "mutation", status: "paused", age: nil, queued: 2),
    store(6, ["authors", "7"], "AuthorQuery", value: "Author(name: <script>)", reads: [2]),
  ]

  static var snapshot: String { snapshot(stores) }

  static func snapshot(_ stores: [Fields]) -> String {
    json(["type": "snapshot", "time": now, "counts": counts, "stores": stores])
  }

  static func changes(
    stores: [Fields] = [], removed: [Int] = [], events: [Fields] = [],
    missed: Int = 0, time: Double = now, isOffline: Bool = false
  ) -> String {
    json([
      "type": "changes", "time": time, "counts": counts, "stores": stores, "removed": removed,
      "events": events, "missed": missed, "isOffline": isOffline,
    ])
  }

  static func detail(_ store: Fields) -> String {
    let more: Fields = [
      "rules": [["name": "stale after", "value": "60 s"], ["name": "retries", "value": "2"]],
      "calls": [String](), "isTruncated": false,
    ]
    return json([
      "type": "detail", "time": now, "store": store.merging(more) { $1 },
    ])
  }

  static func reply(_ id: Int, error: String? = nil) -> String {
    var fields: Fields = ["type": "reply", "id": id, "ok": error == nil]
    fields["error"] = error
    return json(fields)
  }

  static func event(
    _ store: Int, _ kind: String, after seconds: Double = 0, run: Int? = nil,
    cause: String? = nil, attempt: Int? = nil, outcome: String? = nil, message: String? = nil
  ) -> Fields {
    var fields: Fields = ["store": store, "kind": kind, "time": now + seconds]
    fields["run"] = run
    fields["cause"] = cause
    fields["attempt"] = attempt
    fields["outcome"] = outcome
    fields["message"] = message
    return fields
  }

  /// A run of store 4 with two attempts and a wait between them.
  static let retriedRun: [Fields] = [
    event(4, "runStarted", after: -4, run: 3, cause: "invalidation"),
    event(4, "attempt", after: -4, run: 3, attempt: 0),
    event(4, "joined", after: -3.5, run: 3),
    event(4, "waiting", after: -3, run: 3),
    event(4, "attempt", after: -2, run: 3, attempt: 1),
    event(4, "runEnded", after: -1, run: 3, outcome: "failure", message: "status 503"),
  ]

  static func store(
    _ id: Int, _ path: [String], _ request: String, kind: String = "query",
    status: String = "success", isStale: Bool = false, age: Double? = 12, error: String? = nil,
    value: String = "", runs: Int = 1, subscribers: Int = 0, leases: Int = 0, queued: Int = 0,
    reads: [Int] = [], readBy: [Int] = []
  ) -> Fields {
    var fields: Fields = [
      "id": id, "path": path, "request": request, "kind": kind, "status": status,
      "isStale": isStale, "value": value, "runs": runs, "subscribers": subscribers,
      "leases": leases, "queued": queued, "reads": reads, "readBy": readBy, "valueUpdates": runs,
    ]
    fields["error"] = error
    fields[error == nil ? "updated" : "failed"] = age.map { now - $0 }
    return fields
  }

  static func json(_ fields: Fields) -> String {
    guard let data = try? JSONSerialization.data(withJSONObject: fields, options: .sortedKeys)
    else { preconditionFailure("no JSON: \(fields)") }
    return String(decoding: data, as: UTF8.self)
  }

  static func message(_ line: String) throws -> ServerMessage {
    try ServerMessage(line: line.utf8)
  }

  /// A model that has received the first two messages.
  static func model(_ stores: [Fields] = stores) throws -> InspectorModel {
    var model = InspectorModel()
    model.receive(try message(hello()))
    model.receive(try message(snapshot(stores)))
    return model
  }
}
