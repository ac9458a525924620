import Testing

@testable import Operation

/// A value depends on the requests that were read for it.
@Suite("The dependencies of a value", .timeLimit(.minutes(5))) struct DependencyKeepingTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let region = Query<Int, any Error>(path: ["region"]) { _ in 1 }

  private func list(lastPage: Int) -> Paginated<Int, Int> {
    Paginated(
      path: ["list"], initialPageId: 0,
      nextPageId: { page, _ in page.id < lastPage ? page.id + 1 : nil }
    ) { [region] paging, context in
      paging.pageId > 0 ? paging.pageId : try await context.ensure(region)
    }
  }

  @Test(
    "A list depends on what its pages have read, also when a further page reads nothing or is missing",
    arguments: 0...1)
  func furtherPage(lastPage: Int) async throws {
    let store = client.store(for: list(lastPage: lastPage).neverStale())
    try await store.fetch()
    #expect(try await store.fetchNextPage()?.id == (lastPage == 0 ? nil : 1))
    client.invalidate(region)
    #expect(store.isStale)
  }

  @Test("A refetch of some pages keeps the dependencies of the others")
  func refetchOfFirstPage() async throws {
    let list = Paginated<Int, Int>(
      path: ["list"], initialPageId: 0, nextPageId: { page, _ in page.id < 1 ? page.id + 1 : nil }
    ) { [region] paging, context in
      paging.pageId == 0 ? 0 : try await context.ensure(region)
    }
    let store = client.store(for: list.refetching(.firstPage).neverStale())
    try await store.fetch()
    try await store.fetchNextPage()
    try await store.fetch()
    #expect(store.currentValue.map(\.value) == [0, 1])
    client.invalidate(region)
    #expect(store.isStale)
  }

  @Test("A value keeps its dependencies when a later run fails before it reads them")
  func failedRun() async throws {
    enum Phase { case reads, fails, readsNothing }
    let phase = Monitor(Phase.reads)
    let query = Query<Int, any Error>(path: ["reader"]) { [region] context in
      switch phase.value {
      case .reads: return try await context.ensure(region)
      case .fails: throw Failed()
      case .readsNothing: return 2
      }
    }.neverStale()
    let store = client.store(for: query)
    try await store.fetch()
    phase.update { $0 = .fails }
    await #expect(throws: Failed()) { try await store.fetch() }
    #expect(!store.isStale)
    client.invalidate(region)
    #expect(store.currentValue == 1 && store.isStale)
    // The dependencies of a run that returns a value replace those of all earlier runs.
    phase.update { $0 = .readsNothing }
    try await store.fetch()
    client.invalidate(region)
    #expect(store.currentValue == 2 && !store.isStale)
  }

  @Test("The reads of a cancelled run close no cycle")
  func cancelledRun() async throws {
    let queries = Monitor<[Query<Int, any Error>]>([])
    defer { queries.update { $0 = [] } }
    let isReversed = Monitor(false)
    let (gate, began) = (AsyncGate(), EventLog<Void>())
    let first = Query<Int, any Error>(path: ["first"]) { context in
      isReversed.value ? try await context.ensure(queries.value[1]) + 1 : 1
    }
    let second = Query<Int, any Error>(path: ["second"]) { context in
      if isReversed.value { return 10 }
      let value = try await context.ensure(queries.value[0])
      began.append(())
      await gate.wait()
      return value
    }
    queries.update { $0 = [first, second] }
    let run = Task { [client] in try await client.fetch(second) }
    await began.wait(for: 1)
    client.cancel(second)
    await #expect(throws: CancellationError.self) { try await run.value }
    isReversed.update { $0 = true }
    #expect(try await client.fetch(first) == 11)
    gate.open()
  }

  @Test("A detached store with the context of a client's store does not belong to the client")
  func detachedStore() async throws {
    let reader = Query<Int, any Error>(path: ["reader"]) { [region] context in
      try await context.ensure(region)
    }.neverStale()
    let store = client.store(for: reader)
    try await store.run()
    OperationStore.detached(query: region, initialContext: store.context).invalidate()
    #expect(!store.isStale)
  }
}
