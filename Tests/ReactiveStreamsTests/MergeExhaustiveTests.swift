import TestSupport
import Testing

@testable import ReactiveStreams

/// Every element is delivered, in the order of the calls, and none of a side that has ended. The end is
/// delivered once, when both sides have ended.
@Suite("BroadcastMachine of two sides, every sequence")
struct MergeExhaustiveTests {
  private enum Step: CaseIterable {
    case first, second, finishFirst, finishSecond, deliver
  }

  private struct Walk {
    private var machine = BroadcastMachine<Int>(sideCount: 2)
    private let received = Tape<String>()
    private var isOpen = [true, true]
    private var pending: [String] = []
    private var next = 0

    init() {
      _ = machine.deliveries.subscribe(
        Subscriber { [received] signal in received.note(signal.element.map(String.init) ?? "end") })
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      if step == .deliver {
        let delivered = deliver(&machine, to: received)
        try mustHold(delivered == pending, "\(pending) is delivered, and not \(delivered)")
        pending = []
        return true
      }
      let side = step == .first || step == .finishFirst ? 0 : 1
      let isEnd = step == .finishFirst || step == .finishSecond
      machine.send(isEnd ? .finished : .element(next), from: side)
      if isOpen[side] {
        if isEnd { isOpen[side] = false }
        if !isEnd || isOpen == [false, false] { pending.append(isEnd ? "end" : "\(next)") }
      }
      try mustHold(received.take().isEmpty, "events are received in a delivery only")
      return true
    }
  }

  @Test("It delivers all elements, and the end once")
  func everySequence() {
    exhaust("BroadcastMachine of two sides", events: Step.allCases, length: 8, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
