import Operation
import Synchronization
import Testing

/// Promise 6: the result of a run from before a reset or a cancellation is dropped. The result of a
/// run from before an invalidation is displayed, stays stale, and is followed by one run.
@Suite("Epochs") struct StoreEpochTests {
  private let remote = Remote<Int>()
  private let uncancellable = Remote<Int>(ignoresCancellation: true)

  private func makeStore(
    _ remote: Remote<Int>, isDeduplicated: Bool = true
  ) -> OperationStore<QueryState<Int, any Error>> {
    OperationClient(defaults: OperationDefaults(retryLimit: 0, isDeduplicated: isDeduplicated))
      .store(for: remote.query().neverStale())
  }

  @Test("The result of a run from before a reset is dropped, and its awaiters are cancelled")
  func reset() async throws {
    let store = makeStore(uncancellable)
    store.currentValue = 1
    let task = Task { try await store.run() }
    await uncancellable.wait(forCalls: 1)
    uncancellable.yield(2)
    store.resetState()
    #expect(store.currentValue == nil)
    await #expect(throws: CancellationError.self) { try await task.value }
    await uncancellable.waitForCancellation()
    uncancellable.yield(3)
    uncancellable.answer(4)
    await uncancellable.waitForEnd()
    #expect(store.currentValue == nil)
    #expect(store.valueUpdateCount == 0)
    #expect(store.status.isIdle)
  }

  @Test("A run that starts after a reset is not affected by runs from before it")
  func runAfterReset() async throws {
    let store = makeStore(uncancellable)
    let old = Task { try await store.run() }
    await uncancellable.wait(forCalls: 1)
    store.resetState()
    async let new = store.run()
    await uncancellable.wait(forCalls: 2)
    uncancellable.answer(1, to: 0)
    await uncancellable.waitForEnd(of: 0)
    #expect(store.isLoading)
    uncancellable.answer(2, to: 1)
    #expect(try await new == 2)
    #expect(store.currentValue == 2)
    await #expect(throws: CancellationError.self) { try await old.value }
  }

  @Test(
    "A result from before an invalidation is displayed and stays stale, and one run follows",
    arguments: [1, 2, 7])
  func invalidated(times: Int) async throws {
    let store = makeStore(remote)
    let (events, subscription) = store.record()
    await remote.wait(forCalls: 1)
    for _ in 0..<times { store.invalidate() }
    #expect(remote.callCount == 1)
    remote.answer(1, to: 0)
    await remote.wait(forCalls: 2)
    #expect(store.currentValue == 1)
    #expect(store.isStale)
    #expect(remote.context(of: 1).operationRun?.cause == .invalidation)
    remote.answer(2, to: 1)
    await events.wait { $0.last?.name == "ended 2" }
    #expect(store.currentValue == 2)
    #expect(!store.isStale)
    #expect(remote.callCount == 2)
    #expect(!store.isLoading)
    subscription.cancel()
  }

  @Test("No run follows if the store has no subscriber, and the next subscriber starts it")
  func unobserved() async throws {
    let store = makeStore(remote)
    async let value = store.run()
    await remote.wait(forCalls: 1)
    store.invalidate()
    remote.answer(1)
    _ = try await value
    #expect(store.isStale)
    #expect(!store.isLoading)
    store.invalidate()
    #expect(!store.isLoading)
    #expect(remote.callCount == 1)
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 2)
    subscription.cancel()
  }

  @Test("An invalidation of an idle observed store starts a run at once, and many start one")
  func idle() async throws {
    let store = makeStore(remote)
    store.currentValue = 0
    let (events, subscription) = store.record()
    #expect(!store.isLoading)
    await onThreads(8) { _ in store.invalidate() }
    await remote.wait(forCalls: 1)
    remote.answer(1, to: 0)
    remote.answer(2, to: 1)
    await events.wait { _ in !store.isLoading && !store.isStale }
    #expect(remote.callCount <= 2)
    subscription.cancel()
  }

  /// A satisfied condition, which calls a closure once before it returns.
  private final class Interruption: OperationRunSpecification {
    let next = Mutex<(@Sendable () -> Void)?>(nil)

    func isSatisfied(in context: OperationContext) -> Bool {
      next.withLock { $0.take() }?()
      return true
    }

    func subscribe(
      in context: OperationContext, onChange: @escaping @Sendable () -> Void
    ) -> OperationSubscription { .empty }
  }

  @Test("Invalidations while another one is about to start its run start one, and one follows")
  func interrupted() async {
    let interruption = Interruption()
    let query = remote.query().neverStale().enableAutomaticRunning(onlyWhen: interruption)
    let store = OperationClient(defaults: OperationDefaults(retryLimit: 0)).store(for: query)
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    // The first one starts a run, and the second one comes while it is in flight.
    interruption.next.withLock { $0 = { for _ in 0..<2 { store.invalidate() } } }
    store.invalidate()
    #expect(store.activeTasks.count == 1)
    await remote.wait(forCalls: 1)
    remote.answer(1, to: 0)
    await remote.wait(forCalls: 2)
    #expect(store.activeTasks.count == 1)
    remote.answer(2, to: 1)
    await store.settles { !$0.isLoading && !store.isStale }
    #expect(store.currentValue == 2 && remote.callCount == 2)
    subscription.cancel()
  }

  @Test("One run follows, not two, even if a handler invalidates while the first run ends")
  func invalidatedByHandler() async throws {
    let store = makeStore(remote, isDeduplicated: false)
    let hasInvalidated = Atomic(false)
    let subscription = store.subscribe { event in
      guard case .runEnded = event, !hasInvalidated.exchange(true, ordering: .relaxed) else {
        return
      }
      store.invalidate()
    }
    await remote.wait(forCalls: 1)
    store.invalidate()
    remote.answer(1, to: 0)
    await remote.wait(forCalls: 2)
    await store.settles { $0.activeTasks.count == 1 }
    #expect(remote.callCount == 2)
    subscription.cancel()
  }

  @Test("An invalidation starts the run that a handle has scheduled, for the subscribers")
  func scheduled() async throws {
    let store = makeStore(remote)
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    var task: OperationTask? = store.runTask()
    store.invalidate()
    await remote.wait(forCalls: 1)
    #expect(task?.hasStarted == true)
    task = nil
    #expect(store.isLoading)
    subscription.cancel()
  }

  @Test(
    "A run follows in an observed store when the last awaiter of an invalidated run is cancelled")
  func awaiterLeaves() async throws {
    let store = makeStore(remote)
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.invalidate()
    task.cancel()
    await remote.wait(forCalls: 2)
    #expect(remote.context(of: 1).operationRun?.cause == .invalidation)
    subscription.cancel()
  }

  @Test("A yield of a run from before an invalidation is displayed and stale, also after a write")
  func yieldAfterWrite() async throws {
    let store = makeStore(remote)
    async let value = store.run()
    await remote.wait(forCalls: 1)
    store.invalidate()
    store.currentValue = 1
    #expect(!store.isStale)
    remote.yield(2)
    #expect(store.currentValue == 2 && store.isStale)
    remote.answer(3)
    #expect(try await value == 3)
    #expect(store.isStale)
  }

  @Test("A reset removes the invalidation, and a write makes the value fresh")
  func forgets() {
    let store = makeStore(remote)
    store.invalidate()
    store.currentValue = 1
    #expect(!store.isStale)
    store.invalidate()
    store.resetState()
    store.currentValue = 2
    #expect(!store.isStale)
  }

  @Test(
    "Runs, resets and invalidations on many threads end with the value of the last run",
    arguments: 0..<200)
  func storm(round: Int) async throws {
    let counter = Atomic(0)
    let query = Query(path: ["storm"]) { _, continuation in
      let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
      continuation.yield(-number)
      await Task.yield()
      return number
    }
    let store = OperationClient(defaults: .testing).store(for: query.neverStale())
    let (events, subscription) = store.record()
    await withTaskGroup(of: Void.self) { group in
      for index in 0..<8 {
        group.addTask {
          switch (index + round) % 4 {
          case 0: store.invalidate()
          case 1: store.resetState()
          case 2: store.cancel()
          default: _ = try? await store.run()
          }
        }
      }
    }
    store.resetState()
    let value = try await store.run()
    await store.settles { !$0.isLoading }
    await events.wait { [value] in
      $0.last { $0.state != nil }?.state?.currentValue == value && !store.isLoading
    }
    #expect(store.currentValue == value)
    #expect(store.error == nil)
    #expect(store.leaseCount == 0)
    subscription.cancel()
  }

  @Test("A cancelled run restores the value, also if another run has yielded a failure since")
  func undoBelowFailure() async throws {
    let store = makeStore(remote, isDeduplicated: false)
    store.currentValue = 1
    let first = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let second = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.yield(2, from: 0)
    remote.yield(error: Failed(), from: 1)
    #expect(store.currentValue == 2 && store.error is Failed)
    first.cancel()
    _ = await first.result
    #expect(store.currentValue == 1 && store.error is Failed)
    remote.fail(Failed(), call: 1)
    _ = await second.result
    #expect(store.currentValue == 1)
  }
}
