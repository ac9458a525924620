import FoundationEssentials

// The messages to a peer, one JSON object on a line each. Dates are seconds since 1970. What is `nil` is
// left out.

/// The first message.
struct InspectorHello: Encodable {
  let type = "hello"
  let `protocol` = 1
  let program: String
  let pid: Int32
  let name: String?
  let started: Double
  let now: Double
  let readOnly: Bool
  let canGoOffline: Bool
  let isOffline: Bool
}

/// All stores, after the first message.
struct InspectorSnapshot: Encodable {
  let type = "snapshot"
  let time: Double
  let counts: [String: Int]
  let stores: [InspectedStore]
}

/// The newest state of stores that have changed, and what has happened.
struct InspectorChanges: Encodable {
  let type = "changes"
  let time: Double
  let counts: [String: Int]
  let stores: [InspectedStore]
  let removed: [Int]
  let events: [InspectedEvent]
  /// The number of results and events that the peer does not get.
  let missed: Int
  let isOffline: Bool
}

/// The store that a peer watches.
struct InspectorDetail: Encodable {
  let type = "detail"
  let time: Double
  let store: InspectedStore
}

/// The answer to a command.
struct InspectorReply: Encodable {
  let type = "reply"
  let id: Int
  let ok: Bool
  let error: String?
}

/// The last message.
struct InspectorBye: Encodable {
  let type = "bye"
  let reason: String
}

/// A command of a peer.
struct InspectorCommand: Decodable {
  let id: Int?
  let command: String
  let store: Int?
  let value: Bool?
}

/// A store as one object of several parts.
struct InspectedStore: Encodable {
  struct Facts: Encodable {
    let id: Int
    let path: [String]
    let request: String
    let kind: String
    let status: String
    let isStale: Bool
    let updated: Double?
    let failed: Double?
    let valueUpdates: Int
    let errorUpdates: Int
    let error: String?
    var value: String
  }

  struct Use: Encodable {
    var subscribers: Int
    var leases: Int
    var runs: Int
    var edits: Int
    var queued: Int
    var reads: [Int] = []
    var readBy: [Int] = []
  }

  /// What only a peer gets that watches the store.
  struct Detail: Encodable {
    struct Rule: Encodable {
      let name: String
      let value: String
    }

    struct Call: Encodable {
      let arguments: String
      let status: String
    }

    let rules: [Rule]
    let calls: [Call]
    let pages: Int?
    /// Whether the value is longer than the limit; `nil` if it is not.
    let isTruncated: Bool?
  }

  var facts: Facts
  var use: Use
  var detail: Detail?
  /// Whether its runs wait for a connection. No event notes waits, so they are compared with later ones, and are not
  /// encoded.
  let isPaused: Bool
  /// The number of failed attempts of the run that waits for a retry, and the date of the next one.
  let retry: (failedAttempts: Int, date: Date)?

  /// The number of results that the store has had.
  var resultCount: Int { facts.valueUpdates + facts.errorUpdates }

  func encode(to encoder: any Encoder) throws {
    try facts.encode(to: encoder)
    try use.encode(to: encoder)
    try detail?.encode(to: encoder)
  }
}

/// Something that happened to a store.
struct InspectedEvent: Encodable, Sendable {
  let store: Int
  let time: Double
  let kind: String
  var run: UInt64?
  var cause: String?
  var attempt: Int?
  var outcome: String?
  var message: String?
}

extension InspectedEvent {
  init(_ event: OperationClientEvent, of store: Int, describedBy describer: InspectorDescriber) {
    let (kind, run): (String, OperationClientEvent.Run?) =
      switch event.occurrence {
      case .storeAdded: ("added", nil)
      case .storeRemoved: ("removed", nil)
      case .answeredFromCache: ("hit", nil)
      case .joined(let run): ("joined", run)
      case .runStarted(let run): ("runStarted", run)
      case .attemptBegan(let run, _): ("attempt", run)
      case .pageBegan(let run, _): ("pageBegan", run)
      case .pageEnded(let run, _): ("pageEnded", run)
      case .yielded(let run): ("yielded", run)
      case .runEnded(let run, _, _): ("runEnded", run)
      }
    self.init(
      store: store, time: event.date.timeIntervalSince1970, kind: kind, run: run?.id.rawValue,
      cause: run?.cause.rawValue)
    switch event.occurrence {
    case .storeRemoved where event.isEviction: message = "evicted"
    case .attemptBegan(_, let index): attempt = index
    case .pageBegan(_, let page), .pageEnded(_, let page):
      message = describer.text(page, at: event.path)
    case .runEnded(_, .success, _): outcome = "success"
    case .runEnded(_, .cancelled, _): outcome = "cancelled"
    case .runEnded(_, .failure(let error), _):
      (outcome, message) = ("failure", describer.short(error, at: event.path))
    default: break
    }
  }
}
