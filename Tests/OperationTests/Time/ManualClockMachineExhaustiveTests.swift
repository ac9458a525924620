import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// Sleeps and timers are due in the order of their times, of equal times the first one first, and none
/// before its time, or before the clock is advanced after it began. An observer is returned with the sleep that completes its number. The advance that
/// woke a sleep is returned when the sleep has returned. What waits until the clock is settled is returned
/// with the last job, or the return of the last sleep. When nothing waits, the machine is empty.
@Suite("ManualClockMachine, every sequence") struct ManualClockMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case sleepOne, sleepTwo, removeSleep, timer, timerDueNow, removeTimer
    case observeOne, observeTwo, removeObserver, advance, setBack, takeDue, sleepReturns
    case beginJob, endJob, settle, removeSettler, takeDueSettled
  }

  private struct Walk {
    private struct Pending {
      let id: UInt64
      let deadline: Int
      let isTimer: Bool
      /// Whether the clock was advanced since it began.
      var canBeDue = false
    }

    private var machine = ManualClockMachine<Int>(start: Date(timeIntervalSince1970: 0))
    private let called = Tape<Int>()
    private var now = 0
    /// Without the steps by which the clock was set back.
    private var advanced = 0
    /// The number of the next waiter.
    private var next = 0
    /// In the order in which they began, each with its waiter.
    private var pending: [(entry: Pending, waiter: Int)] = []
    private var observers: [(id: UInt64, count: Int, waiter: Int)] = []
    /// Woken sleeps that have not returned, each with its advance.
    private var returning: [(id: UInt64, advance: Int)] = []
    private var jobs = 0
    private var settlers: [(id: UInt64, waiter: Int)] = []

    private var isSettled: Bool { jobs == 0 && returning.isEmpty }

    private var sleeping: Int { pending.count { !$0.entry.isTimer } }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      let isPossible =
        switch step {
        case .sleepOne: try sleep(for: 1)
        case .sleepTwo: try sleep(for: 2)
        case .removeSleep: try remove(isTimer: false)
        case .timer: setTimer(after: 1)
        case .timerDueNow: setTimer(after: -1)
        case .removeTimer: try remove(isTimer: true)
        case .observeOne: try observe(1)
        case .observeTwo: try observe(2)
        case .removeObserver: removeObserver()
        case .advance: advance(by: 1)
        case .setBack: advance(by: -1)
        case .takeDue: try takeDue()
        case .sleepReturns: try sleepReturns()
        case .beginJob: beginJob()
        case .endJob: try endJob()
        case .settle: try settle()
        case .removeSettler: removeSettler()
        case .takeDueSettled: try takeDueSettled()
        }
      guard isPossible else { return false }
      try mustHold(machine.sleeperCount == sleeping, "there are \(sleeping) sleeps")
      try mustHold(machine.now == Date(timeIntervalSince1970: Double(now)), "the time is \(now)")
      let isEmpty = pending.isEmpty && observers.isEmpty && settlers.isEmpty && isSettled
      try mustHold(machine.isEmpty == isEmpty, "the machine is empty exactly when nothing waits")
      return true
    }

    private mutating func sleep(for seconds: Int) throws -> Bool {
      let (id, woken) = machine.sleep(for: .seconds(seconds), waiter: next)
      pending.append((Pending(id: id, deadline: advanced + seconds, isTimer: false), next))
      let count = sleeping
      let satisfied = observers.filter { $0.count <= count }.map(\.waiter)
      observers.removeAll { $0.count <= count }
      try mustHold(woken == satisfied, "a complete number ends an observation")
      return true
    }

    private mutating func setTimer(after seconds: Int) -> Bool {
      let id = machine.schedule(after: .seconds(seconds)) { [called, next] in called.note(next) }
      pending.append((Pending(id: id, deadline: advanced + max(seconds, 0), isTimer: true), next))
      return true
    }

    private mutating func remove(isTimer: Bool) throws -> Bool {
      guard let index = pending.firstIndex(where: { $0.entry.isTimer == isTimer }) else {
        return false
      }
      let (entry, waiter) = pending.remove(at: index)
      switch machine.remove(entry.id) {
      case .sleep(let removed):
        try mustHold(!isTimer && removed == waiter, "the sleep itself is removed")
      case .timer(let action):
        action()
        try mustHold(isTimer && called.take() == [waiter], "the timer itself is removed")
      case nil: try mustHold(false, "a waiting entry can be removed")
      }
      try mustHold(machine.remove(entry.id) == nil, "the entry is removed once")
      return true
    }

    private mutating func observe(_ count: Int) throws -> Bool {
      let id = machine.observe(atLeast: count, waiter: next)
      try mustHold((id == nil) == (sleeping >= count), "only an incomplete number is waited for")
      if let id { observers.append((id, count, next)) }
      return true
    }

    private mutating func removeObserver() -> Bool {
      guard !observers.isEmpty else { return false }
      machine.removeObserver(observers.removeFirst().id)
      return true
    }

    private mutating func advance(by seconds: Int) -> Bool {
      machine.advance(by: .seconds(seconds))
      now += seconds
      if seconds < 0 { return true }
      advanced += seconds
      for index in pending.indices { pending[index].entry.canBeDue = true }
      return true
    }

    private func isDue(_ pending: (entry: Pending, waiter: Int)) -> Bool {
      pending.entry.deadline <= advanced && pending.entry.canBeDue
    }

    private mutating func takeDue() throws -> Bool {
      let due = pending.filter(isDue)
      let first = due.min { $0.entry.deadline < $1.entry.deadline }
      let event = machine.takeDue(advance: next)
      guard let first else {
        try mustHold(event == nil, "no entry is due")
        return true
      }
      guard let event else {
        try mustHold(false, "\(first) is due")
        return true
      }
      pending.removeAll { $0.entry.id == first.entry.id }
      switch event {
      case .sleep(let waiter):
        try mustHold(!first.entry.isTimer && waiter == first.waiter, "\(first) is the first one")
        returning.append((first.entry.id, next))
      case .timer(let action):
        action()
        try mustHold(first.entry.isTimer && called.take() == [first.waiter], "\(first) is first")
      }
      return true
    }

    private mutating func sleepReturns() throws -> Bool {
      guard !returning.isEmpty else { return false }
      let (id, advance) = returning.removeFirst()
      let waiters = [advance] + takeSettlers()
      try mustHold(machine.sleepReturned(id) == waiters, "\(waiters) continue")
      try mustHold(machine.sleepReturned(id) == [], "the waiters continue once")
      return true
    }

    private mutating func takeSettlers() -> [Int] {
      guard isSettled else { return [] }
      defer { settlers = [] }
      return settlers.map(\.waiter)
    }

    private mutating func beginJob() -> Bool {
      machine.beginJob()
      jobs += 1
      return true
    }

    private mutating func endJob() throws -> Bool {
      guard jobs > 0 else { return false }
      jobs -= 1
      let waiters = takeSettlers()
      try mustHold(machine.endJob() == waiters, "\(waiters) continue")
      return true
    }

    private mutating func settle() throws -> Bool {
      let id = machine.settle(waiter: next)
      try mustHold((id == nil) == isSettled, "only a clock that is not settled is waited for")
      if let id { settlers.append((id, next)) }
      return true
    }

    private mutating func removeSettler() -> Bool {
      guard !settlers.isEmpty else { return false }
      machine.removeObserver(settlers.removeFirst().id)
      return true
    }

    /// An advance waits before the next due event; otherwise this is `takeDue`.
    private mutating func takeDueSettled() throws -> Bool {
      guard !isSettled, pending.contains(where: isDue) else { return false }
      guard let id = machine.settleBeforeDue(waiter: next) else {
        try mustHold(false, "the advance waits")
        return true
      }
      settlers.append((id, next))
      return true
    }
  }

  @Test("Everything is due at its time and in order, and leaves no trace")
  func everySequence() {
    exhaust("ManualClockMachine", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
