import Operation
import Testing

@Suite struct PageInvalidationTests {
  @Test("After an invalidation, another page does not make the pages fresh, and all pages do")
  func pageMore() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
    let request = Paginated(
      path: ["numbers"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
      previousPageId: { page, _ in page.id - 1 }
    ) { paging, _ in paging.pageId }
    let store = client.store(for: request.neverStale())
    try await store.fetch()
    #expect(!store.isStale)
    store.invalidate()
    try await store.fetchNextPage()
    try await store.fetchPreviousPage()
    #expect(store.isStale)
    #expect(store.currentValue.ids == [-1, 0, 1])
    try await store.fetchAllPages()
    #expect(!store.isStale)
  }

  @Test("An invalidation is followed by a run, also when another page is fetched in between")
  func followed() async throws {
    let (gates, calls) = ([AsyncGate(), AsyncGate()], Counter())
    let request = Paginated<Int, Int>(
      path: ["numbers"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, _ in
      calls.increment()
      let call = calls.value - 2
      if gates.indices.contains(call) { await gates[call].wait() }
      return paging.pageId
    }
    let store = OperationClient(defaults: .testing).store(for: request.neverStale())
    try await store.fetch()
    let subscription = store.subscribe { _ in }
    let all = Task { try await store.fetchAllPages() }
    await store.settles { _ in calls.value == 2 }
    store.invalidate()
    let next = Task { try await store.fetchNextPage() }
    await store.settles { $0.activeTasks.count == 2 }
    for gate in gates { gate.open() }
    _ = try await (all.value, next.value)
    await store.settles { !$0.isLoading && !$0.isStale }
    #expect(store.currentValue.ids == [0, 1])
    #expect(calls.value == 5, "the first page twice, the next page, and then both")
    subscription.cancel()
  }

  @Test(
    "A run for the next page that has to fetch the initial one is a run of the whole value",
    arguments: [false, true])
  func becameInitial(isInvalidatedLater: Bool) async throws {
    let (gates, calls) = ([AsyncGate(), AsyncGate()], Counter())
    let request = Paginated<Int, Int>(
      path: ["numbers"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, _, continuation in
      let call = calls.increment() - 1
      if call == 0 { continuation.yield(paging.pageId) }
      await gates[call].wait()
      return paging.pageId
    }
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
    let store = client.store(for: request.neverStale())
    store.invalidate()
    let first = Task { try await store.fetchNextPage() }
    await store.settles { $0.currentValue.ids == [0] }
    let second = Task { try await store.fetchNextPage()?.id }
    await store.settles { $0.activeTasks.count == 2 }
    first.cancel()
    _ = await first.result
    await Settled.when { calls.value == 2 }
    if isInvalidatedLater {
      store.invalidate()
      store.currentValue = PaginatedPages([PaginatedPage(id: 0, value: 7)])
      #expect(!store.isStale)
    }
    gates[1].open()
    #expect(try await second.value == 0)
    #expect(store.isStale == isInvalidatedLater && store.currentValue.map(\.value) == [0])
    gates[0].open()
  }

  @Test("An invalidation is followed by a run, also when a run in flight is cancelled meanwhile")
  func cancelledRun() async throws {
    let remote = Remote<Int>()
    enum Key: OperationContext.Key { static var defaultValue: Int { 0 } }
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    store.invalidate()
    var context = OperationContext()
    context[Key.self] = 1
    let other = Task { [context] in try await store.run(using: context) }
    await remote.wait(forCalls: 2)
    remote.answer(1)
    await store.settles { $0.currentValue == 1 }
    other.cancel()
    _ = await other.result
    await remote.wait(forCalls: 3)
    remote.answer(2, to: 2)
    await store.settles { $0.currentValue == 2 && !$0.isStale }
    subscription.cancel()
  }
}
