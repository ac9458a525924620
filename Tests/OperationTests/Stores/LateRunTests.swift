import Testing

@testable import Operation

@Suite("Runs that end after others", .timeLimit(.minutes(5))) struct LateRunTests {
  @Test("An older run that ends after the answer to an invalidation is followed by another run")
  func lateOlderRun() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query().neverStale())
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    let old = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.invalidate()
    let new = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    #expect(try await new.value == 2)
    #expect(!store.isStale)
    remote.answer(1, to: 0)
    #expect(try await old.value == 1)
    #expect(store.currentValue == 1)
    #expect(store.isStale)
    // The store is observed and its value is stale, so one run follows.
    #expect(store.isLoading)
    subscription.cancel()
  }

  @Test("The yield of a cancelled run is undone, even if another run has failed since")
  func yieldBesideFailedRun() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query())
    store.currentValue = 1
    let yielding = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let failing = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.yield(2)
    remote.fail(Failed(), call: 1)
    await #expect(throws: Failed.self) { try await failing.value }
    yielding.cancel()
    await #expect(throws: CancellationError.self) { try await yielding.value }
    #expect(store.currentValue == 1)
    #expect(store.error is Failed)
  }

  @Test("The yield of a cancelled run is undone, even if a failure has been set since")
  func yieldBesideWrittenFailure() async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query())
    store.currentValue = 1
    let yielding = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(2)
    store.setResult(to: .failure(Failed()))
    yielding.cancel()
    await #expect(throws: CancellationError.self) { try await yielding.value }
    #expect(store.currentValue == 1)
    #expect(store.error is Failed)
  }

  @Test("A run that began before an invalidation, and then fails, is followed by another run")
  func olderRunFails() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query())
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    let old = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.invalidate()
    remote.fail(Failed(), call: 0)
    await #expect(throws: Failed.self) { try await old.value }
    #expect(store.isLoading)
    subscription.cancel()
  }
}
