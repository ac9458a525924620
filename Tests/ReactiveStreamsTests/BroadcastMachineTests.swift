import TestSupport
import Testing

@testable import ReactiveStreams

@Suite("BroadcastMachine")
struct BroadcastMachineTests {
  private var machine = BroadcastMachine<Int>()
  private let received = Recorder<String>()

  private func subscriber(_ name: String) -> Subscriber<StreamSignal<Int>> {
    Subscriber { [received] signal in
      received.record(name + (signal.element.map(String.init) ?? "end"))
    }
  }

  private mutating func drain() {
    machine.deliveries.deliver()
  }

  @Test("Open: an element is delivered to the present subscribers")
  mutating func open() {
    machine.send(.element(1))
    _ = machine.subscribe(subscriber("a"))
    machine.send(.element(2))
    _ = machine.subscribe(subscriber("b"))
    machine.send(.element(3))
    drain()
    #expect(received.elements == ["a2", "a3", "b3"])
  }

  @Test("Finished: the end is delivered once, and nothing after it")
  mutating func finished() {
    _ = machine.subscribe(subscriber("a"))
    machine.send(.element(1))
    machine.send(.finished)
    machine.send(.finished)
    machine.send(.element(2))
    drain()
    #expect(received.elements == ["a1", "aend"])
  }

  @Test("Finished: a new subscriber receives the end at once, and the others not again")
  mutating func late() {
    _ = machine.subscribe(subscriber("a"))
    machine.send(.finished)
    _ = machine.subscribe(subscriber("b"))
    machine.send(.element(1))
    drain()
    #expect(received.elements == ["aend", "bend"])
  }

  @Test("A finish without subscribers is delivered to a later one")
  mutating func finishAlone() {
    machine.send(.finished)
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.subscribe(subscriber("a"))
    drain()
    #expect(received.elements == ["aend"])
  }
}
