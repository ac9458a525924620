import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// Delivers what waits, and gives what was told.
func deliver<Machine: DeliveryMachine, Element>(
  _ machine: inout Machine, to tape: Tape<Element>
) -> [Element] {
  var delivery = machine.deliveries.beginDraining()
  while let current = delivery {
    current.perform()
    delivery = machine.deliveries.takeNext()
  }
  return tape.take()
}

/// There is one watch at a time, and only while somebody listens or until it is taken; each that was
/// opened is given back once. Who listens is told of changes, and of nothing that he knows.
@Suite("NetworkWatchMachine, every sequence") struct NetworkWatchExhaustiveTests {
  private typealias Status = NetworkConnectionStatus

  private enum Step {
    case subscribe, unsubscribe, fail, takeUnused, deliver
    case read(Status), opened(Status), update(Status)
  }

  private static let events: [Step] =
    [.subscribe, .unsubscribe, .fail, .takeUnused, .deliver]
    + [Status.connected, .disconnected].flatMap { [.read($0), .opened($0), .update($0)] }

  private struct Walk {
    private enum Phase: Equatable {
      case idle, opening(seen: Set<Status>), watching(Int, Status), unavailable
    }

    private var machine = NetworkWatchMachine<Int>()
    private let heard = Tape<Status>()
    private var phase = Phase.idle
    private var ids: [UInt64] = []
    private var pending: [(status: Status, listeners: [UInt64])] = []
    private var watchCount = 0

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .subscribe: try subscribe()
      case .unsubscribe:
        guard !ids.isEmpty else { return false }
        let id = ids.removeFirst()
        let (subscriber, isLast) = machine.unsubscribe(id)
        try mustHold(subscriber != nil && isLast == ids.isEmpty, "the last one is told so")
        pending = pending.map { entry in (entry.status, entry.listeners.filter { $0 != id }) }
      case .read(let asked):
        let expected = known ?? asked
        if case .opening(let seen) = phase { phase = .opening(seen: seen.union([asked])) }
        try mustHold(machine.read(asked) == expected, "a watch knows better")
      case .opened(let status):
        guard case .opening(let seen) = phase else { return false }
        watchCount += 1
        let isUnused = machine.opened(watchCount, status)
        try mustHold(isUnused == ids.isEmpty, "it says whether nobody wants the watch")
        tell(status, after: seen)
        phase = .watching(watchCount, status)
      case .update(let status):
        machine.update(status)
        guard case .watching(let watch, let old) = phase else { break }
        tell(status, after: [old])
        phase = .watching(watch, status)
      case .fail: try fail()
      case .takeUnused: try takeUnused()
      case .deliver:
        let told = OperationTests.deliver(&machine, to: heard)
        let expected = pending.flatMap { entry in entry.listeners.map { _ in entry.status } }
        try mustHold(told == expected, "\(expected) is told, and not \(told)")
        pending = []
      }
      try mustHold(machine.status == known, "the status is \(known.map { "\($0)" } ?? "unknown")")
      try mustHold(ids.isEmpty || phase != .idle, "somebody listens to nothing")
      try mustHold(machine.deliveries.subscriberCount == ids.count, "it counts")
      return true
    }

    private var known: Status? {
      switch phase {
      case .idle, .opening: nil
      case .watching(_, let status): status
      case .unavailable: .connected
      }
    }

    private mutating func subscribe() throws {
      let (id, opens) = machine.subscribe(Subscriber { [heard] in heard.note($0) })
      ids.append(id)
      try mustHold(opens == (phase == .idle), "the first one opens a watch")
      if opens { phase = .opening(seen: []) }
    }

    private mutating func tell(_ status: Status, after seen: Set<Status>) {
      if !seen.isSubset(of: [status]), !ids.isEmpty { pending.append((status, ids)) }
    }

    private mutating func fail() throws {
      let watch = machine.fail()
      switch phase {
      case .watching(let expected, let old):
        try mustHold(watch == expected, "the watch that failed is given back")
        tell(.connected, after: [old])
      case .opening(let seen):
        try mustHold(watch == nil, "there is none to give back")
        tell(.connected, after: seen)
      case .idle, .unavailable: try mustHold(watch == nil, "there is none to give back")
      }
      phase = ids.isEmpty ? .idle : .unavailable
    }

    private mutating func takeUnused() throws {
      let watch = machine.takeUnused()
      switch phase {
      case .watching(let expected, _) where ids.isEmpty:
        try mustHold(watch == expected, "the watch that nobody wants is given back")
        phase = .idle
      case .unavailable where ids.isEmpty:
        try mustHold(watch == nil, "there is none to give back")
        phase = .idle
      default: try mustHold(watch == nil, "a watch that is wanted stays")
      }
    }
  }

  @Test("There is one watch at a time, while somebody listens") func everySequence() {
    exhaust("NetworkWatchMachine", events: Self.events, length: 5, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}

/// One thread at a time starts or ends the feed, and when nobody is at it, it runs exactly while
/// somebody listens. Only the present run of it is heard.
@Suite("ObservedValueMachine, every sequence") struct ObservedValueExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribe, setSame, setNew, hear, hearLate, found, nextStep, done, deliver
  }

  private struct Walk {
    private enum Feed: Equatable { case off, starting(UInt64), on(UInt64), ending }

    private var machine: ObservedValueMachine<Int>
    private let tellsRepeats: Bool
    private let heard = Tape<Int>()
    private let feedSubscription = OperationSubscription {}
    private var feed = Feed.off
    private var lastRun: UInt64?
    private var ids: [UInt64] = []
    private var value = 0
    private var pending: [(value: Int, listeners: [UInt64])] = []

    /// A value whose feed has run once, so that there is a run that can speak late.
    init(tellsRepeats: Bool, after steps: [Step]) {
      machine = ObservedValueMachine(value: 0, tellsRepeats: tellsRepeats)
      self.tellsRepeats = tellsRepeats
      for step in steps { _ = try? take(step) }
    }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .subscribe:
        ids.append(machine.deliveries.subscribe(Subscriber { [heard] in heard.note($0) }))
      case .unsubscribe:
        guard !ids.isEmpty else { return false }
        let id = ids.removeFirst()
        try mustHold(machine.deliveries.unsubscribe(id) != nil, "who is there can go")
        pending = pending.map { entry in (entry.value, entry.listeners.filter { $0 != id }) }
      case .setSame: set(value, with: { $0.set($1) })
      case .setNew: set(value + 1, with: { $0.set($1) })
      case .hear, .hearLate: return hear(isLate: step == .hearLate)
      case .found:
        value += 10
        machine.found(value)
      case .nextStep: try nextStep()
      case .done: return try done()
      case .deliver:
        let told = OperationTests.deliver(&machine, to: heard)
        let expected = pending.flatMap { entry in entry.listeners.map { _ in entry.value } }
        try mustHold(told == expected, "\(expected) is told, and not \(told)")
        pending = []
      }
      try mustHold(machine.value == value, "the value is \(value)")
      let isOn = if case .on = feed { true } else { false }
      try mustHold(machine.isFed == isOn, "it says whether it is fed")
      return true
    }

    private mutating func set(
      _ new: Int, with transition: (inout ObservedValueMachine<Int>, Int) -> Void
    ) {
      transition(&machine, new)
      if (tellsRepeats || new != value) && !ids.isEmpty { pending.append((new, ids)) }
      value = new
    }

    private mutating func hear(isLate: Bool) -> Bool {
      switch feed {
      case .starting(let run) where !isLate, .on(let run) where !isLate:
        set(value + 1) { $0.hear($1, from: run) }
      default:
        // The word of a run that is over.
        guard isLate, let lastRun else { return false }
        machine.hear(value + 1, from: lastRun)
      }
      return true
    }

    private mutating func nextStep() throws {
      switch (machine.nextStep(), feed) {
      case (.start(let run)?, .off):
        try mustHold(!ids.isEmpty, "nobody listens")
        try mustHold(run != lastRun, "runs are told apart")
        feed = .starting(run)
      case (.end(let subscription)?, .on(let run)):
        try mustHold(ids.isEmpty && subscription == feedSubscription, "somebody listens")
        feed = .ending
        lastRun = run
      case (nil, .off): try mustHold(ids.isEmpty, "somebody listens to nothing")
      case (nil, .on): try mustHold(!ids.isEmpty, "nobody listens any more")
      case (nil, _): break
      default: try mustHold(false, "two threads are at the feed")
      }
    }

    private mutating func done() throws -> Bool {
      switch feed {
      case .starting(let run):
        machine.started(feedSubscription)
        feed = .on(run)
      case .ending:
        machine.ended()
        feed = .off
      case .off, .on: return false
      }
      return true
    }
  }

  @Test("The feed runs while somebody listens", arguments: [false, true])
  func everySequence(tellsRepeats: Bool) {
    let prelude = [Step.subscribe, .nextStep, .done, .unsubscribe, .nextStep]
    exhaust(
      "ObservedValueMachine", events: Step.allCases, length: 5,
      making: { Walk(tellsRepeats: tellsRepeats, after: prelude) }
    ) { walk, step in try walk.take(step) }
  }
}

/// The sums are what the stores are at when all has been told, in whichever order that was, and
/// meanwhile none is shown below zero. Who listens hears of each move.
@Suite("ActivityMachine, every sequence") struct ActivityExhaustiveTests {
  private enum Step { case move(Int, ActivityPhase), tell(isFirst: Bool), subscribe, deliver }

  private struct Walk {
    private var machine = ActivityMachine()
    private let heard = Tape<OperationActivity>()
    private var phases: [ActivityPhase] = [.idle, .idle]
    private var untold: [(old: ActivityPhase, new: ActivityPhase)] = []
    private var isHeard = false
    private var pendingCount = 0

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .move(let store, let phase):
        guard phase != phases[store] else { return false }
        untold.append((phases[store], phase))
        phases[store] = phase
      case .tell(let isFirst):
        guard !untold.isEmpty else { return false }
        let move = untold.remove(at: isFirst ? 0 : untold.count - 1)
        machine.move(.query, from: move.old, to: move.new)
        if isHeard { pendingCount += 1 }
      case .subscribe:
        guard !isHeard else { return false }
        isHeard = true
        _ = machine.deliveries.subscribe(Subscriber { [heard] in heard.note($0) })
      case .deliver:
        let told = OperationTests.deliver(&machine, to: heard)
        try mustHold(told.count == pendingCount, "each move is told")
        try mustHold(told.isEmpty || told.last == machine.shown, "the last one is what is shown")
        pendingCount = 0
      }
      try check()
      return true
    }

    private func check() throws {
      let counts = machine.shown.queries
      let all = [counts.running, counts.paused, counts.failed]
      try mustHold(all.allSatisfy { $0 >= 0 }, "a count is below zero")
      guard untold.isEmpty else { return }
      let expected = OperationActivity.Counts(
        running: phases.count { $0 == .running }, paused: phases.count { $0 == .paused },
        failed: phases.count { $0 == .failed })
      try mustHold(counts == expected, "the counts are \(expected), and not \(counts)")
    }
  }

  @Test("The sums are right when all has been told, and never below zero") func everySequence() {
    let moves = [0, 1].flatMap { store in
      [ActivityPhase.idle, .running, .paused, .failed].map { Step.move(store, $0) }
    }
    exhaust(
      "ActivityMachine",
      events: moves + [.tell(isFirst: true), .tell(isFirst: false), .subscribe, .deliver],
      length: 5, from: Walk()
    ) { walk, step in try walk.take(step) }
  }
}
