import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// The waiters of the machine are numbers here.
@Suite("ManualClockMachine") struct ManualClockMachineTests {
  typealias Machine = ManualClockMachine<Int>

  private var machine = Machine(start: Date(timeIntervalSince1970: 0))

  private mutating func wakeAll() -> [Int] {
    var woken: [Int] = []
    while case .sleep(let waiter) = machine.wakeDue() { woken.append(waiter) }
    return woken
  }

  @Test("Sleeps end in the order of their times, and of equal times the first one first")
  mutating func order() {
    for (waiter, seconds) in [3, 1, 1, 2, 1].enumerated() {
      _ = machine.sleep(for: .seconds(seconds), waiter: waiter)
    }
    machine.advance(by: .seconds(2))
    #expect(wakeAll() == [1, 2, 4, 3])
    #expect(machine.sleeperCount == 1)
    machine.advance(by: .seconds(1))
    #expect(wakeAll() == [0])
  }

  @Test("A sleep is due at its time, and not before")
  mutating func dueTime() {
    _ = machine.sleep(for: .seconds(1), waiter: 7)
    machine.advance(by: .milliseconds(999))
    #expect(wakeAll() == [])
    machine.advance(by: .milliseconds(1))
    #expect(wakeAll() == [7])
    #expect(machine.now == Date(timeIntervalSince1970: 1))
  }

  @Test("A sleep that is removed does not end, and does not count; the others do")
  mutating func removal() {
    let one = machine.sleep(for: .seconds(1), waiter: 1).id
    _ = machine.sleep(for: .seconds(1), waiter: 2)
    #expect(machine.remove(one) != nil && machine.sleeperCount == 1)
    #expect(machine.remove(one) == nil && machine.sleeperCount == 1)
    machine.advance(by: .seconds(1))
    #expect(wakeAll() == [2])
  }

  @Test("An observer waits until its number of sleeps is complete")
  mutating func observers() throws {
    for count in [0, -3] { #expect(machine.observe(atLeast: count, waiter: 9) == nil) }
    #expect(machine.observe(atLeast: 2, waiter: 2) != nil)
    let three = machine.observe(atLeast: 3, waiter: 3)
    #expect(machine.sleep(for: .seconds(1), waiter: 0).observers == [])
    #expect(machine.sleep(for: .seconds(1), waiter: 0).observers == [2])
    #expect(machine.observe(atLeast: 2, waiter: 9) == nil)
    machine.removeObserver(try #require(three))
    #expect(machine.sleep(for: .seconds(1), waiter: 0).observers == [])
  }

  @Test("A timer is an action that is due at its time, and is no sleep")
  mutating func timers() {
    let ids = [1, 0, -1].map { machine.schedule(after: .seconds($0)) {} }
    #expect(machine.sleeperCount == 0 && !machine.isEmpty)
    #expect(machine.remove(ids[2]) != nil)
    #expect(machine.remove(ids[2]) == nil)
    machine.advance(by: .zero)
    guard case .timer = machine.wakeDue() else { return #expect(Bool(false)) }
    #expect(machine.wakeDue() == nil)
    machine.advance(by: .seconds(1))
    guard case .timer = machine.wakeDue() else { return #expect(Bool(false)) }
    #expect(machine.isEmpty)
  }

  @Test("A timer that is due at once waits for the next advance, also if one is in progress")
  mutating func timerInAdvance() {
    _ = machine.sleep(for: .seconds(1), waiter: 1)
    machine.advance(by: .seconds(1))
    _ = machine.schedule(after: .zero) {}
    #expect(wakeAll() == [1])
    machine.advance(by: .zero)
    guard case .timer = machine.wakeDue() else { return #expect(Bool(false)) }
    #expect(machine.wakeDue() == nil)
  }

  @Test("When many sleeps were removed, the other ones end in their order")
  mutating func collectedDeadlines() {
    let ids = (0..<500).map { machine.sleep(for: .seconds(500 - $0), waiter: $0).id }
    for (waiter, id) in ids.enumerated() where !waiter.isMultiple(of: 100) {
      _ = machine.remove(id)
    }
    #expect(machine.sleeperCount == 5)
    machine.advance(by: .seconds(500))
    #expect(wakeAll() == [400, 300, 200, 100, 0])
  }

  @Test("The deadlines of removed timers are not kept behind an earlier one")
  mutating func collectedBehindEarlier() {
    _ = machine.schedule(after: .seconds(1)) {}
    for _ in 0..<1_000 {
      let id = machine.schedule(after: .seconds(2)) {}
      _ = machine.remove(id)
    }
    let kept = Mirror(reflecting: machine).descendant("deadlines", "elements") as? [Any]
    #expect((1...100).contains(kept?.count ?? 0))
  }

  /// The best time of removing one of many timers.
  private func removalTime(count: Int) -> Duration {
    (0..<5).map { _ in
      var machine = Machine(start: Date(timeIntervalSince1970: 0))
      let ids = (0..<count).map { machine.schedule(after: .seconds($0 % 7)) {} }
      let time = processorTime {
        for id in ids.reversed() { _ = machine.remove(id) }
      }
      precondition(machine.isEmpty)
      return time / count
    }.min() ?? .zero
  }

  @Test("Removing one of ten thousand timers takes little longer than one of a hundred")
  func removalCost() {
    let (few, many) = (removalTime(count: 100), removalTime(count: 10_000))
    #expect(many < few * 12, "100: \(few), 10,000: \(many)")
  }

  @Test("The advance that woke a sleep continues when the sleep has returned")
  mutating func returned() {
    let id = machine.sleep(for: .seconds(1), waiter: 1).id
    #expect(machine.sleepReturned(id) == [])
    machine.advance(by: .seconds(1))
    #expect(machine.takeDue(advance: 5) != nil)
    #expect(machine.remove(id) == nil && !machine.isEmpty)
    #expect(machine.sleepReturned(id) == [5])
    #expect(machine.sleepReturned(id) == [] && machine.isEmpty)
  }

  @Test("An advance waits for a number of jobs at most, and settle for all of them")
  mutating func patience() {
    _ = machine.sleep(for: .seconds(1), waiter: 1)
    machine.advance(by: .seconds(1))
    machine.beginJob()
    #expect(machine.settleBeforeDue(waiter: 2) != nil)
    _ = machine.settle(waiter: 3)
    for _ in 1..<ManualClockMachine<Int>.patienceOfAdvance {
      machine.beginJob()
      let ready = machine.endJob()
      #expect(ready == [])
    }
    machine.beginJob()
    let ready = machine.endJob()
    #expect(ready == [2])
    let last = machine.endJob()
    #expect(last == [3])
  }

  @Test("The clock is settled when no job remains, and every woken sleep has returned")
  mutating func settled() throws {
    #expect(machine.settle(waiter: 1) == nil)
    machine.beginJob()
    machine.beginJob()
    #expect(machine.settle(waiter: 2) != nil)
    let removed = machine.settle(waiter: 3)
    machine.removeObserver(try #require(removed))
    #expect(machine.endJob() == [] && !machine.isEmpty)
    let sleep = machine.sleep(for: .seconds(1), waiter: 4).id
    machine.advance(by: .seconds(1))
    #expect(machine.takeDue(advance: 5) != nil)
    #expect(machine.endJob() == [], "the sleep has not returned")
    #expect(machine.sleepReturned(sleep) == [5, 2])
    #expect(machine.settle(waiter: 6) == nil && machine.isEmpty)
  }

  @Test("An advance that has woken a sleep waits until the clock is settled, if more is due")
  mutating func advanceSettles() {
    _ = machine.sleep(for: .seconds(1), waiter: 1)
    machine.beginJob()
    machine.advance(by: .seconds(1))
    #expect(machine.settleBeforeDue(waiter: 2) != nil)
    #expect(machine.sleeperCount == 1)
    #expect(machine.endJob() == [2])
    #expect(machine.settleBeforeDue(waiter: 3) == nil)
    #expect(machine.takeDue(advance: 3) != nil)
    machine.beginJob()
    #expect(machine.settleBeforeDue(waiter: 4) == nil, "no other entry is due")
  }

  @Test("A clock that is set back wakes no sleep, and its sleeps wait no longer")
  mutating func setBack() {
    _ = machine.sleep(for: .seconds(1), waiter: 7)
    machine.advance(by: .seconds(-10))
    #expect(machine.now == Date(timeIntervalSince1970: -10))
    #expect(wakeAll() == [])
    machine.advance(by: .seconds(0.5))
    #expect(wakeAll() == [])
    machine.advance(by: .seconds(0.5))
    #expect(wakeAll() == [7])
  }

  @Test("Huge durations do not overflow")
  mutating func huge() {
    let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
    _ = machine.sleep(for: huge, waiter: 1)
    for _ in 0..<1_000 { machine.advance(by: huge) }
    _ = machine.sleep(for: huge, waiter: 2)
    for _ in 0..<2_000 { machine.advance(by: .zero - huge) }
    #expect(wakeAll() == [1])
    for _ in 0..<3_000 { machine.advance(by: huge) }
    #expect(wakeAll() == [2])
  }
}

extension ManualClockMachine<Int> {
  fileprivate mutating func wakeDue() -> Event? { takeDue(advance: 0) }
}
