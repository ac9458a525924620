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
  func debounce() {
    var machine = machine(.debounce)
    let timer = OperationSubscription {}
    let first = machine.receive(.element(1))
    #expect(first.timer == nil && first.dropped == nil)
    #expect(machine.setTimer(timer, id: first.start ?? 9) == nil)
    let second = machine.receive(.element(2))
    #expect(second.start != nil && second.start != first.start)
    #expect(second.timer == timer)
    #expect(second.dropped?.element == 1)
    #expect(machine.deliveries.pendingCount == 0)
    let fired = machine.fire(second.start ?? 9)
    #expect(fired.start == nil && fired.timer == nil && fired.dropped == nil)
    drain(&machine)
    #expect(received.elements == ["2"])
  }

  @Test("throttle: an element is delivered at once, and later ones when the timer fires")
  func throttle() {
    var machine = machine(.throttle)
    let timer = OperationSubscription {}
    let first = machine.receive(.element(1))
    #expect(machine.setTimer(timer, id: first.start ?? 9) == nil)
    let second = machine.receive(.element(2))
    #expect(second.start == nil && second.timer == nil && second.dropped == nil)
    let third = machine.receive(.element(3))
    #expect(third.start == nil && third.timer == nil)
    #expect(third.dropped?.element == 2)
    let fired = machine.fire(first.start ?? 9)
    #expect(fired.timer == timer)
    #expect(fired.start != nil && fired.start != first.start)
    #expect(machine.fire(fired.start ?? 9).start == nil)
    drain(&machine)
    #expect(received.elements == ["1", "3"])
    #expect(machine.receive(.element(4)).start != nil)
    drain(&machine)
    #expect(received.elements == ["1", "3", "4"])
  }

  @Test("A timer that fires late has no effect, and one that is stored late is returned")
  func lateTimer() {
    var machine = machine(.debounce)
    let timer = OperationSubscription {}
    let first = machine.receive(.element(1)).start ?? 9
    let second = machine.receive(.element(2)).start ?? 9
    #expect(machine.setTimer(timer, id: first) == timer)
    _ = machine.fire(first)
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.fire(second)
    #expect(machine.setTimer(timer, id: second) == timer)
    #expect(machine.deliveries.pendingCount == 1)
  }

  @Test("The end delivers the pending element, and returns the timer; later events are ignored")
  func end() {
    for rule in rules {
      var machine = machine(rule)
      let timer = OperationSubscription {}
      let id = machine.receive(.element(1)).start ?? 9
      _ = machine.setTimer(timer, id: id)
      _ = machine.receive(.element(2))
      let last = machine.receive(.element(3)).start ?? id
      _ = machine.setTimer(timer, id: last)
      let end = machine.receive(.finished)
      #expect(end.timer == timer && end.start == nil && end.dropped == nil)
      #expect(machine.receive(.finished).timer == nil)
      _ = machine.fire(last)
      #expect(machine.receive(.element(4)).start == nil)
      #expect(machine.setTimer(timer, id: last) == timer)
      drain(&machine)
    }
    #expect(received.elements == ["3", "end", "1", "3", "end"])
  }

  @Test("A cancel returns the timer and the pending element; later events are ignored")
  func cancel() {
    for rule in rules {
      var machine = machine(rule)
      let timer = OperationSubscription {}
      let id = machine.receive(.element(1)).start ?? 9
      _ = machine.receive(.element(2))
      drain(&machine)
      let last = machine.receive(.element(3)).start ?? id
      #expect(machine.setTimer(timer, id: last) == nil)
      let effects = machine.cancel()
      #expect(effects.timer == timer && effects.dropped?.element == 3)
      #expect(machine.cancel().timer == nil)
      #expect(machine.receive(.element(4)).start == nil)
      _ = machine.fire(last)
      #expect(machine.receive(.finished).timer == nil)
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
