import TestSupport
import Testing

@testable import ReactiveStreams

/// The events of the machine.
private enum Step: CaseIterable {
  case offer, poll, read, finish, cancel
}

/// The machine beside a simple model of it that stores every element and the waiter.
private struct Pair {
  private let policy: StreamBuffering
  private var machine: StreamMachine<Int, Int>

  private var kept: [Int] = []
  private var waiter: Int?
  private var isFinished = false
  private var nextNumber = 0

  init(policy: StreamBuffering) {
    self.policy = policy
    machine = StreamMachine(policy: policy)
  }

  private mutating func number() -> Int {
    nextNumber += 1
    return nextNumber
  }

  /// Takes one step with both, and returns whether they still agree.
  mutating func agrees(after step: Step) -> Bool {
    let agrees =
      switch step {
      case .offer: offer(number())
      case .poll: take(nil)
      case .read: take(number())
      case .finish: end(with: machine.finish())
      case .cancel: cancel()
      }
    return agrees && machine.pendingCount == kept.count && (waiter == nil || kept.isEmpty)
  }

  private mutating func offer(_ element: Int) -> Bool {
    let offer = machine.offer(element)
    if isFinished {
      guard case .dropped = offer else { return false }
    } else if let expected = waiter.take() {
      guard case .resume(expected) = offer else { return false }
    } else if case .oldest(let limit) = policy, kept.count == limit {
      guard case .dropped = offer else { return false }
    } else {
      kept.append(element)
      guard case .kept(let old) = offer else { return false }
      if case .newest(let limit) = policy, kept.count > limit {
        return old == kept.removeFirst()
      }
      return old == nil
    }
    return true
  }

  private mutating func take(_ reader: Int?) -> Bool {
    let take = machine.take(orWait: reader)
    if !kept.isEmpty {
      guard case .element(kept.removeFirst()) = take else { return false }
    } else if isFinished {
      guard case .end = take else { return false }
    } else {
      guard case .wait(let earlier) = take else { return false }
      guard let reader else { return earlier == nil }
      defer { waiter = reader }
      return earlier == waiter
    }
    return true
  }

  private mutating func end(with resumed: Int?) -> Bool {
    isFinished = true
    return resumed == waiter.take()
  }

  private mutating func cancel() -> Bool {
    var (resumed, dropped) = machine.cancel()
    for element in kept where dropped.popFirst() != element { return false }
    kept = []
    return end(with: resumed) && dropped.isEmpty
  }
}

@Suite("StreamMachine, every sequence")
struct StreamMachineExhaustiveTests {
  @Test(
    "It agrees with a simple model in every sequence of up to eight events",
    arguments: [StreamBuffering.all, .oldest(1), .oldest(2), .newest(1), .newest(2)])
  func everySequence(policy: StreamBuffering) {
    exhaust(
      "StreamMachine, \(policy)", events: Step.allCases, length: 8, from: Pair(policy: policy)
    ) { pair, step in
      try mustHold(pair.agrees(after: step), "the machine and its model agree")
      return true
    }
  }
}
