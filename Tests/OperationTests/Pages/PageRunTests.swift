import Operation
import Synchronization
import Testing

/// What the calls return, which calls join which runs, and contexts of other runs.
@Suite struct PageRunTests {
  @Test("Calls return the pages that they fetched, or nil if there is no further page")
  func results() async throws {
    let store = try await numbers(PageServer(0...1))
    #expect(try await store.fetchPreviousPage() == PaginatedPage(id: 0, value: "0v0"))
    #expect(try await store.fetchNextPage() == PaginatedPage(id: 1, value: "1v0"))
    #expect(try await store.fetchNextPage() == nil)
    #expect(try await store.fetchPreviousPage() == nil)
    #expect(try await store.fetchAllPages().ids == [0, 1])
    #expect(try await store.fetch().pages.ids == [0, 1])
    #expect(try await store.refetchAllPages().ids == [0, 1])
    #expect(!store.hasNextPage && !store.hasPreviousPage)
    #expect(store.status.isSuccess && store.valueUpdateCount == 7)
  }

  @Test("A page is fetched without a store, with an input of the caller's")
  func ownPaging() async throws {
    let server = PageServer()
    let page = try await Numbers(server: server).fetchPage(
      using: PaginatedPaging(pageId: 7), in: OperationContext(),
      with: OperationContinuation { _ in })
    #expect(page == "7v0")
    #expect(server.requests == [7] && server.kinds == [.initialPage])
  }

  @Test("The next and the previous page are fetched concurrently, and the state reports both")
  func sideBySide() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    server.close()
    async let next = store.fetchNextPage()
    async let previous = store.fetchPreviousPage()
    await server.pending(2)
    #expect(store.isLoadingNextPage && store.isLoadingPreviousPage)
    #expect(!store.isLoadingAllPages && !store.isLoadingInitialPage)
    server.open()
    #expect(try await next?.id == 1)
    #expect(try await previous?.id == -1)
    #expect(store.currentValue.ids == [-1, 0, 1] && !store.isLoading)
  }

  @Test("Deduplicated calls for the next page share a run, and others return consecutive pages")
  func deduplication() async throws {
    for isDeduplicated in [true, false] {
      let server = PageServer()
      let store = try await numbers(server, there: 0...0, isDeduplicated: isDeduplicated)
      server.close()
      let first = Task { try await store.fetchNextPage()?.id }
      await Settled.when { store.leaseCount == 1 }
      let second = Task { try await store.fetchNextPage()?.id }
      await Settled.when { store.leaseCount == 2 }
      #expect(store.activeTasks.count == (isDeduplicated ? 1 : 2))
      server.open()
      #expect(try await first.value == 1)
      #expect(try await second.value == (isDeduplicated ? 1 : 2))
    }
  }

  @Test("A deduplication by a predicate does not join runs for the next and the previous page")
  func deduplicationByPredicate() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet())
      .store(for: Numbers(server: server).deduplicated { _, _ in true })
    try await store.fetch()
    server.close()
    let next = [1, 2].map { _ in Task { try await store.fetchNextPage()?.id } }
    let previous = Task { try await store.fetchPreviousPage()?.id }
    await Settled.when { store.leaseCount == 3 }
    #expect(store.activeTasks.count == 2)
    server.open()
    for call in next { #expect(try await call.value == 1) }
    #expect(try await previous.value == -1)
  }

  /// Returns a closed server, a store without deduplication, and a context with a value.
  private func detached() -> (server: PageServer, store: NumberStore, context: OperationContext) {
    let server = PageServer()
    server.close()
    var context = OperationContext()
    context[Region.self] = "elsewhere"
    let numbers = Numbers(server: server)
    return (server, .detached(operation: numbers, initialState: PaginatedState()), context)
  }

  @Test("A store without deduplication joins the run for the initial page, in any context")
  func joinsInitialPage() async throws {
    let (server, store, other) = detached()
    let calls = [
      Task { try await store.fetchNextPage(using: other)?.id },
      Task { try await store.fetchPreviousPage()?.id },
      Task { try await store.fetchAllPages(using: other).first?.id },
      Task { try await store.fetch().pages.first?.id },
    ]
    await Settled.when { store.leaseCount == 4 }
    server.open()
    for call in calls { #expect(try await call.value == 0) }
    #expect(server.requests == [0] && server.kinds == [.initialPage])
  }

  @Test("After an invalidation, page requests join the newer run for the initial page")
  func joinsNewerInitialPage() async throws {
    let (server, store, other) = detached()
    let first = Task { try await store.fetchNextPage(using: other)?.id }
    await Settled.when { store.leaseCount == 1 }
    store.invalidate()
    let second = Task { try await store.fetchNextPage()?.id }
    await Settled.when { store.leaseCount == 2 }
    let third = Task { try await store.fetchPreviousPage(using: other)?.id }
    await Settled.when { store.leaseCount == 3 }
    #expect(store.activeTasks.count == 2)
    server.open()
    for call in [first, second, third] { #expect(try await call.value == 0) }
    #expect(server.requests == [0, 0])
  }

  @Test("A failed initial page fails for all joined callers, and the next call fetches it again")
  func initialPageFails() async throws {
    let server = PageServer()
    let store = try await numbers(server)
    server.fail(0)
    server.close()
    let next = Task { try await store.fetchNextPage() }
    let all = Task { try await store.fetchAllPages() }
    await Settled.when { store.leaseCount == 2 }
    server.open()
    await #expect(throws: PageServer.Failed(id: 0)) { try await next.value }
    await #expect(throws: PageServer.Failed(id: 0)) { try await all.value }
    #expect(store.status.isFailure && store.currentValue.isEmpty)
    #expect(try await store.fetchNextPage()?.id == 0)
    #expect(store.error == nil)
  }

  @Test("The context of any run may be passed to any call, and does not change what it fetches")
  func contexts() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let seen = Mutex<[OperationContext]>([])
    let calls: [@Sendable (OperationContext?) async throws -> [Int]] = [
      { try await store.fetchNextPage(using: $0).map { [$0.id] } ?? [] },
      { try await store.fetchPreviousPage(using: $0).map { [$0.id] } ?? [] },
      { try await store.fetchAllPages(using: $0).ids },
      { try await store.fetch(using: $0).pages.ids },
    ]
    let subscription = store.subscribe { event in
      if let run = event.run { seen.withLock { $0.append(run.context) } }
    }
    for call in calls { _ = try await call(nil) }
    subscription.cancel()
    let mutation = OperationClient().store(for: Mutation(path: ["m"]) { (_: Int, _) in 0 })
    try await mutation.mutate(with: 1) { event in
      if let run = event.run { seen.withLock { $0.append(run.context) } }
    }
    let contexts = seen.withLock { $0 }
    #expect(contexts.count == 10)
    for context in contexts {
      let ids = store.currentValue.ids
      let first = try #require(ids.first)
      let last = try #require(ids.last)
      #expect(try await calls[0](context) == [last + 1])
      #expect(try await calls[1](context) == [first - 1])
      #expect(try await calls[2](context) == Array(first - 1...last + 1))
      #expect(try await calls[3](context) == Array(first - 1...last + 1))
    }
  }

  @Test("The context of a page run may be passed to a fetch of another store inside the run")
  func contextInsideOfARun() async throws {
    let client = OperationClient(defaults: .quiet())
    let inner = PageServer()
    let innerStore = client.store(for: Numbers(server: inner))
    try await innerStore.fetch()
    let outer = client.store(
      for: Paginated<Int, [Int]>(
        path: ["outer"], initialPageId: 7, nextPageId: { page, _ in page.id + 1 }
      ) { paging, context in
        let next = try await innerStore.fetchNextPage(using: context)?.id
        let all = try await innerStore.fetchAllPages(using: context).ids
        return [paging.pageId, next ?? -1] + all
      })
    #expect(try await outer.fetchNextPage()?.value == [7, 1, 0, 1])
    #expect(try await outer.fetchNextPage()?.value == [8, 2, 0, 1, 2])
    #expect(try await outer.fetchAllPages().ids == [7, 8])
    #expect(innerStore.currentValue.ids == [0, 1, 2, 3, 4])
  }

  @Test("A page request without a store returns its initial page, and uses its modifiers")
  func withoutAStore() async throws {
    let server = PageServer()
    server.fail(0, times: 2)
    let request = Numbers(server: server)
    await #expect(throws: PageServer.Failed(id: 0)) { try await request.run() }
    let result = try await request.retry(limit: 1).backoff(.noBackoff).run()
    #expect(result.pages.ids == [0] && result.kind == .initialPage)
    let store = try await numbers(server, there: 0...2)
    let context = Mutex<OperationContext?>(nil)
    try await store.fetchAllPages { event in context.withLock { $0 = event.run?.context } }
    let passed = try #require(context.withLock { $0 })
    #expect(try await request.run(in: passed).pages.ids == [0])
  }

  @Test("Every kind of run passes its kind and the present pages to the request")
  func kinds() async throws {
    let received = Mutex<[String]>([])
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int>(
        path: ["kinds"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
        previousPageId: { page, _ in page.id - 1 }
      ) { paging, _ in
        received.withLock { $0.append("\(paging.kind) \(paging.pageId) of \(paging.pages.ids)") }
        return paging.pageId
      })
    try await store.fetchAllPages()
    try await store.fetchNextPage()
    try await store.fetchPreviousPage()
    try await store.fetchAllPages()
    try await store.fetch()
    let all = (-1...1).map { "allPages \($0) of [-1, 0, 1]" }
    let again = (-1...1).map { "refetch \($0) of [-1, 0, 1]" }
    #expect(
      received.withLock { $0 } == [
        "initialPage 0 of []", "nextPage 1 of [0]", "previousPage -1 of [0, 1]",
      ] + all + again)
  }

  enum Region: OperationContext.Key {
    static var defaultValue: String { "here" }
  }

  @Test("A run that begins after the pages were removed is one for the initial page")
  func removedWhileWaiting() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 4...4)
    server.close()
    let next = Task { try? await store.fetchNextPage() }
    await server.pending(1)
    let all = Task { try await store.fetchAllPages() }
    await store.settles { $0.activeTasks.count == 2 }
    let states = store.changes(of: \.isLoadingInitialPage)
    var isInitial = states.makeAsyncIterator()
    #expect(await isInitial.next() == false)
    store.currentValue = []
    server.answer(5)
    _ = await next.value
    #expect(await isInitial.next() == true)
    await server.pending(1)
    #expect(!store.isLoadingAllPages && store.activeTasks.count == 1)
    let joining = Task { try await store.fetchNextPage()?.id }
    await store.settles { $0.leaseCount == 2 }
    let before = server.requests.count
    server.open()
    #expect(try await joining.value == store.currentValue.ids.first)
    _ = try await all.value
    #expect(server.requests.count == before && store.currentValue.count == 1)
    #expect(!store.isLoadingInitialPage)
  }

  @Test("A run for the initial page that is restarted with pages is for what it was scheduled for")
  func restartedWithPages() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 4...4)
    let pages = store.currentValue
    server.close()
    let next = Task { try? await store.fetchNextPage() }
    await server.pending(1)
    let first = Task { try await store.fetch() }
    await store.settles { $0.activeTasks.count == 2 }
    store.currentValue = []
    server.answer(5)
    _ = await next.value
    await server.pending(1)
    #expect(store.isLoadingInitialPage && !store.isLoadingAllPages)
    store.currentValue = pages
    let second = Task { try await store.fetch(restarting: true) }
    // The call joins the run, and restarts it then.
    await store.settles { $0.isLoadingAllPages }
    #expect(store.leaseCount == 2 && !store.isLoadingInitialPage)
    server.open()
    _ = try await (first.value, second.value)
    #expect(store.currentValue.ids == [4] && !store.isLoading)
  }
}
