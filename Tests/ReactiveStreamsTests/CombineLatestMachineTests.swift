import TestSupport
import Testing

@testable import ReactiveStreams

@Suite("CombineLatestMachine")
struct CombineLatestMachineTests {
  private typealias Machine = CombineLatestMachine<String>

  private let received = Recorder<String>()

  private func machine() -> Machine {
    var machine = Machine(count: 2)
    _ = machine.deliveries.subscribe(
      Subscriber { [received] signal in
        received.record(signal.element?.joined() ?? "end")
      })
    return machine
  }

  private func drain(_ machine: inout Machine) {
    machine.deliveries.deliver()
  }

  @Test("Elements are delivered when every source has one, and they are the newest ones")
  func pairs() {
    var machine = machine()
    _ = machine.receive(.element("1"), from: 0)
    _ = machine.receive(.element("2"), from: 0)
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.receive(.element("a"), from: 1)
    _ = machine.receive(.element("b"), from: 1)
    _ = machine.receive(.element("3"), from: 0)
    drain(&machine)
    #expect(received.elements == ["2a", "2b", "3b"])
  }

  @Test("A replaced element is returned, to be released without the lock")
  func displaced() {
    var machine = machine()
    #expect(machine.receive(.element("1"), from: 0) == nil)
    #expect(machine.receive(.element("2"), from: 0) == "1")
    #expect(machine.receive(.element("a"), from: 1) == nil)
    #expect(machine.receive(.element("b"), from: 1) == "a")
    #expect(machine.receive(.finished, from: 0) == nil)
    #expect(machine.receive(.finished, from: 1) == nil)
  }

  @Test("The last element of an ended side is in later pairs")
  func oneEnded() {
    var machine = machine()
    _ = machine.receive(.element("1"), from: 0)
    _ = machine.receive(.finished, from: 0)
    _ = machine.receive(.element("a"), from: 1)
    _ = machine.receive(.finished, from: 1)
    drain(&machine)
    #expect(received.elements == ["1a", "end"])
  }

  /// The best time of the first element of one of many sources.
  private func firstElementTime(count: Int) -> Duration {
    (0..<5).map { _ in
      var machine = Machine(count: count)
      let time = processorTime {
        for index in 0..<count { _ = machine.receive(.element(""), from: index) }
      }
      return time / count
    }.min() ?? .zero
  }

  @Test("The first element of one of three thousand sources costs little more than of a hundred")
  func firstElementCost() {
    let (few, many) = (firstElementTime(count: 100), firstElementTime(count: 3_000))
    #expect(many < few * 6, "100: \(few), 3,000: \(many)")
  }
}
