import Operation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct ClientRunningTests {
  private let clock = ManualClock()
  private let client: OperationClient
  private let calls = Counter()

  init() {
    client = OperationClient(defaults: .testing, clock: clock)
  }

  private func number(_ id: Int) -> Query<Int, any Error> {
    Query(path: ["numbers", id]) { [calls] _ in
      calls.increment()
      return id
    }
  }

  @Test("ensure returns the cached value, unless it was invalidated or its stale time has passed")
  func ensure() async throws {
    let request = number(1).stale(after: .seconds(10))
    #expect(try await client.ensure(request) == 1)
    #expect(try await client.ensure(request) == 1)
    #expect(calls.value == 1)
    await clock.advance(by: .seconds(10))
    try await client.ensure(request)
    #expect(calls.value == 2)
    client.invalidate(request)
    try await client.ensure(request)
    #expect(calls.value == 3)
    try await client.fetch(request)
    #expect(calls.value == 4)
    // Without a stale time the cached value is returned.
    try await client.ensure(number(2))
    try await client.ensure(number(2))
    #expect(calls.value == 5)
  }

  @Test("prefetch fetches a missing value once, and a failure is in the state")
  func prefetch() async {
    struct Failed: Error {}
    await client.prefetch(number(1))
    await client.prefetch(number(1))
    #expect(calls.value == 1)
    let failing = Query<Int, any Error>(path: ["failing"]) { _ in throw Failed() }
    await client.prefetch(failing)
    #expect(client.store(for: failing).error is Failed)
  }

  @Test("A value that was removed is missing for every call that needs one")
  func removedValue() async throws {
    let request = number(1).neverStale()
    let store = client.store(for: request)
    for round in 1...4 {
      store.currentValue = round
      #expect(!store.isStale)
      store.currentValue = nil
      #expect(store.isStale)
      switch round {
      case 1: try await client.ensure(request)
      case 2: await client.prefetch(request)
      case 3: try await client.ensure(matching: ["numbers"])
      default: await client.prefetch(matching: ["numbers"])
      }
      #expect(calls.value == round && store.currentValue == 1)
    }
  }

  @Test("The stores below a path are fetched concurrently, or only those that are out of date")
  func runMatching() async throws {
    for id in 1...3 { _ = client.store(for: number(id)) }
    let mutation = client.store(
      for: Mutation<Int, Int>(path: ["numbers", "change"]) { number, _ in number })
    client.store(for: number(1)).currentValue = 7
    try await client.ensure(matching: ["numbers"])
    #expect(calls.value == 2)
    await client.prefetch(matching: ["numbers"])
    #expect(calls.value == 2)
    try await client.fetch(matching: ["numbers"])
    #expect(calls.value == 5)
    #expect(client.store(for: number(1)).currentValue == 1)
    #expect(mutation.history.isEmpty)
    struct Failed: Error {}
    let failing = Query<Int, any Error>(path: ["numbers", 0]) { _ in throw Failed() }
    _ = client.store(for: failing)
    await #expect(throws: Failed.self) { try await client.fetch(matching: ["numbers"]) }
    #expect(calls.value == 8, "the others have run")
    await client.prefetch(matching: ["numbers"])
    #expect(client.store(for: failing).errorUpdateCount == 2)
  }

  @Test("The stores below a path are invalidated, cancelled and reset, and no others")
  func matching() async throws {
    let stores = [number(1), number(2)].map { client.store(for: $0.neverStale()) }
    let other = client.store(for: Query(path: ["other"]) { _ in 0 }.neverStale())
    for store in stores + [other] { try await store.run() }
    client.invalidate(matching: ["numbers"])
    #expect(stores.allSatisfy { $0.isStale })
    #expect(!other.isStale)
    client.reset(matching: ["numbers"])
    #expect(stores.allSatisfy { $0.currentValue == nil })
    #expect(other.currentValue == 0)
    let tasks = stores.map { $0.runTask() }
    let remaining = other.runTask()
    client.cancel(matching: ["numbers"])
    #expect(tasks.allSatisfy { $0.isCancelled })
    #expect(!remaining.isCancelled)
    client.cancel(Query(path: ["other"]) { _ in 0 })
    #expect(remaining.isCancelled)
    client.reset(Query(path: ["other"]) { _ in 0 })
    #expect(other.currentValue == nil)
  }

  @Test("The stream of store changes has each store that is added or removed below its path")
  func storeChanges() async {
    var changes = client.storeChanges(matching: ["numbers"]).makeAsyncIterator()
    _ = client.store(for: Query(path: ["other"]) { _ in 0 })
    _ = client.store(for: number(1))
    client.clearStores()
    #expect(await changes.next()?.storesAdded.map(\.path) == [["numbers", 1]])
    #expect(await changes.next()?.storesRemoved.map(\.path) == [["numbers", 1]])
  }
}
