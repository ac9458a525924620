import Operation
import Synchronization
import Testing

/// Promise 5: the awaiters of a run, and the subscribers that started it, hold it.
@Suite("Leases") struct StoreLeaseTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>
  private let remote = Remote<Int>()
  private let uncancellable = Remote<Int>(ignoresCancellation: true)
  private let callers = RestingExecutor()

  private func makeStore(_ remote: Remote<Int>) -> Store {
    OperationClient(defaults: .testing).store(for: remote.query())
  }

  private func start(
    _ count: Int, of store: Store, calling remote: Remote<Int>
  ) async -> [Task<Int, any Error>] {
    let tasks = (0..<count).map { _ in
      Task(executorPreference: callers) { try await store.run() }
    }
    // A lease exists before its holder waits, and a cancellation releases it at once.
    await callers.rest()
    #expect(store.leaseCount == count)
    await remote.wait(forCalls: 1)
    return tasks
  }

  @Test("A detached store takes no settings from its initial context")
  func detachedSettings() async throws {
    let client = OperationClient(defaults: .standard)
    // The client retains what its query captures.
    let identity = ObjectIdentifier(client)
    let inner = Monitor<Int>(0)
    let outer = Query<Int, any Error>(path: ["outer"]) { context in
      let query = Query<Int, any Error>(path: ["inner"]) { _ in
        inner.update { $0 += 1 }
        throw Failed()
      }
      let store = OperationStore.detached(query: query, initialContext: context)
      #expect(store.context.operationClient.map(ObjectIdentifier.init) == identity)
      await #expect(throws: Failed.self) { try await store.run() }
      return 1
    }
    #expect(try await client.fetch(outer.serialized(in: "line")) == 1)
    #expect(inner.value == 1)
  }

  @Test("Ten thousand awaiters of one query run it once")
  func tenThousand() async throws {
    let store = makeStore(remote)
    let tasks = await start(10_000, of: store, calling: remote)
    remote.answer(3)
    for task in tasks { #expect(try await task.value == 3) }
    #expect(remote.callCount == 1)
    #expect(store.leaseCount == 0)
    #expect(store.valueUpdateCount == 1)
  }

  @Test("When half of ten thousand awaiters are cancelled, the other half get the value")
  func half() async throws {
    let store = makeStore(remote)
    let tasks = await start(10_000, of: store, calling: remote)
    for task in tasks.prefix(5_000) { task.cancel() }
    #expect(store.leaseCount == 5_000)
    for task in tasks.prefix(5_000) {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(remote.cancelledCalls.isEmpty)
    remote.answer(3)
    for task in tasks.suffix(5_000) { #expect(try await task.value == 3) }
    #expect(remote.callCount == 1)
  }

  @Test("When all of ten thousand awaiters are cancelled, the request's own task is cancelled")
  func all() async throws {
    let store = makeStore(remote)
    let tasks = await start(10_000, of: store, calling: remote)
    for task in tasks { task.cancel() }
    await remote.waitForCancellation()
    for task in tasks {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(store.leaseCount == 0)
    #expect(!store.isLoading)
    #expect(store.error == nil)
    #expect(remote.callCount == 1)
  }

  @Test("A cancelled awaiter returns at once, even if the request ignores the cancellation")
  func leavesAtOnce() async throws {
    let store = makeStore(uncancellable)
    let tasks = await start(2, of: store, calling: uncancellable)
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].value }
    #expect(store.leaseCount == 1)
    tasks[1].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[1].value }
    #expect(!store.isLoading)
    uncancellable.answer(1)
    await uncancellable.waitForEnd()
    #expect(store.currentValue == nil)
  }

  @Test("A caller that is cancelled before its call gets CancellationError, and holds no lease")
  func cancelledBefore() async throws {
    let store = makeStore(uncancellable)
    let mayContinue = Latch()
    let task = Task {
      await mayContinue.wait()
      return try await store.run()
    }
    task.cancel()
    mayContinue.open()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.leaseCount == 0)
    #expect(!store.isLoading)
    uncancellable.answer(1)
  }

  @Test("A cancelled awaiter of a run with a typed failure gets the result of the run")
  func typed() async throws {
    let entered = Latch()
    let mayContinue = Latch()
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) -> Int in
      entered.open()
      await mayContinue.wait()
      throw Failed(code: Task.isCancelled ? 1 : 0)
    }
    let store = OperationClient(defaults: .testing).store(for: query)
    let task = Task { try await store.run() }
    await entered.wait()
    task.cancel()
    #expect(store.leaseCount == 0)
    mayContinue.open()
    await #expect(throws: Failed(code: 1)) { try await task.value }
    #expect(store.error == nil)
    #expect(store.status.isIdle)
  }

  @Test("The run that a subscriber started is cancelled with the last subscription")
  func subscriberLease() async throws {
    let store = makeStore(remote)
    let first = store.subscribe { _ in }
    let second = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    first.cancel()
    #expect(store.isLoading)
    #expect(store.leaseCount == 1)
    second.cancel()
    await remote.waitForCancellation()
    #expect(!store.isLoading)
    #expect(store.error == nil)
  }

  @Test("The run that a subscriber started continues for an awaiter without the subscriber")
  func awaiterKeepsRun() async throws {
    let store = makeStore(remote)
    let subscription = store.subscribe { _ in }
    let task = Task { try await store.run() }
    await store.settles { $0.leaseCount == 2 }
    await remote.wait(forCalls: 1)
    subscription.cancel()
    #expect(store.leaseCount == 1)
    remote.answer(4)
    #expect(try await task.value == 4)
    #expect(remote.callCount == 1)
    #expect(remote.cancelledCalls.isEmpty)
  }

  @Test("The run that a subscriber holds continues when an awaiter is cancelled")
  func subscriberKeepsRun() async throws {
    let store = makeStore(remote)
    let (events, subscription) = store.record()
    let task = Task { try await store.run() }
    await store.settles { $0.leaseCount == 2 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.isLoading)
    remote.answer(4)
    await events.wait { $0.last?.name == "ended 4" }
    #expect(store.currentValue == 4)
    subscription.cancel()
  }

  @Test("A subscriber that did not start the run does not hold it")
  func strangerHoldsNothing() async throws {
    let store = OperationStore.detached(query: remote.query())
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let subscription = store.subscribe { _ in }
    #expect(store.leaseCount == 1)
    task.cancel()
    await remote.waitForCancellation()
    subscription.cancel()
  }

  @Test("cancel() resumes the awaiters, and a new run starts beside a request that ignores it")
  func cancelAndRunAgain() async throws {
    let store = makeStore(uncancellable)
    let old = await start(3, of: store, calling: uncancellable)
    store.cancel()
    for task in old { await #expect(throws: CancellationError.self) { try await task.value } }
    async let new = store.run()
    await uncancellable.wait(forCalls: 2)
    uncancellable.answer(1, to: 0)
    await uncancellable.waitForEnd(of: 0)
    #expect(store.isLoading)
    #expect(store.currentValue == nil)
    uncancellable.answer(2, to: 1)
    #expect(try await new == 2)
    #expect(store.valueUpdateCount == 1)
  }

  @Test("A late failure and a late yield of a request that ignores cancellation are dropped")
  func lateFailure() async throws {
    let store = makeStore(uncancellable)
    _ = await start(1, of: store, calling: uncancellable)
    store.cancel()
    uncancellable.yield(5)
    uncancellable.fail(Failed())
    await uncancellable.waitForEnd()
    #expect(store.currentValue == nil)
    #expect(store.error == nil)
    #expect(store.status.isIdle)
  }

  @Test("The cancellation of one task of the store affects only the awaiters of that task")
  func cancelOneTask() async throws {
    let store = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, isDeduplicated: false)
    ).store(for: remote.query())
    let first = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let second = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    store.activeTasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    remote.answer(2, to: 1)
    #expect(try await second.value == 2)
  }

  @Test("A cancellation by the store or by the caller is not retried", arguments: [true, false])
  func noRetry(byStore: Bool) async throws {
    let clock = ManualClock()
    let store = OperationClient(clock: clock).store(for: remote.query().retry(limit: 5))
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    if byStore { store.cancel() } else { task.cancel() }
    await #expect(throws: CancellationError.self) { try await task.value }
    await remote.waitForEnd()
    #expect(clock.sleeperCount == 0)
    #expect(remote.callCount == 1)
  }

  @Test(
    "A request that throws CancellationError by itself restores the earlier state",
    arguments: 0..<50)
  func ownCancellation(_: Int) async throws {
    let store = makeStore(remote)
    store.setResult(to: .success(1))
    store.setResult(to: .failure(Failed(code: 2)))
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(7)
    remote.fail(CancellationError())
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.currentValue == 1)
    #expect(store.error as? Failed == Failed(code: 2))
    #expect(store.status.isFailure)
  }
}
