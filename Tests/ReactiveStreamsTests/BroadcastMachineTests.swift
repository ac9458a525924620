import Testing

@testable import ReactiveStreams

@Suite("BroadcastMachine")
struct BroadcastMachineTests {
  private var machine = BroadcastMachine<Int>()
  private let heard = Recorder<String>()

  private func subscriber(_ name: String) -> Subscriber<StreamSignal<Int>> {
    Subscriber { [heard] signal in heard.record(name + (signal.element.map(String.init) ?? "end")) }
  }

  private mutating func drain() {
    var delivery = machine.deliveries.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }

  @Test("Open: elements are for those who are there")
  mutating func open() {
    machine.send(.element(1))
    _ = machine.subscribe(subscriber("a"))
    machine.send(.element(2))
    _ = machine.subscribe(subscriber("b"))
    machine.send(.element(3))
    drain()
    #expect(heard.elements == ["a2", "a3", "b3"])
  }

  @Test("Finished: the end comes once, and nothing after it")
  mutating func finished() {
    _ = machine.subscribe(subscriber("a"))
    machine.send(.element(1))
    machine.send(.finished)
    machine.send(.finished)
    machine.send(.element(2))
    drain()
    #expect(heard.elements == ["a1", "aend"])
  }

  @Test("Finished: who comes late hears the end at once, and the others do not hear it again")
  mutating func late() {
    _ = machine.subscribe(subscriber("a"))
    machine.send(.finished)
    _ = machine.subscribe(subscriber("b"))
    machine.send(.element(1))
    drain()
    #expect(heard.elements == ["aend", "bend"])
  }

  @Test("A finish that nobody hears is remembered")
  mutating func finishAlone() {
    machine.send(.finished)
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.subscribe(subscriber("a"))
    drain()
    #expect(heard.elements == ["aend"])
  }
}
