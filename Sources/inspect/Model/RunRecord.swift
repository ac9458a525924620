/// One run of a store, as its events describe it.
struct RunRecord: Equatable, Sendable {
  let number: Int
  /// Seconds since 1970.
  let started: Double
  var cause: String?
  var ended: Double?
  var outcome: String?
  var message: String?
  /// The phases in the order of time. Each lasts until the next, the last one until the end.
  var phases: [Phase]
  var attempts = 1
  var joins = 0
  var yields = 0
  var pages = 0

  struct Phase: Equatable, Sendable {
    var kind: Kind
    var begin: Double

    enum Kind: Equatable, Sendable {
      /// An attempt: the handler works.
      case working
      /// The pause between two attempts, a place in a queue, or another wait.
      case waiting
      /// The run waits for a connection or another condition.
      case paused
    }
  }

  init(_ event: InspectorEvent, number: Int) {
    self.number = number
    started = event.time
    cause = event.cause
    phases = [Phase(kind: .working, begin: event.time)]
  }

  /// Applies an event of the run.
  mutating func apply(_ event: InspectorEvent) {
    switch event.kind {
    case "attempt":
      attempts = max(attempts, event.attemptNumber)
      enter(.working, at: event.time)
    case "waiting": enter(.waiting, at: event.time)
    case "paused": enter(.paused, at: event.time)
    case "yielded": yields += 1
    case "pageBegan": enter(.working, at: event.time)
    case "pageEnded": pages += 1
    case "joined": joins += 1
    case "runEnded":
      ended = event.time
      outcome = event.outcome
      message = event.message ?? message
    default: break
    }
  }

  private mutating func enter(_ kind: Phase.Kind, at time: Double) {
    if phases.last?.kind == kind { return }
    if phases.last?.begin == time { phases.removeLast() }
    phases.append(Phase(kind: kind, begin: time))
  }

  /// The duration until the end, or until `now` for a run in flight, in seconds.
  func duration(now: Double) -> Double { max((ended ?? now) - started, 0) }

  /// What happened in the run beside its outcome.
  func notes(separator: String = " · ") -> String {
    var notes: [String] = []
    if let cause { notes.append(cause) }
    if attempts > 1 { notes.append("\(attempts) attempts") }
    if joins > 0 { notes.append(counted(joins, "join")) }
    if yields > 0 { notes.append(counted(yields, "yield")) }
    if pages > 0 { notes.append(counted(pages, "page")) }
    if let message { notes.append(message) }
    return notes.joined(separator: separator)
  }
}

/// The latest runs of one store, the newest last.
struct Timeline: Equatable, Sendable {
  /// How many runs are kept.
  static let limit = 50

  private(set) var runs: [RunRecord] = []
  private(set) var hits = 0

  /// Adds an event, which belongs to a run that is known, begins one, or belongs to none.
  mutating func apply(_ event: InspectorEvent) {
    if event.kind == "hit" { hits += 1 }
    let number = event.run ?? runs.last?.number
    if event.kind == "runStarted" {
      runs.append(RunRecord(event, number: number.map { event.run ?? $0 &+ 1 } ?? 1))
      if runs.count > Self.limit { runs.removeFirst() }
    } else if let number, let index = runs.lastIndex(where: { $0.number == number }) {
      runs[index].apply(event)
    } else if let number = event.run, event.kind == "attempt" {
      // The run began before the inspector connected.
      runs.append(RunRecord(event, number: number))
      runs[runs.count - 1].apply(event)
    }
  }
}
