import TestSupport
import Testing

@testable import ReactiveStreams

/// A subscriber receives the elements that are sent after it subscribed, and the end once. After the
/// end, a new subscriber receives only the end.
@Suite("BroadcastMachine, every sequence")
struct BroadcastMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribeOldest, unsubscribeNewest, send, finish, deliver
  }

  private struct Walk {
    private var machine = BroadcastMachine<Int>()
    private let received = Tape<(name: Int, text: String)>()
    private var subscribers: [(name: Int, id: UInt64)] = []
    private var pending: [(text: String, names: [Int])] = []
    private var isFinished = false
    private var next = 0

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .subscribe: subscribe(next)
      case .unsubscribeOldest, .unsubscribeNewest:
        guard !subscribers.isEmpty else { return false }
        let index = step == .unsubscribeOldest ? 0 : subscribers.count - 1
        let (name, id) = subscribers.remove(at: index)
        try mustHold(machine.deliveries.unsubscribe(id) != nil, "a subscriber can be removed")
        pending = pending.map { ($0.text, $0.names.filter { $0 != name }) }
      case .send:
        machine.send(.element(next))
        expect("\(next)")
      case .finish:
        machine.send(.finished)
        expect("end")
        isFinished = true
      case .deliver: try deliver()
      }
      try mustHold(received.take().isEmpty, "events are received in a delivery only")
      try mustHold(machine.deliveries.subscriberCount == subscribers.count, "it counts them")
      return true
    }

    private mutating func subscribe(_ name: Int) {
      let subscriber = Subscriber<StreamSignal<Int>> { [received] signal in
        received.note((name, signal.element.map(String.init) ?? "end"))
      }
      subscribers.append((name, machine.subscribe(subscriber)))
      if isFinished { pending.append(("end", [name])) }
    }

    private mutating func expect(_ text: String) {
      if !isFinished { pending.append((text, subscribers.map(\.name))) }
    }

    private mutating func deliver() throws {
      machine.deliveries.deliver()
      let expected = pending.flatMap { entry in entry.names.map { "\($0) \(entry.text)" } }
      let delivered = received.take().map { "\($0.name) \($0.text)" }
      try mustHold(delivered == expected, "\(expected) is delivered, and not \(delivered)")
      pending = []
    }
  }

  @Test("A subscriber receives the elements that are sent while it is subscribed, and the end")
  func everySequence() {
    exhaust("BroadcastMachine", events: Step.allCases, length: 7, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}
