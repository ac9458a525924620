import FoundationEssentials
import Testing

@testable import Operation

/// The waiters of the machine are numbers here: the identifiers under which they wait.
@Suite("ManualClockMachine") struct ManualClockMachineTests {
  typealias Machine = ManualClockMachine<UInt64>

  private func machine() -> Machine { Machine(start: Date(timeIntervalSince1970: 0)) }

  /// Begins a sleep and gives its identifier.
  private func sleep(_ machine: inout Machine, _ duration: Duration) -> UInt64 {
    let id = machine.makeID()
    _ = machine.sleep(id, for: duration, waiter: id)
    return id
  }

  private func wakeNext(_ machine: inout Machine) throws -> Machine.Wake {
    let wake = machine.wakeNext()
    return try #require(wake)
  }

  private func wakeAll(_ machine: inout Machine) -> [UInt64] {
    var woken: [UInt64] = []
    while let wake = machine.wakeNext() {
      if let waiter = try? wake.waiter { woken.append(waiter) }
      #expect(machine.acknowledge(wake.id) == nil)
    }
    return woken
  }

  @Test("Sleepers are woken in the order of their times, and the first of equals first")
  func order() {
    var machine = machine()
    let late = sleep(&machine, .seconds(3))
    let first = sleep(&machine, .seconds(1))
    let second = sleep(&machine, .seconds(1))
    let middle = sleep(&machine, .seconds(2))
    let third = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(2))
    #expect(wakeAll(&machine) == [first, second, third, middle])
    #expect(machine.sleeperCount == 1)
    machine.advance(by: .seconds(1))
    #expect(wakeAll(&machine) == [late])
  }

  @Test("A sleeper is due at its time, and not before")
  func dueTime() {
    var machine = machine()
    let id = sleep(&machine, .seconds(1))
    machine.advance(by: .milliseconds(999))
    #expect(machine.wakeNext() == nil)
    machine.advance(by: .milliseconds(1))
    #expect(wakeAll(&machine) == [id])
    #expect(machine.now == Date(timeIntervalSince1970: 1))
  }

  @Test("A sleep of no time, or of less, does not wait", arguments: [Duration.zero, .seconds(-4)])
  func noTime(duration: Duration) {
    var machine = machine()
    let wakes = machine.sleep(machine.makeID(), for: duration, waiter: 7)
    #expect(wakes.woken == [7])
    #expect(machine.sleeperCount == 0)
  }

  @Test("A cancelled sleeper goes, and the others stay")
  func cancelWhileSleeping() {
    var machine = machine()
    let one = sleep(&machine, .seconds(1))
    let other = sleep(&machine, .seconds(1))
    #expect(machine.cancel(one) == one)
    #expect(machine.cancel(one) == nil)
    machine.advance(by: .seconds(1))
    #expect(wakeAll(&machine) == [other])
  }

  @Test("A cancellation that comes before its wait ends it at once", arguments: [1, -1])
  func cancelBefore(seconds: Int) {
    var machine = machine()
    let sleeper = machine.makeID()
    #expect(machine.cancel(sleeper) == nil)
    #expect(machine.sleep(sleeper, for: .seconds(seconds), waiter: 1).cancelled == [1])
    let observer = machine.makeID()
    #expect(machine.cancel(observer) == nil)
    #expect(machine.observe(observer, atLeast: 1, waiter: 2).cancelled == [2])
    #expect(machine.sleeperCount == 0)
  }

  @Test("An observer is woken by the sleeper that makes the number full")
  func observers() {
    var machine = machine()
    let two = machine.makeID()
    let three = machine.makeID()
    #expect(machine.observe(two, atLeast: 2, waiter: two).woken == [])
    #expect(machine.observe(three, atLeast: 3, waiter: three).woken == [])
    #expect(machine.observe(machine.makeID(), atLeast: 0, waiter: 9).woken == [9])
    #expect(machine.observe(machine.makeID(), atLeast: -3, waiter: 9).woken == [9])
    _ = sleep(&machine, .seconds(1))
    let id = machine.makeID()
    #expect(machine.sleep(id, for: .seconds(1), waiter: id).woken == [two])
    #expect(machine.cancel(three) == three)
    let last = machine.makeID()
    #expect(machine.sleep(last, for: .seconds(1), waiter: last).woken == [])
  }

  @Test("An advance waits until the sleeper that it woke has returned")
  func acknowledgement() throws {
    var machine = machine()
    let id = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(1))
    let wake = try wakeNext(&machine)
    #expect(wake.id == id)
    let waits = machine.awaitAcknowledgement(wake.acknowledgement, of: wake.id, waiter: 5)
    #expect(waits.woken.isEmpty && waits.cancelled.isEmpty)
    #expect(machine.acknowledge(id) == 5)
    #expect(machine.acknowledge(id) == nil)
  }

  @Test("A sleeper that has returned already is not waited for")
  func earlyAcknowledgement() throws {
    var machine = machine()
    _ = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(1))
    let wake = try wakeNext(&machine)
    #expect(machine.acknowledge(wake.id) == nil)
    let wakes = machine.awaitAcknowledgement(wake.acknowledgement, of: wake.id, waiter: 5)
    #expect(wakes.woken == [5])
  }

  @Test("A cancelled advance goes on, before its wait or in it")
  func cancelledAdvance() throws {
    var machine = machine()
    _ = sleep(&machine, .seconds(1))
    _ = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(1))
    let first = try wakeNext(&machine)
    #expect(machine.cancel(first.acknowledgement) == nil)
    let early = machine.awaitAcknowledgement(first.acknowledgement, of: first.id, waiter: 5)
    #expect(early.cancelled == [5])
    let second = try wakeNext(&machine)
    _ = machine.awaitAcknowledgement(second.acknowledgement, of: second.id, waiter: 6)
    #expect(machine.cancel(second.acknowledgement) == 6)
    #expect(machine.acknowledge(first.id) == nil)
    #expect(machine.acknowledge(second.id) == nil)
    #expect(machine.hasNoTraces)
  }

  @Test("A wait that is over leaves no trace, whenever its cancellation comes")
  func noTraces() {
    var machine = machine()
    let id = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(1))
    let wake = machine.wakeNext()
    #expect(machine.cancel(id) == nil)
    _ = machine.acknowledge(id)
    if let wake { machine.forget(wake.acknowledgement) }
    let observer = machine.makeID()
    _ = machine.observe(observer, atLeast: 0, waiter: observer)
    #expect(machine.cancel(observer) == nil)
    machine.forget(observer)
    #expect(machine.hasNoTraces)
  }

  @Test("A clock that is set back wakes nobody, and its sleepers wait for their time")
  func setBack() {
    var machine = machine()
    let id = sleep(&machine, .seconds(1))
    machine.advance(by: .seconds(-10))
    #expect(machine.now == Date(timeIntervalSince1970: -10))
    #expect(machine.wakeNext() == nil)
    machine.advance(by: .seconds(10.5))
    #expect(machine.wakeNext() == nil)
    machine.advance(by: .seconds(0.5))
    #expect(wakeAll(&machine) == [id])
  }

  @Test("Huge durations overflow nothing")
  func huge() {
    var machine = machine()
    let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
    let id = sleep(&machine, huge)
    for _ in 0..<1_000 { machine.advance(by: huge) }
    let other = sleep(&machine, huge)
    for _ in 0..<2_000 { machine.advance(by: .zero - huge) }
    #expect(wakeAll(&machine) == [])
    for _ in 0..<3_000 { machine.advance(by: huge) }
    #expect(wakeAll(&machine) == [id, other])
  }
}

extension ManualClockMachine.Wake {
  fileprivate var id: UInt64 { if case .sleeper(let id, _, _) = self { id } else { .max } }

  fileprivate var waiter: Waiter {
    get throws {
      guard case .sleeper(_, let waiter, _) = self else { throw Failed() }
      return waiter
    }
  }

  fileprivate var acknowledgement: UInt64 {
    if case .sleeper(_, _, let acknowledgement) = self { acknowledgement } else { .max }
  }
}
