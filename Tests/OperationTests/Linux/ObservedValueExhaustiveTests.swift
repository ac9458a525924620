import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// One thread at a time starts or ends the feed: it starts for subscribers, and ends without them. Reports of a
/// run that has ended are ignored. A read returns the value, or what it measured while there is none. A change
/// is delivered to all current subscribers, if one of them may have read another value.
@Suite("ObservedValueMachine, every sequence") struct ObservedValueExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribe, change, read, set, report, reportLate, nextStep, done, deliver
  }

  enum Kind: CaseIterable {
    case plain, notifyingRepeats, measured
  }

  private struct Walk {
    private enum Feed: Equatable { case off, starting(UInt64), on(UInt64), ending }

    private var machine: ObservedValueMachine<Int>
    private let kind: Kind
    private let delivered = Tape<Int>()
    private var feed = Feed.off
    private var lastRun: UInt64?
    private var ids: [UInt64] = []
    /// The value that a measurement or a report has.
    private var world = 0
    private var value: Int?
    /// The values that a current subscriber may have measured.
    private var measured: Set<Int> = []
    private var pending: [(value: Int, recipients: [UInt64])] = []

    /// A value whose feed has run once, so that there is a run that can report late.
    init(_ kind: Kind, after steps: [Step]) {
      value = kind == .measured ? nil : 0
      machine = ObservedValueMachine(value, notifiesRepeats: kind == .notifyingRepeats)
      self.kind = kind
      for step in steps { _ = try? take(step) }
    }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .subscribe:
        ids.append(machine.deliveries.subscribe(Subscriber { [delivered] in delivered.note($0) }))
      case .unsubscribe:
        guard !ids.isEmpty else { return false }
        let id = ids.removeFirst()
        try mustHold(machine.deliveries.unsubscribe(id) != nil, "a subscriber can be removed")
        pending = pending.map { ($0.value, $0.recipients.filter { $0 != id }) }
      case .change: world += 1
      case .read:
        if value == nil, !ids.isEmpty { measured.insert(world) }
        try mustHold(machine.read(world) == value ?? world, "a read returns the value")
      case .set:
        machine.set(world)
        noteValue()
      case .report, .reportLate:
        guard report(isLate: step == .reportLate) else { return false }
      case .nextStep: return try nextStep()
      case .done: return done()
      case .deliver:
        let values = OperationTests.deliver(&machine, to: delivered)
        let expected = pending.flatMap { change in change.recipients.map { _ in change.value } }
        try mustHold(values == expected, "\(expected) are delivered, and not \(values)")
        pending = []
      }
      try mustHold(machine.value == value, "the value is \(value.map { "\($0)" } ?? "unknown")")
      try mustHold(machine.deliveries.subscriberCount == ids.count, "there are \(ids.count)")
      return true
    }

    private mutating func noteValue() {
      let read = value.map { [$0] } ?? measured
      let isNotified = kind == .notifyingRepeats || !read.isSubset(of: [world])
      if isNotified, !ids.isEmpty { pending.append((world, ids)) }
      (value, measured) = (world, [])
    }

    private mutating func report(isLate: Bool) -> Bool {
      switch feed {
      case .starting(let run) where !isLate, .on(let run) where !isLate:
        machine.set(world, fromRun: run)
        noteValue()
      default:
        guard isLate, let lastRun else { return false }
        machine.set(world, fromRun: lastRun)
      }
      return true
    }

    private mutating func nextStep() throws -> Bool {
      switch feed {
      case .off:
        let run = machine.runToStart
        try mustHold((run != nil) == !ids.isEmpty, "the feed starts if there are subscribers")
        guard let run else { break }
        try mustHold(run != lastRun, "two runs have one number")
        feed = .starting(run)
      case .on(let run):
        let hasEnded = machine.endRun()
        try mustHold(hasEnded == ids.isEmpty, "the feed ends if there are no subscribers")
        guard hasEnded else { break }
        (feed, lastRun) = (.ending, run)
        if kind == .measured { value = nil }
      case .starting, .ending: return false
      }
      return true
    }

    private mutating func done() -> Bool {
      switch feed {
      case .starting(let run): feed = .on(run)
      case .ending:
        machine.forgetMeasured()
        feed = .off
        if ids.isEmpty { measured = [] }
      case .off, .on: return false
      }
      return true
    }
  }

  @Test(
    "The feed runs while there are subscribers, and no change is missed", arguments: Kind.allCases)
  func everySequence(kind: Kind) {
    let prelude = [Step.subscribe, .nextStep, .done, .unsubscribe, .nextStep]
    exhaust(
      "ObservedValueMachine, \(kind)", events: Step.allCases, length: 5,
      making: { Walk(kind, after: prelude) }
    ) { walk, step in try walk.take(step) }
  }
}
