import Synchronization
import TestSupport
import Testing

@testable import Operation
@testable import ReactiveStreams

/// Every short sequence of events, and what must hold after each of them.
@Suite("Sequences of the machine of a store") struct StoreMachineSequenceTests {
  enum Step: CaseIterable {
    case subscribe, unsubscribe, await, observe, handle, dropHandle, startHandle, releaseLease
    case yield, succeed, fail, cancelOne, cancelAll, reset, write, invalidate
  }

  /// The part of a state by which notifications are compared.
  struct Notified: Equatable {
    let value: Int?
    let isLoading: Bool

    init(_ state: MachineDriver.State) {
      (value, isLoading) = (state.currentValue, state.isLoading)
    }
  }

  struct Subscription {
    let number: Int
    let subscriber: Subscriber<MachineDriver.Machine.Event>
    let id: MachineDriver.Machine.ObserverID
    var last: Notified?
  }

  /// The machine beside a plain model of it.
  struct Walk {
    /// Each step has its own copy.
    var driver: MachineDriver
    /// The notifications of all subscribers, by their numbers. Each step takes those it causes.
    let notifications = Tape<(number: Int, state: Notified?)>()
    var subscriptions: [Subscription] = []
    var former: [Subscription] = []
    /// The awaiters and handles of each run, as the test created them.
    var awaiters: [OperationTaskID: Int] = [:]
    var handles: [OperationTaskID: Int] = [:]
    var cores: [MachineDriver.Machine.Core] = []
    var observing: Set<OperationTaskID> = []
    var nextValue = 0

    init(_ deduplication: Deduplication) {
      driver = MachineDriver(deduplication: deduplication)
    }

    var live: [MachineDriver.Machine.Core] {
      let runs = driver.machine.runs
      return cores.filter { runs[$0.id] != nil }
    }

    mutating func take(_ step: Step) throws {
      copyBeginning()
      switch step {
      case .subscribe: subscribe()
      case .unsubscribe: unsubscribe()
      case .await, .observe, .handle: requestRun(step)
      case .startHandle:
        if let core = cores.last(where: { handles[$0.id, default: 0] > 0 }) { start(core) }
      case .dropHandle, .releaseLease, .cancelOne: release(step)
      case .yield, .succeed, .fail: try result(step)
      case .cancelAll: _ = driver.machine.cancelAll()
      case .reset: _ = driver.machine.reset(driver.machine.context)
      case .write:
        nextValue += 1
        driver.machine.write(.success(nextValue), driver.machine.context)
      case .invalidate:
        if driver.machine.invalidate() { requestRun(.observe) }
      }
      driver.settle()
      try receiveNotifications()
      try check()
    }

    /// Copies the machine, and restores the subscribers to their states in this walk: another walk
    /// with the same beginning may have cancelled them.
    private mutating func copyBeginning() {
      driver = driver.copy()
      for entry in subscriptions { entry.subscriber.isActive.store(true, ordering: .relaxed) }
      for entry in former { entry.subscriber.isActive.store(false, ordering: .relaxed) }
    }

    private mutating func unsubscribe() {
      guard let last = subscriptions.popLast() else { return }
      former.append(last)
      _ = driver.machine.unsubscribe(last.id)
    }

    private mutating func subscribe() {
      nextValue += 1
      let (notifications, number) = (notifications, nextValue)
      let subscriber = Subscriber<MachineDriver.Machine.Event> { event in
        notifications.note((number, event.state.map(Notified.init)))
      }
      let id = driver.machine.subscribe(subscriber).id
      subscriptions.append(Subscription(number: number, subscriber: subscriber, id: id))
    }

    private mutating func receiveNotifications() throws {
      for (number, state) in notifications.take() {
        let index = subscriptions.firstIndex { $0.number == number }
        try mustHold(index != nil, "a subscriber was notified after its end")
        if let index, let state { subscriptions[index].last = state }
      }
    }

    private mutating func requestRun(_ step: Step) {
      let lease: MachineDriver.Machine.Lease =
        switch step {
        case .await: .awaiter
        case .handle: .handle
        default: .observers
        }
      guard let run = driver.run(lease) else { return }
      if !cores.contains(where: { $0 == run.core }) { cores.append(run.core) }
      switch lease {
      case .awaiter: awaiters[run.core.id, default: 0] += 1
      case .handle: handles[run.core.id, default: 0] += 1
      case .observers: observing.insert(run.core.id)
      }
    }

    private mutating func start(_ core: MachineDriver.Machine.Core) {
      if case .removed = driver.machine.start(core, OperationTaskConfiguration()) { return }
      awaiters[core.id, default: 0] += 1
    }

    private mutating func release(_ step: Step) {
      switch step {
      case .releaseLease:
        guard let core = cores.last(where: { awaiters[$0.id, default: 0] > 0 }) else { return }
        awaiters[core.id, default: 0] -= 1
        _ = driver.machine.releaseLease(on: core.id)
      case .dropHandle:
        guard let core = cores.last(where: { handles[$0.id, default: 0] > 0 }) else { return }
        handles[core.id, default: 0] -= 1
        _ = driver.machine.dropHandle(core.id)
      default:
        if let core = live.first { _ = driver.machine.cancel(core.id) }
      }
    }

    /// Reports a result of the first run that has started, and of every run that was removed.
    private mutating func result(_ step: Step) throws {
      nextValue += 1
      for core in cores {
        let runs = driver.machine.runs
        let isLive = runs[core.id] != nil
        if isLive, core != cores.first(where: { runs[$0.id]?.isStarted == true }) { continue }
        let before = driver.machine.state
        let failure = Result<Int, any Error>.failure(Failed(code: nextValue))
        switch step {
        case .yield:
          let counts = driver.on { $0.yield(core.id, .success(nextValue)) } != nil
          try mustHold(counts == isLive, "a run yields exactly while it is in the table")
        case .succeed: _ = driver.machine.end(core.id, .success(nextValue))
        default: _ = driver.machine.end(core.id, failure)
        }
        guard !isLive else { continue }
        let state = driver.machine.state
        try mustHold(
          state.valueUpdateCount == before.valueUpdateCount
            && state.errorUpdateCount == before.errorUpdateCount
            && state.currentValue == before.currentValue,
          "a run that had ended changed the state")
      }
    }

    private func check() throws {
      let machine = driver.machine
      try mustHold(machine.leaseCount >= 0, "there are \(machine.leaseCount) leases")
      try mustHold(
        machine.state.activeTasks.ids == machine.runs.ids,
        "the state has other tasks than the table")
      for record in machine.runs.records {
        try mustHold(record.awaiters == awaiters[record.id, default: 0], "awaiters are miscounted")
        try mustHold(record.handles == handles[record.id, default: 0], "handles are miscounted")
        try mustHold(
          record.awaiters > 0 || (record.isHeldByObservers && !subscriptions.isEmpty)
            || (!record.isStarted && record.handles > 0), "a run has no holder")
      }
      let expected = Notified(machine.state)
      try mustHold(
        subscriptions.allSatisfy { $0.last == expected }, "the last state was not notified")
      let isIdle = !machine.runs.records.contains(where: \.isStarted)
      if isIdle, machine.cancelledRuns.isEmpty {
        try mustHold(
          machine.committed.yields.isEmpty, "the yields of a run that has ended remain")
      }
    }
  }

  @Test(
    "Leases, tasks and subscribers agree after every sequence of up to four events",
    arguments: [true, false])
  func four(isDeduplicated: Bool) {
    exhaust(
      "StoreMachine, \(isDeduplicated ? "shared" : "single") runs", events: Step.allCases,
      length: 4, from: Walk(isDeduplicated ? .equivalentContexts : .never)
    ) { walk, step in
      try walk.take(step)
      return true
    }
  }
}
