import Testing

@testable import Operation

@Suite("Runs that end behind others", .timeLimit(.minutes(1))) struct LateRunTests {
  @Test("An older run that ends behind the answer to an invalidation is followed by one")
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
    // Somebody observes, what is shown is stale, and so one run follows.
    #expect(store.isLoading)
    subscription.cancel()
  }

  @Test("What a run yielded goes when it is cancelled, also where another run has failed since")
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

  @Test("What a run yielded goes when it is cancelled, also where somebody has set a failure since")
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
}
