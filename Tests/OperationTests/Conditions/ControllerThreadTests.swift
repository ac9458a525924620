import Foundation
import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

private typealias Number = Knob.Number

/// A barrier that a number of threads pass together.
private final class Rendezvous: Sendable {
  private let missing: Mutex<Int>
  private let latch = ThreadLatch()

  init(_ count: Int) { missing = Mutex(count) }

  func meet() {
    let left = missing.withLock {
      $0 -= 1
      return $0
    }
    if left > 0 { latch.wait() }
    latch.open()
  }
}

@Suite(.timeLimit(.minutes(5))) struct ControllerThreadTests {
  private let log = Recorder<String>()

  private func query() -> Query<Int, any Error> { Query(path: ["number"]) { _ in 1 } }

  @Test("A store that lost the race for its path has no controllers")
  func creation() async {
    let client = OperationClient(defaults: .testing)
    let request = query().controlled(by: Knob(log))
    let (start, stores) = (Rendezvous(2), Recorder<OperationStore<Number>>())
    await onThreads(2) { _ in
      // Neither thread has found a store when it computes the initial state.
      let store = client.store(
        for: request,
        initialState: {
          start.meet()
          return Number(initialValue: nil)
        }())
      stores.append(store)
    }
    #expect(stores.all[0] === stores.all[1])
    #expect(log.all == ["control"])
  }

  @Test("Controllers are notified of a subscriber that subscribed before they were called")
  func early() {
    let client = OperationClient(defaults: .testing)
    let subscriptions = Recorder<OperationSubscription>()
    let watch = client.subscribe(matching: []) { change in
      for store in change.storesAdded { subscriptions.append(store.subscribe { _ in }) }
    }
    let request = query().controlled(by: Knob(log))
    let store = client.store(for: request)
    #expect(log.all == ["control", "began"])
    for subscription in subscriptions.all { subscription.cancel() }
    #expect(log.all == ["control", "began", "ended"])
    withExtendedLifetime((watch, store)) {}
  }

  @Test("A thread that notifies of an end also notifies of a beginning that happened meanwhile")
  func slowEnd() async {
    let (hasReached, mayContinue) = (Latch(), ThreadLatch())
    let log = log
    let knob = Knob(log) { what, _ in
      guard what == "ended", log.count == 3 else { return }
      hasReached.open()
      mayContinue.wait()
    }
    let store = OperationStore.detached(query: query().controlled(by: knob))
    let isDone = Latch()
    Thread.detachNewThread {
      store.subscribe { _ in }.cancel()
      isDone.open()
    }
    await hasReached.wait()
    store.subscribe { _ in }.cancel()
    let subscription = store.subscribe { _ in }
    #expect(log.all == ["control", "began", "ended"])
    mayContinue.open()
    await isDone.wait()
    #expect(log.all == ["control", "began", "ended", "began"])
    subscription.cancel()
    #expect(log.all.last == "ended")
  }

  @Test("Beginnings and ends alternate, one at a time, with many threads")
  func storm() async {
    let (inside, overlaps) = (Counters(), Counter())
    let knob = Knob(log) { _, controls in
      if inside.enter() > 1 { overlaps.increment() }
      controls.yield(1)
      // Gives other threads time to call the controller.
      for _ in 0..<5 { sched_yield() }
      inside.leave()
    }
    let store = OperationStore.detached(query: query().controlled(by: knob))
    await withWatchdog({ "storm" }) {
      await onThreads(3) { index in
        for round in 0..<500 {
          let subscriptions = (0...(index + round) % 2).map { _ in store.subscribe { _ in } }
          for subscription in subscriptions { subscription.cancel() }
          // With too many subscribers at once, the store is observed all the time.
          for _ in 0..<(7 * index + round) % 10 { sched_yield() }
        }
      }
    }
    #expect(overlaps.value == 0)
    #expect(log.all.first == "control" && log.count > 100)
    for (index, what) in log.all.dropFirst().enumerated() {
      #expect(what == (index.isMultiple(of: 2) ? "began" : "ended"))
    }
    #expect(log.all.last == "ended")
    let last = store.subscribe { _ in }
    #expect(log.all.last == "began")
    last.cancel()
    #expect(log.all.last == "ended")
  }

  /// Counts the threads inside the controller.
  private final class Counters: Sendable {
    private let count = Atomic(0)

    func enter() -> Int { count.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
    func leave() { count.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
  }

  @Test("Every hook may use its own store and its client, while other threads do")
  func reentrancy() async {
    let client = OperationClient(defaults: .testing)
    let plain = query()
    let knob = Knob(log) { _, controls in
      controls.yield(1)
      controls.yield(error: Failed())
      controls.rerun()
      controls.invalidate()
      controls.resetState()
      guard let client = controls.context.operationClient else { return }
      let store = client.store(for: plain)
      store.withExclusiveAccess { store.currentValue = 2 }
      #expect(store.isStale || store.currentValue != nil)
      if store.subscriberCount > 0 { store.subscribe { _ in }.cancel() }
      store.cancel()
      client.invalidate(matching: [])
    }
    let store = client.store(for: plain.controlled(by: knob))
    await withWatchdog({ "reentrancy" }) {
      await onThreads(4) { index in
        for round in 0..<50 {
          let subscription = store.subscribe { event in
            if case .stateChanged = event { _ = store.state }
          }
          store.currentValue = index * 100 + round
          subscription.cancel()
        }
      }
    }
    #expect(log.all.last == "ended")
    #expect(store.subscriberCount == 0 && store.leaseCount == 0)
  }

  @Test("The machine returns one notification at a time, and only of a change")
  func machine() {
    var machine = StoreMachine(state: Number(initialValue: nil), context: OperationContext())
    let first = machine.subscribe(Subscriber { _ in }).id
    #expect(machine.controllersToNotify() == nil, "the controllers are not known yet")
    machine.observation.notified = ([], false)
    #expect(machine.controllersToNotify()?.isObserved == true)
    #expect(machine.controllersToNotify() == nil, "another thread notifies")
    _ = machine.unsubscribe(first)
    #expect(machine.controllersToNotify() == nil)
    machine.observation.notified = ([], true)
    #expect(machine.controllersToNotify()?.isObserved == false)
    machine.observation.notified = ([], false)
    #expect(machine.controllersToNotify() == nil, "the controllers were notified")
    let second = machine.subscribe(Subscriber { _ in }).id
    _ = machine.unsubscribe(second)
    #expect(machine.controllersToNotify() == nil, "an observation that has ended is dropped")
  }
}
