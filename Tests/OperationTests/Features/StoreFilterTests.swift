import Operation
import Testing

@Suite struct StoreFilterTests {
  /// Stores by name: one without a value, one with a fresh value, one that failed, and one that is
  /// observed.
  private static func client() async throws -> (OperationClient, OperationSubscription) {
    let client = OperationClient(defaults: .testing)
    func query(_ name: String, _ script: Script = Script()) -> some QueryRequest<
      Int, QueryState<Int, any Error>
    > {
      OpenQuery(script: script, path: ["all", name]).neverStale()
    }
    _ = client.store(for: query("empty"))
    try await client.fetch(query("fresh"))
    _ = try? await client.fetch(query("failed", Script(failures: 9)))
    try await client.fetch(query("observed"))
    return (client, client.store(for: query("observed")).subscribe { _ in })
  }

  @Test("Filters are combined with &&, || and !") func combined() async throws {
    let (client, subscription) = try await Self.client()
    func names(_ filter: OperationStoreFilter) -> Set<String> {
      Set(client.stores(matching: ["all"], where: filter).map { "\($0.path.elements[1])" })
    }
    let all = names([])
    #expect(all.count == 4)
    #expect(names(.failed).count == 1)
    #expect(names(.observed).count == 1)
    #expect(names(.stale).count == 2)
    #expect(names(.loading).isEmpty)
    #expect(names(!.stale) == all.subtracting(names(.stale)))
    #expect(names(.stale && !.failed).count == 1)
    #expect(names(.failed || .observed) == names(.failed).union(names(.observed)))
    #expect(names([.stale, .failed]) == names(.failed))
    #expect(names(.failed && []) == names(.failed) && names([] && .failed) == names(.failed))
    #expect(names(.where { $0.currentValue as? Int? == 1 && $0.subscriberCount == 0 }).count == 1)
    subscription.cancel()
  }

  @Test("Calls with a path accept a predicate") func calls() async throws {
    let (client, subscription) = try await Self.client()
    client.invalidate(matching: ["all"], where: !.observed && !.failed)
    #expect(client.stores(matching: ["all"], where: .stale).count == 3)
    client.reset(matching: ["all"], where: .failed)
    #expect(client.stores(matching: ["all"], where: .failed).isEmpty)
    _ = try? await client.fetch(matching: ["all"], where: .stale && .where { $0.error == nil })
    #expect(client.stores(matching: ["all"], where: .stale || .failed).count == 1)
    subscription.cancel()
  }

  @Test("Stores that match a predicate are cleared and edited, and subscribers get their changes")
  func changes() async throws {
    let (client, subscription) = try await Self.client()
    let cleared = EventLog<Int>()
    let all = client.subscribe(matching: ["all"]) { cleared.append($0.storesRemoved.count) }
    let failed = client.subscribe(matching: ["all"], where: .failed) { change in
      cleared.append(-change.storesRemoved.count)
    }
    var stream = client.storeChanges(where: .observed).makeAsyncIterator()
    typealias State = QueryState<Int, any Error>
    let edited = await client.optimistically(
      matching: ["all"], of: State.self, where: .observed || .failed
    ) {
      $0 = 100
    } while: {
      client.stores(matching: ["all"], of: State.self).count { $0.currentValue == 100 }
    }
    #expect(edited == 2)
    client.clearStores(matching: ["all"], where: .failed)
    #expect(client.stores(matching: ["all"]).count == 3)
    #expect(Set(cleared.values) == [1, -1])
    client.clearStores(matching: ["all"], where: .observed)
    #expect(client.stores(matching: ["all"]).count == 2)
    #expect(await stream.next()?.storesRemoved.count == 1)
    #expect(cleared.values.filter { $0 < 0 } == [-1])
    for one in [subscription, all, failed] { one.cancel() }
  }

  @Test(
    "Filters of filters that accept each store have what is saved without a store removed, too",
    arguments: [[] && [], [.stale] || [], [[], []]] as [OperationStoreFilter])
  func emptyFilters(_ filter: OperationStoreFilter) async throws {
    let storage = MemoryStorage()
    func client() -> OperationClient { OperationClient(defaults: .testing, storage: storage) }
    let query = Query<Int, any Error>(path: ["saved"]) { _ in 1 }.persisted()
    let first = client()
    try await first.fetch(query)
    try await first.flush()
    let second = client()
    second.clearStores(matching: ["saved"], where: filter && [.stale] || .failed)
    try await second.flush()
    #expect(storage.entries.count == 1)
    second.clearStores(matching: ["saved"], where: filter)
    try await second.flush()
    #expect(storage.entries.isEmpty)
  }
}
