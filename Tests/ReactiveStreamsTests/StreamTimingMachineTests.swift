import TestSupport
import Testing

@testable import ReactiveStreams

@Suite("StreamTimingMachine")
struct StreamTimingMachineTests {
  private typealias Machine = StreamTimingMachine<Int>

  private let received = Recorder<String>()
  private let rules = [StreamTimingRule.debounce, .throttle]

  private func machine(_ rule: StreamTimingRule) -> Machine {
    var machine = Machine(rule: rule)
    _ = machine.deliveries.subscribe(
      Subscriber { [received] signal in received.record(signal.element.map(String.init) ?? "end") })
    return machine
  }

  private func drain(_ machine: inout Machine) {
    machine.deliveries.deliver()
  }

  @Test("debounce: every element replaces the pending one, and starts a new timer")
  func debounce() throws {
    var machine = machine(.debounce)
    let first = machine.receive(.element(1))
    #expect(first.ended == nil && first.dropped == nil)
    let second = machine.receive(.element(2))
    #expect(second.started != nil && second.started !== first.started)
    #expect(second.ended === first.started)
    #expect(second.dropped?.element == 1)
    #expect(machine.deliveries.pendingCount == 0)
    let fired = machine.fire(try #require(second.started))
    #expect(fired.started == nil && fired.ended === second.started)
    drain(&machine)
    #expect(received.elements == ["2"])
  }

  @Test("throttle: an element is delivered at once, and later ones when the timer fires")
  func throttle() throws {
    var machine = machine(.throttle)
    let first = try #require(machine.receive(.element(1)).started)
    let second = machine.receive(.element(2))
    #expect(second.started == nil && second.ended == nil && second.dropped == nil)
    let third = machine.receive(.element(3))
    #expect(third.started == nil && third.ended == nil && third.dropped?.element == 2)
    let fired = machine.fire(first)
    #expect(fired.ended === first)
    #expect(fired.started != nil && fired.started !== first)
    #expect(machine.fire(try #require(fired.started)).started == nil)
    drain(&machine)
    #expect(received.elements == ["1", "3"])
    #expect(machine.receive(.element(4)).started != nil)
    drain(&machine)
    #expect(received.elements == ["1", "3", "4"])
  }

  @Test("A timer that fires late has no effect")
  func lateTimer() throws {
    var machine = machine(.debounce)
    let first = try #require(machine.receive(.element(1)).started)
    let second = try #require(machine.receive(.element(2)).started)
    #expect(machine.fire(first).ended == nil)
    #expect(machine.deliveries.pendingCount == 0)
    #expect(machine.fire(second).ended != nil)
    #expect(machine.deliveries.pendingCount == 1)
    #expect(machine.fire(second).ended == nil)
    #expect(machine.deliveries.pendingCount == 1)
  }

  @Test("The end delivers the pending element, and returns the timer; later events are ignored")
  func end() throws {
    for rule in rules {
      var machine = machine(rule)
      let first = try #require(machine.receive(.element(1)).started)
      _ = machine.receive(.element(2))
      let last = machine.receive(.element(3)).started ?? first
      let end = machine.receive(.finished)
      #expect(end.ended === last && end.started == nil)
      #expect(machine.receive(.finished).ended == nil)
      #expect(machine.fire(last).ended == nil)
      #expect(machine.receive(.element(4)).started == nil)
      drain(&machine)
    }
    #expect(received.elements == ["3", "end", "1", "3", "end"])
  }

  @Test("A cancel returns the timer and the pending element; later events are ignored")
  func cancel() throws {
    for rule in rules {
      var machine = machine(rule)
      let first = try #require(machine.receive(.element(1)).started)
      _ = machine.receive(.element(2))
      drain(&machine)
      let last = machine.receive(.element(3)).started ?? first
      let change = machine.cancel()
      #expect(change.ended === last && change.dropped?.element == 3)
      #expect(machine.cancel().ended == nil)
      #expect(machine.receive(.element(4)).started == nil)
      #expect(machine.fire(last).ended == nil)
      #expect(machine.receive(.finished).ended == nil)
      #expect(machine.deliveries.pendingCount == 0)
    }
    #expect(received.elements == ["1"])
  }

  @Test("A pending element keeps its epoch")
  func epoch() {
    let epoch = StreamEpoch()
    let carried = Recorder<Bool>()
    for rule in rules {
      var machine = Machine(rule: rule)
      _ = machine.deliveries.subscribe(
        Subscriber { signal in
          if case .element(2, let own) = signal { carried.record(own === epoch) }
        })
      _ = machine.receive(.element(1))
      _ = machine.receive(.element(2, in: epoch))
      _ = machine.receive(.finished)
      drain(&machine)
    }
    #expect(carried.elements == [true, true])
  }
}
