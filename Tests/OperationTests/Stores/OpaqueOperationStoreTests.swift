import Operation
import Testing

@Suite("An opaque store") struct OpaqueOperationStoreTests {
  private let client = OperationClient(defaults: .testing)

  private func makeStores() throws -> (
    OperationStore<QueryState<Int, any Error>>, OpaqueOperationStore
  ) {
    let store = client.store(for: Query(path: ["a"]) { _ in 7 })
    return (store, try #require(client.store(with: ["a"])))
  }

  @Test("It refers to the store: it has the same state, and its changes are changes of the store")
  func reads() async throws {
    let (store, opaque) = try makeStores()
    #expect(opaque.isOpaque(of: store))
    #expect(opaque.path == ["a"])
    #expect(opaque.status.isIdle)
    #expect(opaque.isStale)
    #expect(try await opaque.run() as? Int == 7)
    #expect(try await opaque.fetch() as? Int == 7)
    #expect(opaque.currentValue as? Int == 7)
    #expect(opaque.state.valueUpdateCount == 2)
    #expect(opaque.status.isSuccess)
    #expect(opaque.error == nil)
    #expect(!opaque.isLoading)
    #expect(opaque.leaseCount == 0)
    opaque.resetState()
    #expect(store.currentValue == nil)
  }

  @Test("A value or a failure of the right type is accepted")
  func setResult() throws {
    let (store, opaque) = try makeStores()
    try opaque.setResult(to: .success(3))
    #expect(store.currentValue == 3)
    try opaque.setResult(to: .failure(Failed(code: 1)))
    #expect(store.error as? Failed == Failed(code: 1))
    #expect(opaque.status.isFailure)
    try opaque.setResult(to: .success(Int?.none))
    #expect(store.currentValue == nil)
  }

  @Test("The missing value that a run has returned is accepted") func ownNil() async throws {
    let store = client.store(for: Query(path: ["optional"]) { _ -> Int? in nil })
    let opaque = try #require(client.store(with: ["optional"]))
    let value = try await opaque.run()
    store.currentValue = 3
    try opaque.setResult(to: .success(value))
    #expect(store.currentValue == .some(nil) && store.status.isSuccess)
    try opaque.setResult(to: .success(Int??.none))
    #expect(store.currentValue == Int??.none)
  }

  @Test("A missing value of another type is not accepted") func wrongNil() throws {
    let (store, opaque) = try makeStores()
    store.currentValue = 3
    #expect(throws: OperationTypeMismatch.self) {
      try opaque.setResult(to: .success(String?.none))
    }
    #expect(store.currentValue == 3)
  }

  @Test("A value of another type throws an error with the path and both types, and changes nothing")
  func wrongValue() throws {
    let (store, opaque) = try makeStores()
    let error = #expect(throws: OperationTypeMismatch.self) {
      try opaque.setResult(to: .success("three"))
    }
    #expect(error?.path == ["a"])
    #expect(error?.expected == Int?.self)
    #expect(error?.given == String.self)
    let line = error?.description ?? ""
    #expect(line.contains("Optional<Int>"))
    #expect(line.contains("String"))
    #expect(line.contains("[\"a\"]"))
    #expect(store.valueUpdateCount == 0)
  }

  @Test("A failure of another type throws an error with both types")
  func wrongFailure() throws {
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) in 1 }
    let store = client.store(for: query)
    let opaque = try #require(client.store(with: ["typed"]))
    let error = #expect(throws: OperationTypeMismatch.self) {
      try opaque.setResult(to: .failure(CancellationError()))
    }
    #expect(error?.expected == Failed.self)
    #expect(error?.given == CancellationError.self)
    #expect(store.error == nil)
    try opaque.setResult(to: .failure(Failed(code: 5)))
    #expect(store.error == Failed(code: 5))
  }

  @Test("Its subscriber is notified of each state, and starts a run of a stale store as any other")
  func subscribe() async throws {
    let (store, opaque) = try makeStores()
    let received = Recorder<Int?>()
    let subscription = opaque.subscribe { received.append($0.currentValue as? Int) }
    await received.wait { $0.contains(7) }
    #expect(received.all.first == .some(nil))
    #expect(opaque.subscriberCount == 1)
    opaque.invalidate()
    await store.settles { !$0.isLoading && $0.valueUpdateCount == 2 }
    subscription.cancel()
    opaque.cancel()
    #expect(store.subscriberCount == 0)
  }

  @Test("Its status is that of the store, also while a run waits for a connection")
  func statuses() async throws {
    let network = ManualNetworkObserver()
    network.set(.disconnected)
    let client = OperationClient(defaults: OperationDefaults(networkObserver: network))
    let remote = Remote<Int>()
    let store = client.store(for: remote.query(["a"]).networkMode(.online))
    let opaque = try #require(client.store(with: ["a"]))
    #expect(opaque.context.operationClient === client)
    let run = Task { try await store.run() }
    await store.settles { $0.status.isPaused }
    #expect(opaque.status.isPaused)
    network.set(.connected)
    await remote.wait(forCalls: 1)
    #expect(opaque.status.isLoading)
    remote.answer(1)
    #expect(try await run.value == 1)
  }
}
