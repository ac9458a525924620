import TestSupport
import Testing

@testable import ReactiveStreams

/// Whoever subscribes hears what is sent from then on and the end, once; after the end of the
/// broadcast there is nothing but the end, for each who still comes.
@Suite("BroadcastMachine, every sequence")
struct BroadcastMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribeOldest, unsubscribeNewest, send, finish, deliver
  }

  private struct Walk {
    private var machine = BroadcastMachine<Int>()
    private let heard = Tape<(name: Int, text: String)>()
    private var listeners: [(name: Int, id: UInt64)] = []
    private var pending: [(text: String, names: [Int])] = []
    private var isFinished = false
    private var next = 0

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .subscribe: subscribe(next)
      case .unsubscribeOldest, .unsubscribeNewest:
        guard !listeners.isEmpty else { return false }
        let index = step == .unsubscribeOldest ? 0 : listeners.count - 1
        let (name, id) = listeners.remove(at: index)
        try mustHold(machine.deliveries.unsubscribe(id) != nil, "who is there can go")
        pending = pending.map { ($0.text, $0.names.filter { $0 != name }) }
      case .send:
        machine.send(.element(next))
        tell("\(next)")
      case .finish:
        machine.send(.finished)
        tell("end")
        isFinished = true
      case .deliver: try deliver()
      }
      try mustHold(heard.take().isEmpty, "nobody hears of anything but in a delivery")
      try mustHold(machine.deliveries.subscriberCount == listeners.count, "it counts")
      return true
    }

    private mutating func subscribe(_ name: Int) {
      let subscriber = Subscriber<StreamSignal<Int>> { [heard] signal in
        heard.note((name, signal.element.map(String.init) ?? "end"))
      }
      listeners.append((name, machine.subscribe(subscriber)))
      if isFinished { pending.append(("end", [name])) }
    }

    private mutating func tell(_ text: String) {
      if !isFinished { pending.append((text, listeners.map(\.name))) }
    }

    private mutating func deliver() throws {
      var delivery = machine.deliveries.beginDraining()
      while let current = delivery {
        current.perform()
        delivery = machine.deliveries.takeNext()
      }
      let expected = pending.flatMap { entry in entry.names.map { "\($0) \(entry.text)" } }
      let told = heard.take().map { "\($0.name) \($0.text)" }
      try mustHold(told == expected, "\(expected) is told, and not \(told)")
      pending = []
    }
  }

  @Test("Everybody hears what is sent while he is there, and the end once")
  func everySequence() {
    exhaust("BroadcastMachine", events: Step.allCases, length: 7, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}
