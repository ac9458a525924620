import Foundation

/// A line that a program sends to the inspector.
enum ServerMessage: Equatable, Sendable {
  case hello(Hello)
  case snapshot(Snapshot)
  case changes(Changes)
  case detail(StoreDetail)
  /// The answer to a command; `error` is `nil` where the program has performed it.
  case reply(id: Int, error: String?)
  case bye(reason: String)
  /// A message that this version does not know.
  case unknown(type: String)

  struct Snapshot: Equatable, Sendable, Decodable {
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

  /// The names of the program and of its client.
  func title(separator: String = " · ") -> String {
    name.map { "\(program)\(separator)\($0)" } ?? program
  }
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
  var counts: Counts?
  var stores: [StoreRecord] = []
  var removed: [Int] = []
  var events: [InspectorEvent] = []
  /// The number of changes and events that the program left out.
  var missed = 0
  var isOffline = false
}

extension ServerMessage: Decodable {
  /// Decodes one line; throws an error if it is no message.
  init(line: some Sequence<UInt8>) throws {
    let decoder = JSONDecoder()
    // JSON has no numbers for these. A program sends them for dates that are out of range.
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    self = try decoder.decode(Self.self, from: Data(line))
  }

  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    let type: String = try fields.required("type")
    switch type {
    case "hello": self = .hello(try Hello(from: decoder))
    case "snapshot": self = .snapshot(try Snapshot(from: decoder))
    case "changes": self = .changes(try Changes(from: decoder))
    case "detail": self = .detail(try fields.required("store"))
    case "reply":
      let isDone: Bool = try fields.required("ok")
      let error: String = try fields("error") ?? "The command failed."
      self = .reply(id: try fields.required("id"), error: isDone ? nil : error)
    case "bye": self = .bye(reason: try fields("reason") ?? "")
    default: self = .unknown(type: type)
    }
  }
}

extension Hello: Decodable {
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    program = try fields.required("program")
    pid = try fields("pid") ?? 0
    name = try fields("name")
    now = try fields.time("now") ?? 0
    started = try fields.time("started") ?? now
    isReadOnly = try fields("readOnly") ?? false
    canGoOffline = try fields("canGoOffline") ?? false
    isOffline = try fields("isOffline") ?? false
  }
}

extension Counts: Decodable {
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    hits = try fields("hits") ?? 0
    joins = try fields("joins") ?? 0
    runs = try fields("runs") ?? 0
    failures = try fields("failures") ?? 0
    cancellations = try fields("cancellations") ?? 0
    retries = try fields("retries") ?? 0
    evictions = try fields("evictions") ?? 0
  }
}

extension Changes: Decodable {
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    counts = try fields("counts")
    stores = try fields("stores") ?? []
    removed = try fields("removed") ?? []
    events = try fields("events") ?? []
    missed = try fields("missed") ?? 0
    isOffline = try fields("isOffline") ?? false
  }
}
