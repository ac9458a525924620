import Operation
import Testing

@Suite struct SetResultTests {
  @Test("A cancellation that is set is no error, and changes nothing") func cancellation()
    async throws
  {
    let store = OperationStore.detached(query: Query(path: ["a"]) { _ in 1 })
    try await store.run()
    let notifications = Counter()
    let subscription = store.subscribe { _ in notifications.increment() }
    store.setResult(to: .failure(CancellationError()))
    #expect(store.error == nil)
    #expect(store.errorUpdateCount == 0)
    #expect(store.currentValue == 1)
    #expect(notifications.value == 1)
    subscription.cancel()
  }

  @Test("An opaque store is reset under both names") func opaqueReset() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: Query(path: ["a"]) { _ in 1 })
    for reset in [OpaqueOperationStore.reset, OpaqueOperationStore.resetState] {
      try await store.run()
      let opaque = try #require(client.store(with: ["a"]))
      reset(opaque)(nil)
      #expect(store.currentValue == nil)
    }
  }

  @Test("A failure that is set stays when a run is cancelled that has yielded before another one")
  func failureOverYields() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query().deduplicated { _, _ in false })
    var runs: [Task<Int, any Error>] = []
    for count in 1...3 {
      runs.append(Task { try await store.run() })
      await remote.wait(forCalls: count)
    }
    remote.yield(1, from: 0)
    remote.yield(error: Failed(code: 1), from: 1)
    store.setResult(to: .failure(Failed(code: 2)))
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 2 }
    #expect(store.currentValue == nil && store.valueUpdateCount == 0)
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 2)
    runs[1].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 1)
    remote.answer(3, to: 2)
    #expect(try await runs[2].value == 3)
    #expect(store.currentValue == 3 && store.error == nil && store.valueUpdateCount == 1)
  }

  @Test("A failure that is set between two yields is replaced by the later one")
  func failureBetweenYields() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query().deduplicated { _, _ in false })
    var runs: [Task<Int, any Error>] = []
    for count in 1...2 {
      runs.append(Task { try await store.run() })
      await remote.wait(forCalls: count)
    }
    remote.yield(1, from: 0)
    store.setResult(to: .failure(Failed(code: 2)))
    remote.yield(error: Failed(code: 1), from: 1)
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.error as? Failed == Failed(code: 1) && store.errorUpdateCount == 2)
    runs[1].cancel()
    await store.settles { !$0.isLoading }
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 1)
    #expect(store.currentValue == nil && store.valueUpdateCount == 0)
  }
}
