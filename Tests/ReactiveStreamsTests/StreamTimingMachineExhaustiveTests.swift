import TestSupport
import Testing

@testable import ReactiveStreams

/// The pending element, the timer and the end are those of a simple model. Only the newest timer counts.
/// Every timer is stored once and returned once, and so is every element that is not delivered.
@Suite("StreamTimingMachine, every sequence")
struct StreamTimingMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case element, finish, cancel, deliver
    case startedNewest, startedEarlier, fireNewest, fireEarlier
  }

  private struct Walk {
    private struct Timer {
      let id: UInt64
      var subscription: OperationSubscription?
    }

    private let rule: StreamTimingRule
    private var machine: StreamTimingMachine<Int>
    private let received = Tape<String>()
    private var timers: [Timer] = []
    /// Whether the newest timer has neither fired nor ended.
    private var isRunning = false
    /// The subscription that the machine stores.
    private var held: OperationSubscription?
    private var pending: Int?
    private var isOver = false
    private var queued: [String] = []
    private var next = 0

    init(rule: StreamTimingRule) {
      self.rule = rule
      machine = StreamTimingMachine(rule: rule)
      _ = machine.deliveries.subscribe(
        Subscriber { [received] signal in received.note(signal.element.map(String.init) ?? "end") })
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .element: try receive()
      case .finish:
        let effects = machine.receive(.finished)
        if !isOver { queued += (pending.map { ["\($0)"] } ?? []) + ["end"] }
        try end(effects, dropped: nil)
      case .cancel: try end(machine.cancel(), dropped: pending)
      case .deliver:
        let delivered = deliver(&machine, to: received)
        try mustHold(delivered == queued, "\(queued) is delivered, and not \(delivered)")
        queued = []
      case .startedNewest: return try store(timers.count - 1)
      case .startedEarlier: return try store(timers.count - 2)
      case .fireNewest: return try fire(timers.count - 1)
      case .fireEarlier: return try fire(timers.count - 2)
      }
      try mustHold(received.take().isEmpty, "events are received in a delivery only")
      return true
    }

    private mutating func receive() throws {
      let effects = machine.receive(.element(next))
      if isOver { return try check(effects, starts: false, timer: nil, dropped: nil) }
      if rule == .debounce {
        try check(effects, starts: true, timer: held, dropped: pending)
        held = nil
        pending = next
      } else if isRunning {
        try check(effects, starts: false, timer: nil, dropped: pending)
        pending = next
      } else {
        try check(effects, starts: true, timer: nil, dropped: nil)
        queued.append("\(next)")
      }
    }

    private mutating func store(_ index: Int) throws -> Bool {
      guard timers.indices.contains(index), timers[index].subscription == nil else { return false }
      let subscription = OperationSubscription {}
      timers[index].subscription = subscription
      let counts = index == timers.count - 1 && isRunning
      let back = machine.setTimer(subscription, id: timers[index].id)
      try mustHold(back == (counts ? nil : subscription), "a late timer is returned")
      if counts { held = subscription }
      return true
    }

    private mutating func fire(_ index: Int) throws -> Bool {
      guard timers.indices.contains(index) else { return false }
      let counts = index == timers.count - 1 && isRunning
      let effects = machine.fire(timers[index].id)
      if counts {
        isRunning = false
        let timer = held.take()
        let element = pending.take()
        if let element { queued.append("\(element)") }
        try check(
          effects, starts: rule == .throttle && element != nil, timer: timer, dropped: nil)
      } else {
        try check(effects, starts: false, timer: nil, dropped: nil)
      }
      return true
    }

    private mutating func end(
      _ effects: StreamTimingMachine<Int>.Effects, dropped: Int?
    ) throws {
      try check(effects, starts: false, timer: held, dropped: dropped)
      (held, pending, isRunning, isOver) = (nil, nil, false, true)
    }

    private mutating func check(
      _ effects: StreamTimingMachine<Int>.Effects, starts: Bool, timer: OperationSubscription?,
      dropped: Int?
    ) throws {
      try mustHold((effects.start != nil) == starts, "a timer is started: \(starts)")
      try mustHold(effects.timer == timer, "the stored timer is returned when it ends")
      try mustHold(effects.dropped?.element == dropped, "\(dropped ?? 0) is dropped")
      guard let id = effects.start else { return }
      try mustHold(!timers.contains { $0.id == id }, "a timer has a new identifier")
      timers.append(Timer(id: id))
      isRunning = true
    }
  }

  @Test("It agrees with a simple model", arguments: [StreamTimingRule.debounce, .throttle])
  func everySequence(rule: StreamTimingRule) {
    exhaust(
      "StreamTimingMachine, \(rule)", events: Step.allCases, length: 7, from: Walk(rule: rule)
    ) { walk, step in try walk.take(step) }
  }
}
