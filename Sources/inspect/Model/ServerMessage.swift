import Foundation

/// A line that a program sends to the inspector.
enum ServerMessage: Equatable, Sendable {
  case hello(Hello)
  case snapshot(Snapshot)
  case changes(Changes)
  case detail(StoreDetail, time: Double)
  /// The answer to a command; `error` is `nil` where the program has performed it.
  case reply(id: Int, error: String?)
  case bye(reason: String)
  /// A message that this version does not know.
  case unknown(type: String)

  struct Snapshot: Equatable, Sendable, Decodable {
    var time: Double
    var counts: Counts
    var stores: [StoreRecord]
  }
}

/// What a program reports about itself when an inspector connects.
struct Hello: Equatable, Sendable {
  var program: String
  var pid: Int
  /// The name of the client, if the program has set one.
  var name: String?
  /// The start of the program, in seconds since 1970.
  var started: Double
  /// The program's time when it sent this.
  var now: Double
  var isReadOnly = false
  /// Whether the client has a manual observer, which the inspector can disconnect.
  var canGoOffline = false
  var isOffline = false

  var title: String { name.map { "\(program) · \($0)" } ?? program }
}

/// How often things happened since the inspector connected.
struct Counts: Equatable, Sendable {
  var hits = 0
  var joins = 0
  var runs = 0
  var failures = 0
  var cancellations = 0
  var retries = 0
  var evictions = 0

  var labelled: [(String, Int)] {
    [
      ("hits", hits), ("joins", joins), ("runs", runs), ("failures", failures),
      ("cancellations", cancellations), ("retries", retries), ("evictions", evictions),
    ]
  }
}

/// What has changed since the last message.
struct Changes: Equatable, Sendable {
  var time: Double
  var counts: Counts?
  var stores: [StoreRecord] = []
  var removed: [Int] = []
  var events: [InspectorEvent] = []
  /// The number of changes and events that the program left out.
  var missed = 0
  var isOffline = false
}

extension ServerMessage {
  /// Decodes one line; throws an error if it is no message.
  init(line: some Sequence<UInt8>) throws {
    let data = Data(line)
    let decoder = JSONDecoder()
    let type = try decoder.decode(TypeField.self, from: data).type
    switch type {
    case "hello": self = .hello(try decoder.decode(Hello.self, from: data))
    case "snapshot": self = .snapshot(try decoder.decode(Snapshot.self, from: data))
    case "changes": self = .changes(try decoder.decode(Changes.self, from: data))
    case "detail":
      let fields = try decoder.decode(DetailFields.self, from: data)
      self = .detail(fields.store, time: fields.time)
    case "reply":
      let fields = try decoder.decode(ReplyFields.self, from: data)
      self = .reply(id: fields.id, error: fields.ok ? nil : fields.error ?? "The command failed.")
    case "bye": self = .bye(reason: try decoder.decode(ByeFields.self, from: data).reason ?? "")
    default: self = .unknown(type: type)
    }
  }

  private struct TypeField: Decodable { let type: String }

  private struct DetailFields: Decodable {
    let time: Double
    let store: StoreDetail
  }

  private struct ReplyFields: Decodable {
    let id: Int
    let ok: Bool
    let error: String?
  }

  private struct ByeFields: Decodable { let reason: String? }
}

extension Hello: Decodable {
  private enum Key: String, CodingKey {
    case program, pid, name, started, now, readOnly, canGoOffline, isOffline
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    program = try fields.decode(String.self, forKey: .program)
    pid = try fields.decodeIfPresent(Int.self, forKey: .pid) ?? 0
    name = try fields.decodeIfPresent(String.self, forKey: .name)
    now = try fields.decodeTime(forKey: .now) ?? 0
    started = try fields.decodeTime(forKey: .started) ?? now
    isReadOnly = try fields.decodeIfPresent(Bool.self, forKey: .readOnly) ?? false
    canGoOffline = try fields.decodeIfPresent(Bool.self, forKey: .canGoOffline) ?? false
    isOffline = try fields.decodeIfPresent(Bool.self, forKey: .isOffline) ?? false
  }
}

extension Counts: Decodable {
  private enum Key: String, CodingKey {
    case hits, joins, runs, failures, cancellations, retries, evictions
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    func number(_ key: Key) throws -> Int { try fields.decodeIfPresent(Int.self, forKey: key) ?? 0 }
    hits = try number(.hits)
    joins = try number(.joins)
    runs = try number(.runs)
    failures = try number(.failures)
    cancellations = try number(.cancellations)
    retries = try number(.retries)
    evictions = try number(.evictions)
  }
}

extension Changes: Decodable {
  private enum Key: String, CodingKey {
    case time, counts, stores, removed, events, missed, isOffline
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    time = try fields.decodeTime(forKey: .time) ?? 0
    counts = try fields.decodeIfPresent(Counts.self, forKey: .counts)
    stores = try fields.decodeIfPresent([StoreRecord].self, forKey: .stores) ?? []
    removed = try fields.decodeIfPresent([Int].self, forKey: .removed) ?? []
    events = try fields.decodeIfPresent([InspectorEvent].self, forKey: .events) ?? []
    missed = try fields.decodeIfPresent(Int.self, forKey: .missed) ?? 0
    isOffline = try fields.decodeIfPresent(Bool.self, forKey: .isOffline) ?? false
  }
}
