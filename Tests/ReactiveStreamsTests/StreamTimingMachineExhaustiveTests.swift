import TestSupport
import Testing

@testable import ReactiveStreams

/// The pending element, the timer and the end are those of a simple model. Only the newest timer counts.
/// Every timer is returned once when it ends, and every element that is replaced or dropped is returned.
@Suite("StreamTimingMachine, every sequence")
struct StreamTimingMachineExhaustiveTests {
  private enum Step: CaseIterable { case element, finish, cancel, deliver, fireNewest, fireEarlier }

  private struct Walk {
    private let rule: StreamTimingRule
    private var machine: StreamTimingMachine<Int>
    private let received = Tape<String>()
    private var timers: [StreamTimingMachine<Int>.Timer] = []
    /// Whether the newest timer has neither fired nor ended.
    private var isRunning = false
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
        let change = machine.receive(.finished)
        if !isOver { queued += (pending.map { ["\($0)"] } ?? []) + ["end"] }
        try end(change)
      case .cancel: try end(machine.cancel())
      case .deliver:
        let delivered = deliver(&machine, to: received)
        try mustHold(delivered == queued, "\(queued) is delivered, and not \(delivered)")
        queued = []
      case .fireNewest: return try fire(timers.count - 1)
      case .fireEarlier: return try fire(timers.count - 2)
      }
      try mustHold(received.take().isEmpty, "events are received in a delivery only")
      return true
    }

    private mutating func receive() throws {
      let change = machine.receive(.element(next))
      if isOver { return try check(change, starts: false, ends: false) }
      if rule == .throttle, !isRunning {
        queued.append("\(next)")
        return try check(change, starts: true, ends: false)
      }
      try check(change, starts: rule == .debounce, ends: rule == .debounce, dropped: pending)
      pending = next
    }

    private mutating func fire(_ index: Int) throws -> Bool {
      guard timers.indices.contains(index) else { return false }
      let counts = index == timers.count - 1 && isRunning
      let change = machine.fire(timers[index])
      guard counts else {
        try check(change, starts: false, ends: false)
        return true
      }
      let element = pending.take()
      if let element { queued.append("\(element)") }
      try check(change, starts: rule == .throttle && element != nil, ends: true, dropped: element)
      return true
    }

    private mutating func end(_ change: StreamTimingMachine<Int>.Change) throws {
      try check(change, starts: false, ends: true, dropped: pending)
      (pending, isOver) = (nil, true)
    }

    /// Checks what a change returns: a new timer, the running one, and the element that is released.
    private mutating func check(
      _ change: StreamTimingMachine<Int>.Change, starts: Bool, ends: Bool, dropped: Int? = nil
    ) throws {
      try mustHold((change.started != nil) == starts, "a timer is started: \(starts)")
      let ended = ends && isRunning ? timers.last : nil
      try mustHold(change.ended === ended, "the running timer is returned when it ends")
      try mustHold(change.dropped?.element == dropped, "\(dropped ?? 0) is returned")
      if ends { isRunning = false }
      guard let timer = change.started else { return }
      try mustHold(!timers.contains { $0 === timer }, "each timer is a new one")
      timers.append(timer)
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
