import Foundation
import Testing

@testable import Operation

/// Requests that are passed to a client, with modifiers of their own.
@Suite(.timeLimit(.minutes(5))) struct PassedRequestTests {
  private let clock = ManualClock()
  private let client: OperationClient
  private let calls = Counter()
  private let fails = Monitor(false)

  init() { client = OperationClient(defaults: .testing, clock: clock) }

  private var query: Query<Int, any Error> {
    Query(path: ["query"]) { [calls] _ in
      calls.increment()
      return calls.value
    }
  }

  private var mutation: Mutation<Int, Int> {
    Mutation(path: ["mutation"]) { [calls, fails] number, _ in
      calls.increment()
      if fails.value { throw Failed() }
      return number
    }
  }

  private var pages: Paginated<Int, Int> {
    Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id < 2 ? page.id + 1 : nil }
    ) {
      [fails] paging, _ in
      if fails.value { throw Failed() }
      return paging.pageId
    }
  }

  private struct Failed: Error {}

  @Test("A prefetch of more pages than there are ends with the last one") func pageCount() async {
    await client.prefetch(pages, pages: .max)
    #expect(client.store(for: pages).currentValue.ids == [0, 1, 2])
  }

  @Test("A mutation that was never called throws, also when it restarts") func neverCalled() async {
    let typed = Mutation<Int, Int>(path: ["typed"]) { number, _ in number }
    for isRestarting in [false, true] {
      await #expect(throws: MutationError.noArguments) {
        try await client.fetch(typed, restarting: isRestarting)
      }
    }
  }

  @Test("A mutation is called again by the rules of the request that is passed")
  func mutationRules() async throws {
    try await client.store(for: mutation).mutate(with: 1)
    fails.update { $0 = true }
    await #expect(throws: Failed.self) {
      try await client.fetch(mutation.retry(limit: 2).backoff(.noBackoff))
    }
    #expect(calls.value == 4)
  }

  @Test("A call that restarts a mutation has the one in flight made again, for both callers")
  func restartedMutation() async throws {
    let (begun, gate) = (EventLog<Int>(), AsyncGate())
    let request = Mutation<Int, Int>(path: ["restarted"]) { number, _ in
      let count = begun.append(number)
      await gate.wait()
      return count
    }.deduplicated()
    let store = client.store(for: request)
    let first = Task { try await store.mutate(with: 1) }
    await begun.wait(for: 1)
    let second = Task { try await client.fetch(request, restarting: true) }
    await begun.wait(for: 2)
    gate.open()
    #expect(try await first.value == 2)
    #expect(try await second.value == 2)
  }

  @Test("A prefetch calls no mutation") func prefetchedMutation() async throws {
    try await client.store(for: mutation).mutate(with: 1)
    await client.prefetch(mutation)
    #expect(calls.value == 1)
    fails.update { $0 = true }
    _ = try? await client.store(for: mutation).mutate(with: 1)
    await client.prefetch(mutation)
    #expect(calls.value == 2)
  }

  @Test("A call that finds no further page leaves the date and the staleness")
  func noFurtherPage() async throws {
    let request = pages.stale(after: .seconds(60))
    let store = client.store(for: request)
    await client.prefetch(request, pages: 3)
    await clock.advance(by: .seconds(61))
    let date = store.valueLastUpdatedAt
    #expect(try await store.fetchNextPage() == nil)
    #expect(store.valueLastUpdatedAt == date && store.isStale)
  }

  private enum TagsKey: OperationContext.Key { static var defaultValue: [String] { [] } }

  private struct Tagged: SimpleQueryRequest, Hashable {
    var path: OperationPath { ["tagged"] }

    func setup(context: inout OperationContext) { context[TagsKey.self].append("request") }
    func fetch(in context: OperationContext) async throws -> [String] { context[TagsKey.self] }
  }

  @Test("The setup of a request with other modifiers begins with the context of the client")
  func setup() async throws {
    let store = client.store(for: Tagged())
    #expect(try await store.fetch() == ["request"])
    #expect(try await client.fetch(Tagged().neverStale()) == ["request"])
    store.context[TagsKey.self] = ["store"]
    #expect(try await store.fetch() == ["store"])
    #expect(try await client.fetch(Tagged().neverStale()) == ["store", "request"])
  }

  @Test("A context that is set on a store brings none of its settings to other requests")
  func settingsOfContext() {
    let store = client.store(for: query.neverStale(), initialValue: 7)
    store.context[TagsKey.self] = ["store"]
    #expect(!store.isStale)
    #expect(store.isStale(by: store.rules(of: query.networkMode(.always))))
  }

  @Test("A request keeps the defaults of its store, whatever its modifiers are") func defaults()
    async
  {
    let store = client.store(for: query)
    client.setDefaults(matching: ["query"]) { $0.staleTime = .seconds(60) }
    for _ in 0..<2 {
      _ = try? await client.ensure(query)
      _ = try? await client.ensure(query.networkMode(.always))
    }
    #expect(store.valueUpdateCount == 1)
    #expect(store.isStale)
  }

  @Test(
    "An invalidation of all stores runs no manual request, and none whose condition is not satisfied"
  )
  func invalidatedManually() async throws {
    let stores = [
      client.store(for: query.manual(), initialValue: 7),
      client.store(
        for: Query<Int, any Error>(path: ["other"]) { [calls] _ in
          calls.increment()
          return 1
        }, initialValue: 7),
    ]
    client.invalidate(matching: [], running: .all)
    while stores[1].valueUpdateCount == 0 { await Task.yield() }
    #expect(stores[0].valueUpdateCount == 0 && calls.value == 1)
  }

  @Test("The default backoff has a random part in each wait, also in the longest ones")
  func jitter() {
    let backoff = OperationDefaults.standard.backoff
    for retry in [0, 6, 40] {
      let waits = (0..<200).map { _ in backoff(retry) }
      #expect(Set(waits).count > 100)
      #expect(waits.allSatisfy { $0 <= .seconds(30) })
    }
  }

  @Test("A request that is to be saved in a store that is not is reported") func unsaved()
    async throws
  {
    let client = OperationClient(defaults: .testing, clock: clock, storage: MemoryStorage())
    let store = client.store(for: query)
    let (found, _) = try await issues {
      for _ in 0..<2 { try await client.fetch(query.serialized(in: "queue").persisted()) }
    }
    #expect(found.map(\.kind) == [.ruleConflict, .ruleConflict])
    #expect(found.first?.message.contains("scope") == true)
    #expect(found.last?.message.contains("persistence") == true)
    withExtendedLifetime(store) {}
  }

  @Test("Nothing is reported of calls that are saved, and where there is no storage")
  func savedElsewhere() async throws {
    let stored = OperationClient(defaults: .testing, clock: clock, storage: MemoryStorage())
    let (call, value) = (stored.store(for: mutation), client.store(for: query))
    try await call.mutate(with: 1)
    let (found, _) = try await issues {
      try await stored.fetch(mutation.persisted())
      try await client.fetch(query.persisted())
    }
    #expect(found.isEmpty)
    withExtendedLifetime(value) {}
  }

  @Test("The age of a value is that by the clock of the request that is passed") func ownClock()
    async throws
  {
    let own = ManualClock(now: Date(timeIntervalSince1970: 1_000))
    let request = query.clock(own).stale(after: .seconds(60))
    let store = client.store(for: query)
    _ = try await client.ensure(request)
    _ = try await client.ensure(request)
    #expect(calls.value == 1)
    await own.advance(by: .seconds(60))
    _ = try await client.ensure(request)
    #expect(calls.value == 2)
    withExtendedLifetime(store) {}
  }
}
