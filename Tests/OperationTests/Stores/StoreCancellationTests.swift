import FoundationEssentials
import Operation
import Synchronization
import Testing

/// Promise 5: the state after a cancelled run, and tasks that were never started.
@Suite("Cancelled runs and dropped tasks") struct StoreCancellationTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 100))
  private let remote = Remote<Int>()

  private func makeStore(
    isDeduplicated: Bool = true
  ) -> OperationStore<QueryState<Int, any Error>> {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, isDeduplicated: isDeduplicated), clock: clock
    ).store(for: remote.query())
  }

  @Test("A cancelled run restores value, error, counts and dates, even after yields")
  func restores() async throws {
    let store = makeStore()
    store.currentValue = 1
    store.setResult(to: .failure(Failed(code: 2)))
    await clock.advance(by: .seconds(50))
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(5)
    remote.yield(error: Failed(code: 6))
    remote.yield(7)
    #expect(store.currentValue == 7)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.currentValue == 1)
    #expect(store.error as? Failed == Failed(code: 2))
    #expect(store.valueUpdateCount == 1)
    #expect(store.errorUpdateCount == 1)
    #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 100))
    #expect(store.errorLastUpdatedAt == Date(timeIntervalSince1970: 100))
    #expect(store.status.isFailure)
  }

  @Test("A cancelled run of an empty store leaves it idle, and subscribers are notified")
  func restoresNothing() async throws {
    let store = OperationStore.detached(query: remote.query())
    let (events, subscription) = store.record()
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(5)
    store.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.status.isIdle)
    #expect(
      events.names() == [
        "state nil", "started", "state nil…", "state 5…", "yielded 5", "state nil",
        "ended CancellationError()",
      ])
    subscription.cancel()
  }

  @Test("A value that is written after a yield is kept when the run is cancelled")
  func keepsWrites() async throws {
    let store = makeStore()
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(5)
    store.currentValue = 6
    store.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.currentValue == 6)
  }

  @Test("The yield of a cancelled run is undone, even if another run has begun since")
  func restoresBesideOtherRun() async throws {
    let store = makeStore(isDeduplicated: false)
    store.currentValue = 1
    let first = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(5)
    let second = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(store.currentValue == 1)
    #expect(store.activeTasks.count == 1)
    remote.answer(2, to: 1)
    #expect(try await second.value == 2)
    #expect(store.currentValue == 2)
  }

  @Test("A cancellation that a request yields is never the error of the store")
  func yieldedCancellation() async throws {
    let store = makeStore()
    async let value = store.run()
    await remote.wait(forCalls: 1)
    remote.yield(error: CancellationError())
    #expect(store.error == nil)
    #expect(store.errorUpdateCount == 0)
    remote.answer(1)
    #expect(try await value == 1)
  }

  @Test("A task that is dropped before its start leaves no trace in the state")
  func droppedTask() async throws {
    let store = makeStore()
    let (events, subscription) = store.record()
    store.cancel()
    let count = events.count
    do {
      let task = store.runTask()
      #expect(store.isLoading)
      #expect(store.activeTasks.ids == [task.id])
      #expect(!task.hasStarted)
      #expect(store.leaseCount == 0)
    }
    #expect(!store.isLoading)
    #expect(store.status.isIdle)
    #expect(events.names().dropFirst(count) == ["state nil…", "state nil"])
    subscription.cancel()
  }

  @Test("Two handles share one scheduled run, which remains when one of them is dropped")
  func twoHandles() async throws {
    let store = makeStore()
    var first: OperationTask? = store.runTask()
    let second = store.runTask()
    #expect(first?.id == second.id)
    first = nil
    #expect(store.isLoading)
    async let value = second.runIfNeeded()
    await remote.wait(forCalls: 1)
    remote.answer(3)
    #expect(try await value == 3)
    #expect(second.isFinished)
    #expect(remote.callCount == 1)
  }

  @Test("A started task continues when its handle is dropped, and ends with its last awaiter")
  func startedTask() async throws {
    let store = makeStore()
    let awaiter = Task { try await store.runTask().runIfNeeded() }
    await remote.wait(forCalls: 1)
    #expect(store.leaseCount == 1)
    awaiter.cancel()
    await #expect(throws: CancellationError.self) { try await awaiter.value }
    await remote.waitForCancellation()
    #expect(!store.isLoading)
  }

  @Test("A task that is cancelled before its start never starts, and throws CancellationError")
  func cancelledTask() async throws {
    let store = makeStore()
    let task = store.runTask()
    task.cancel()
    #expect(task.isCancelled)
    #expect(!store.isLoading)
    await #expect(throws: CancellationError.self) { try await task.runIfNeeded() }
    #expect(remote.callCount == 0)
    #expect(!task.hasStarted)
  }

  @Test("A cancelled task with a typed failure runs as cancelled, and its failure is not displayed")
  func cancelledTypedTask() async throws {
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) -> Int in
      if Task.isCancelled { throw Failed(code: 1) }
      return 1
    }
    let store = OperationClient(defaults: .testing).store(for: query)
    let task = store.runTask()
    task.cancel()
    await #expect(throws: Failed(code: 1)) { try await task.runIfNeeded() }
    #expect(store.error == nil)
    #expect(!store.isLoading)
  }

  @Test("A task runs once, however many callers start it at the same time", arguments: 0..<100)
  func runIfNeededOnce(_: Int) async throws {
    let store = makeStore()
    let task = store.runTask()
    remote.answer(4)
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 { group.addTask { try await task.runIfNeeded() } }
      for try await value in group { #expect(value == 4) }
    }
    #expect(remote.callCount == 1)
  }

  @Test("Awaiters that join or are cancelled while a run ends all resume", arguments: 0..<300)
  func churn(_: Int) async throws {
    let store = makeStore()
    let tasks = (0..<16).map { _ in Task { try await store.run() } }
    await remote.wait(forCalls: 1)
    await withTaskGroup(of: Void.self) { group in
      for task in tasks.shuffled().prefix(12) { group.addTask { task.cancel() } }
      group.addTask { [remote] in
        for call in 0..<20 { remote.answer(1, to: call) }
      }
    }
    for task in tasks {
      switch await task.result {
      case .success(let value): #expect(value == 1)
      case .failure(let error): #expect(error is CancellationError)
      }
    }
    #expect(store.leaseCount == 0)
    #expect(!store.isLoading)
    #expect(store.error == nil)
  }
}
