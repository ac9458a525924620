import TestSupport
import Testing

@testable import ReactiveStreams

/// Performs the queued deliveries, and returns them as text.
func deliver<Machine: DeliveryMachine>(_ machine: inout Machine, to tape: Tape<String>)
  -> [String]
{
  machine.deliveries.deliver()
  return tape.take()
}

/// Only elements of the newest inner source are delivered; queued elements of an earlier one are
/// dropped. Every subscription is returned once. The end is delivered once, when the outer source and the
/// newest inner source have ended, and not after a cancellation.
@Suite("FlatMapLatestMachine, every sequence")
struct FlatMapLatestMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case outer, endOuter, cancel, deliver
    case innerNewest, innerEarlier, endNewest, endEarlier
  }

  private struct Walk {
    private struct Inner {
      let epoch: StreamEpoch
      let subscription: LateSubscription
      var isOpen = true
    }

    private var machine = FlatMapLatestMachine<Int>()
    private let received = Tape<String>()
    private var inners: [Inner] = []
    /// The subscription that the machine stores.
    private var held: LateSubscription?
    private var isOuterOpen = true
    private var isCancelled = false
    private var pending: [String] = []
    private var next = 0

    init() {
      _ = machine.deliveries.subscribe(
        Subscriber { [received] signal in received.note(signal.element.map(String.init) ?? "end") })
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .outer: try beginEpoch()
      case .endOuter:
        machine.finishOuter()
        if isOuterOpen, !(inners.last?.isOpen ?? false) { pending.append("end") }
        isOuterOpen = false
      case .cancel:
        try mustHold(machine.cancel() === held, "a cancellation returns the stored subscription")
        held = nil
        (isOuterOpen, isCancelled) = (false, true)
      case .deliver:
        let delivered = deliver(&machine, to: received)
        try mustHold(
          delivered == pending, "\(pending) is delivered, and not \(delivered)")
        pending = []
      default: return try takeInner(step)
      }
      return true
    }

    private mutating func beginEpoch() throws {
      let beginning = machine.beginEpoch()
      try mustHold((beginning != nil) == isOuterOpen, "an epoch begins while the outer is open")
      guard let beginning else { return }
      // A cancellation removes the epoch, but none begins after it.
      try mustHold(
        beginning.earlier === inners.last?.epoch, "the earlier epoch is returned, to be ended")
      inners.append(Inner(epoch: beginning.epoch, subscription: beginning.inner))
      try mustHold(beginning.earlierInner === held, "the earlier subscription is returned")
      try mustHold(beginning.dropped.count == pending.count, "queued elements are dropped")
      held = beginning.inner
      pending = []
    }

    private mutating func takeInner(_ step: Step) throws -> Bool {
      let isNewest = step == .innerNewest || step == .endNewest
      let index = isNewest ? inners.count - 1 : inners.count - 2
      guard inners.indices.contains(index) else { return false }
      let counts = isNewest && !isCancelled && inners[index].isOpen
      switch step {
      case .innerNewest, .innerEarlier:
        let back = machine.receiveInner(.element(next), epoch: inners[index].epoch)
        try mustHold(back == nil, "an element returns no subscription")
        if counts { pending.append("\(next)") }
      default: try end(index, counts)
      }
      return true
    }

    private mutating func end(_ index: Int, _ counts: Bool) throws {
      let back = machine.receiveInner(.finished, epoch: inners[index].epoch)
      try mustHold(back === (counts ? held : nil), "the end returns the stored subscription")
      inners[index].isOpen = false
      guard counts else { return }
      held = nil
      if !isOuterOpen { pending.append("end") }
    }
  }

  @Test("It delivers the elements of the newest inner source, and returns every subscription")
  func everySequence() {
    exhaust("FlatMapLatestMachine", events: Step.allCases, length: 7, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
