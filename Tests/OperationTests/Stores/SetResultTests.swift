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
}
