import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// Sleepers and timers come in the order of their times, the first of equals first, and none before
/// its time. Everybody who waits goes on exactly once. Observers go on when so many sleep. When all
/// have gone on, nothing is left.
@Suite("ManualClockMachine, every sequence") struct ManualClockMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case sleepOne, sleepTwo, sleepZero, sleepCancelled, cancelSleep
    case timer, takeBackTimer, observeOne, observeTwo, cancelObserver
    case advance, wake, acknowledge, awaitReturn, cancelAdvance
  }

  private struct Walk {
    private struct Sleeper {
      let id: UInt64
      let deadline: Int
      let isTimer: Bool
    }

    private var machine = ManualClockMachine<UInt64>(start: Date(timeIntervalSince1970: 0))
    private let rung = Tape<UInt64>()
    private var now = 0
    /// In the order in which they came.
    private var sleepers: [Sleeper] = []
    private var observers: [(id: UInt64, count: Int)] = []
    /// Woken sleepers that have not returned, with the advance that may wait for each.
    private var returning: [(id: UInt64, acknowledgement: UInt64, isAwaited: Bool)] = []

    private var sleeping: Int { sleepers.count { !$0.isTimer } }

    mutating func take(_ step: Step) throws -> Bool {
      let isPossible =
        switch step {
        case .sleepOne: try sleep(for: 1)
        case .sleepTwo: try sleep(for: 2)
        case .sleepZero, .sleepCancelled: try sleepInVain(isCancelled: step == .sleepCancelled)
        case .cancelSleep: try cancelSleep()
        case .timer, .takeBackTimer: try timer(isNew: step == .timer)
        case .observeOne: try observe(1)
        case .observeTwo: try observe(2)
        case .cancelObserver: try cancelObserver()
        case .advance: advance()
        case .wake: try wake()
        case .acknowledge: try acknowledge()
        case .awaitReturn: try awaitReturn()
        case .cancelAdvance: try cancelAdvance()
        }
      guard isPossible else { return false }
      try mustHold(machine.sleeperCount == sleeping, "\(sleeping) sleep")
      try mustHold(machine.now == Date(timeIntervalSince1970: Double(now)), "it is \(now)")
      let isIdle = sleepers.isEmpty && observers.isEmpty && returning.isEmpty
      try mustHold(machine.hasNoTraces == isIdle, "there are traces of those who are there only")
      return true
    }

    private mutating func sleep(for seconds: Int) throws -> Bool {
      let id = machine.makeID()
      let wakes = machine.sleep(id, for: .seconds(seconds), waiter: id)
      sleepers.append(Sleeper(id: id, deadline: now + seconds, isTimer: false))
      let count = sleeping
      let satisfied = observers.filter { $0.count <= count }.map(\.id)
      observers.removeAll { $0.count <= count }
      try mustHold(wakes.woken == satisfied && wakes.cancelled.isEmpty, "observers go on")
      return true
    }

    private mutating func sleepInVain(isCancelled: Bool) throws -> Bool {
      let id = machine.makeID()
      if isCancelled { try mustHold(machine.cancel(id) == nil, "nobody waits yet") }
      let wakes = machine.sleep(id, for: isCancelled ? .seconds(1) : .zero, waiter: id)
      machine.forget(id)
      try mustHold(
        wakes.cancelled == (isCancelled ? [id] : []) && wakes.woken == (isCancelled ? [] : [id]),
        "he goes on at once")
      return true
    }

    private mutating func cancelSleep() throws -> Bool {
      guard let index = sleepers.firstIndex(where: { !$0.isTimer }) else { return false }
      let id = sleepers.remove(at: index).id
      try mustHold(machine.cancel(id) == id, "who is cancelled goes on")
      machine.forget(id)
      return true
    }

    private mutating func timer(isNew: Bool) throws -> Bool {
      if isNew {
        let id = machine.makeID()
        machine.schedule(id, after: .seconds(1)) { [rung] in rung.note(id) }
        sleepers.append(Sleeper(id: id, deadline: now + 1, isTimer: true))
        return true
      }
      guard let index = sleepers.firstIndex(where: \.isTimer) else { return false }
      let id = sleepers.remove(at: index).id
      try mustHold(machine.unschedule(id) != nil, "a timer can be taken back")
      try mustHold(machine.unschedule(id) == nil, "it is taken back once")
      return true
    }

    private mutating func observe(_ count: Int) throws -> Bool {
      let id = machine.makeID()
      let wakes = machine.observe(id, atLeast: count, waiter: id)
      let isSatisfied = sleeping >= count
      try mustHold(wakes.woken == (isSatisfied ? [id] : []), "he goes on when \(count) sleep")
      if !isSatisfied { observers.append((id, count)) }
      return true
    }

    private mutating func cancelObserver() throws -> Bool {
      guard !observers.isEmpty else { return false }
      let id = observers.removeFirst().id
      try mustHold(machine.cancel(id) == id, "an observer who is cancelled goes on")
      machine.forget(id)
      return true
    }

    private mutating func advance() -> Bool {
      machine.advance(by: .seconds(1))
      now += 1
      return true
    }

    private mutating func wake() throws -> Bool {
      let first = sleepers.filter { $0.deadline <= now }.min { $0.deadline < $1.deadline }
      let wake = machine.wakeNext()
      guard let first else {
        try mustHold(wake == nil, "nobody is due")
        return true
      }
      sleepers.removeAll { $0.id == first.id }
      switch wake {
      case .sleeper(let id, let waiter, let acknowledgement):
        try mustHold(id == first.id && waiter == id, "\(first.id) is the first one")
        returning.append((id, acknowledgement, false))
      case .timer(let action):
        action()
        try mustHold(rung.take() == [first.id] && first.isTimer, "\(first.id) is the first one")
      case nil: try mustHold(false, "\(first.id) is due")
      }
      return true
    }

    private mutating func acknowledge() throws -> Bool {
      guard !returning.isEmpty else { return false }
      let (id, acknowledgement, isAwaited) = returning.removeFirst()
      let advance = machine.acknowledge(id)
      try mustHold(advance == (isAwaited ? acknowledgement : nil), "the advance goes on")
      machine.forget(id)
      guard !isAwaited else { return true }
      let wakes = machine.awaitAcknowledgement(acknowledgement, of: id, waiter: acknowledgement)
      try mustHold(wakes.woken == [acknowledgement], "there is nothing to wait for any more")
      return true
    }

    private mutating func awaitReturn() throws -> Bool {
      guard let index = returning.firstIndex(where: { !$0.isAwaited }) else { return false }
      returning[index].isAwaited = true
      let (id, acknowledgement, _) = returning[index]
      let wakes = machine.awaitAcknowledgement(acknowledgement, of: id, waiter: acknowledgement)
      try mustHold(wakes.woken.isEmpty && wakes.cancelled.isEmpty, "the sleeper has not returned")
      return true
    }

    private mutating func cancelAdvance() throws -> Bool {
      guard let index = returning.firstIndex(where: \.isAwaited) else { return false }
      let (id, acknowledgement, _) = returning.remove(at: index)
      try mustHold(machine.cancel(acknowledgement) == acknowledgement, "the advance goes on")
      machine.forget(acknowledgement)
      try mustHold(machine.acknowledge(id) == nil, "it goes on once")
      return true
    }
  }

  @Test("Everybody wakes in time and in order, and nothing is left of who is gone")
  func everySequence() {
    exhaust("ManualClockMachine", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
