import Testing

@testable import ReactiveStreams

@Suite("CombineLatestMachine")
struct CombineLatestMachineTests {
  private typealias Machine = CombineLatestMachine<Int, String>

  private let received = Recorder<String>()

  private func machine() -> Machine {
    var machine = Machine()
    _ = machine.deliveries.subscribe(
      Subscriber { [received] signal in
        received.record(signal.element.map { "\($0.0)\($0.1)" } ?? "end")
      })
    return machine
  }

  private func drain(_ machine: inout Machine) {
    var delivery = machine.deliveries.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }

  @Test("A pair is delivered when both sides have an element, and has the newest of each")
  func pairs() {
    var machine = machine()
    _ = machine.receive(first: .element(1))
    _ = machine.receive(first: .element(2))
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.receive(second: .element("a"))
    _ = machine.receive(second: .element("b"))
    _ = machine.receive(first: .element(3))
    drain(&machine)
    #expect(received.elements == ["2a", "2b", "3b"])
  }

  @Test("A replaced element is returned, to be released without the lock")
  func displaced() {
    var machine = machine()
    #expect(machine.receive(first: .element(1)) == nil)
    #expect(machine.receive(first: .element(2)) == 1)
    #expect(machine.receive(second: .element("a")) == nil)
    #expect(machine.receive(second: .element("b")) == "a")
    #expect(machine.receive(first: .finished) == nil)
    #expect(machine.receive(second: .finished) == nil)
  }

  @Test("The last element of an ended side stays in later pairs")
  func oneEnded() {
    var machine = machine()
    _ = machine.receive(first: .element(1))
    _ = machine.receive(first: .finished)
    _ = machine.receive(second: .element("a"))
    _ = machine.receive(second: .finished)
    drain(&machine)
    #expect(received.elements == ["1a", "end"])
  }
}
