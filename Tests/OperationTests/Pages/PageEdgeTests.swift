import Operation
import Testing

/// The next and the previous page identifier, with limits, writes and initial values.
@Suite struct PageEdgeTests {
  private func store(_ server: PageServer, maxPages: Int) -> NumberStore {
    OperationClient(defaults: .quiet()).store(for: Numbers(server: server).maxPages(maxPages))
  }

  @Test("A limit removes the first pages for a next one, and there is a previous page then")
  func limitAtTheFront() async throws {
    let store = store(PageServer(), maxPages: 2)
    for _ in 0..<4 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [2, 3])
    #expect(store.previousPageId == 1 && store.nextPageId == 4)
    #expect(try await store.fetchPreviousPage()?.id == 1)
    #expect(store.currentValue.ids == [1, 2])
    #expect(store.previousPageId == 0 && store.nextPageId == 3)
    #expect(try await store.fetchAllPages().ids == [1, 2])
  }

  @Test("A limit of one page keeps the page that was fetched last")
  func limitOfOne() async throws {
    let store = store(PageServer(), maxPages: 1)
    for _ in 0..<3 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [2] && store.previousPageId == 1)
    try await store.fetchPreviousPage()
    #expect(store.currentValue.ids == [1] && store.nextPageId == 2)
  }

  @Test("A limit leaves no gap when a next and a previous page are fetched concurrently")
  func limitSideBySide() async throws {
    for isNextFirst in [true, false] {
      let server = PageServer()
      let store = store(server, maxPages: 2)
      for _ in 0..<2 { try await store.fetchNextPage() }
      server.close()
      let next = Task { try await store.fetchNextPage()?.id }
      let previous = Task { try await store.fetchPreviousPage()?.id }
      await server.pending(2)
      server.answer(isNextFirst ? 2 : -1)
      await Settled.when { store.activeTasks.count == 1 }
      server.open()
      #expect(try await next.value == 2)
      #expect(try await previous.value == -1)
      #expect(store.currentValue.ids == (isNextFirst ? [1, 2] : [-1, 0]))
      #expect(store.nextPageId == (isNextFirst ? 3 : 1))
      #expect(store.previousPageId == (isNextFirst ? 0 : -2))
    }
  }

  @Test("The limit of another request leaves pages that have their neighbours")
  func limitOfAnother() async throws {
    let client = OperationClient(defaults: .quiet())
    let request = Numbers(server: PageServer(0...9))
    let store = client.store(for: request)
    store.currentValue = .written([0, 1, 2, 3, 4])
    let result = try await store.run(
      .nextPage, using: nil, by: store.rules(of: request.maxPages(3)))
    #expect(result.pages.ids == [5] && store.currentValue.ids == [3, 4, 5])
    #expect(store.previousPageId == 2 && store.nextPageId == 6)
    store.currentValue = .written([1, 2, 3, 4, 5])
    _ = try await store.run(.previousPage, using: nil, by: store.rules(of: request.maxPages(3)))
    #expect(store.currentValue.ids == [0, 1, 2])
    #expect(store.previousPageId == nil && store.nextPageId == 3)
  }

  @Test("A limit leaves pages that are written meanwhile, until their neighbours are known")
  func writeDuringALimitedRun() async throws {
    let client = OperationClient(defaults: .quiet())
    let server = PageServer(0...9)
    let request = Numbers(server: server)
    let store = client.store(for: request)
    store.currentValue = .written([1, 2, 3, 4])
    server.close()
    let next = Task {
      try await store.run(.nextPage, using: nil, by: store.rules(of: request.maxPages(3))).pages
    }
    await server.pending(1)
    store.currentValue = .written([1, 2, 3, 4])
    server.open()
    #expect(try await next.value.ids == [5])
    #expect(store.currentValue.ids == [1, 2, 3, 4, 5] && store.previousPageId == 0)
    _ = try await store.run(.nextPage, using: nil, by: store.rules(of: request.maxPages(3)))
    #expect(store.currentValue.ids == [4, 5, 6] && store.previousPageId == 3)
  }

  @Test("A limit below one is reported, and one is used")
  func badLimit() async throws {
    let issues = ReceivedIssues()
    let request = OperationIssue.withHandler(issues.handler) {
      Numbers(server: PageServer()).maxPages(0)
    }
    #expect(issues.kinds == [.invalidValue])
    let store = OperationClient(defaults: .quiet()).store(for: request)
    for _ in 0..<2 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [1])
  }

  @Test("Written pages have a next and a previous page identifier")
  func writes() async throws {
    let store = try await numbers(PageServer(0...9))
    store.currentValue = .written([3, 4])
    #expect(store.nextPageId == 5 && store.previousPageId == 2)
    store.setResult(to: .success(.written([8, 9])))
    #expect(store.hasPreviousPage && !store.hasNextPage)
    store.withExclusiveAccess {
      store.currentValue.remove(id: 9)
      #expect(store.nextPageId == 9)
      store.currentValue.insert(PaginatedPage(id: 7, value: "w"), at: 0)
    }
    #expect(store.currentValue.ids == [7, 8] && store.previousPageId == 6)
    #expect(try await store.fetchNextPage()?.id == 9)
    #expect(try await store.fetchPreviousPage()?.id == 6)
    store.currentValue = []
    #expect(store.nextPageId == nil && store.previousPageId == nil)
    #expect(try await store.fetchNextPage()?.id == 0)
  }

  @Test("The next page identifier is that of the value that was written into a page")
  func changedValue() async throws {
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int?>(
        path: ["cursors"], initialPageId: 0, nextPageId: { page, _ in page.value }
      ) { paging, _ in paging.pageId + 1 })
    try await store.fetchNextPage()
    #expect(store.nextPageId == 1)
    store.currentValue = store.currentValue.map { page in
      var page = page
      page.value = nil
      return page
    }
    #expect(!store.hasNextPage)
    #expect(try await store.fetchNextPage() == nil)
  }

  @Test("With a limit, the identifiers beside every written page are computed again")
  func changedInside() async throws {
    let request = Paginated<Int, Int?>(
      path: ["cursors"], initialPageId: 0, nextPageId: { page, _ in page.value },
      previousPageId: { page, _ in page.id - 1 }
    ) { paging, _ in paging.pageId + 1 }
    // The limit of the store's request, and that of another one.
    for maker in [request.maxPages(3), request.maxPages(.max)] {
      let store = OperationClient(defaults: .quiet()).store(for: maker)
      for _ in 0..<3 { try await store.fetchNextPage() }
      store.currentValue[id: 1]?.value = nil
      #expect(store.nextPageId == 3)
      _ = try await store.run(
        .previousPage, using: nil, by: store.rules(of: request.maxPages(3)))
      #expect(store.currentValue.ids == [-1, 0, 1])
      #expect(!store.hasNextPage)
    }
  }

  @Test("Pages with a typed failure are still pages with a timeout, whose failure is any error")
  func typedTimeout() async throws {
    let server = PageServer()
    let client = OperationClient(defaults: .quiet())
    let pages = TypedNumbers(server: server).maxPages(2).timeout(after: .seconds(1))
    let store = client.store(for: pages)
    for _ in 0..<3 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [1, 2] && store.nextPageId == 3)
    #expect(client.store(for: TypedNumbers(server: server).timeout(after: .seconds(2))) === store)
    store.currentValue = .written([4])
    #expect(store.nextPageId == 5)
    #expect(try await pages.run().pages.ids == [0])
  }

  @Test("An ensure and a prefetch fetch the first page after an empty array was written")
  func ensuresSome() async throws {
    let client = OperationClient(defaults: .quiet())
    let request = Numbers(server: PageServer()).neverStale()
    client.store(for: request).currentValue = []
    #expect(try await client.ensure(request).ids == [0])
    client.store(for: request).currentValue = []
    await client.prefetch(request)
    #expect(client.store(for: request).currentValue.ids == [0])
  }

  @Test("Initial pages have a next and a previous page identifier, also after a reset")
  func initialPages() async throws {
    let client = OperationClient(defaults: .quiet())
    let store = client.store(
      for: Numbers(server: PageServer()), initialValue: .written([3, 4, 5]))
    #expect(store.nextPageId == 6 && store.previousPageId == 2)
    try await store.fetchNextPage()
    store.resetState()
    #expect(store.currentValue.ids == [3, 4, 5] && store.nextPageId == 6)
    let detached = NumberStore.detached(
      operation: Numbers(server: PageServer()),
      initialState: PaginatedState(initialValue: .written([1])))
    #expect(detached.nextPageId == 2)
  }

  @Test("Written pages have a previous page identifier when a limit makes them the first")
  func writtenPagesWithALimit() async throws {
    let store = store(PageServer(), maxPages: 3)
    store.currentValue = .written(0...2)
    #expect(try await store.fetchNextPage()?.id == 3)
    #expect(store.currentValue.ids == [1, 2, 3] && store.previousPageId == 0)
    store.currentValue = .written(0...2)
    #expect(try await store.fetchPreviousPage()?.id == -1)
    #expect(store.currentValue.ids == [-1, 0, 1] && store.nextPageId == 2)
  }

  @Test("A page whose neighbour was removed while it was in flight is not added alone")
  func writeDuringANextPage() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    store.currentValue = .written([5, 6])
    server.open()
    #expect(try await next.value == 2)
    #expect(store.currentValue.ids == [5, 6] && store.nextPageId == 7)
  }

  @Test("An initial page that arrives after a write replaces the pages, or one of them")
  func writeDuringTheInitialPage() async throws {
    for (written, expected) in [([5, 6], [0]), ([0, 1], [0, 1])] {
      let server = PageServer()
      let store = try await numbers(server)
      server.close()
      let initial = Task { try await store.fetchNextPage()?.value }
      await server.pending(1)
      store.currentValue = .written(written)
      server.open()
      #expect(try await initial.value == "0v0")
      #expect(store.currentValue.ids == expected && store.currentValue[0].value == "0v0")
      #expect(store.nextPageId == expected.count)
    }
  }

  @Test("A queued run that finds no page any more when it starts fetches the initial page")
  func emptiedWhileItWaits() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    server.close()
    let all = Task { try await store.fetchAllPages() }
    await server.pending(1)
    let next = Task { try await store.fetchNextPage()?.id }
    await Settled.when { store.leaseCount == 2 }
    store.currentValue = []
    all.cancel()
    await server.pending(2)
    #expect(server.pending.last == PageServer.Pending(kind: .initialPage, id: 0))
    server.open()
    #expect(try await next.value == 0)
    #expect(store.currentValue.ids == [0])
  }

  /// A store whose last page leads to one that was removed from the server since.
  private func shrunk(_ server: PageServer) async throws -> NumberStore {
    let store = try await numbers(server, there: 0...1)
    server.range = 0...1
    #expect(store.nextPageId == 2)
    return store
  }

  @Test("A loop over the next pages ends when a call finds none, and observers are notified")
  func loopEnds() async throws {
    let store = try await shrunk(PageServer(0...100))
    var changes = store.changes(of: \.hasNextPage).makeAsyncIterator()
    #expect(await changes.next() == true)
    var count = 0
    while store.hasNextPage, count < 10 {
      try await store.fetchNextPage()
      count += 1
    }
    try #require(count == 1 && store.nextPageId == nil)
    #expect(await changes.next() == false)
    #expect(store.currentValue.ids == [0, 1] && store.error == nil)
  }

  @Test("A call that finds no previous page clears its identifier, and not that of the next page")
  func noPreviousPage() async throws {
    let server = PageServer(0...9)
    let store = try await numbers(server, there: 5...6)
    server.range = 5...9
    #expect(store.hasPreviousPage)
    #expect(try await store.fetchPreviousPage() == nil)
    #expect(!store.hasPreviousPage && store.nextPageId == 7)
    try await store.fetchNextPage()
    #expect(!store.hasPreviousPage && store.nextPageId == 8)
  }

  @Test("A page that is added, replaced or written has a next page again, if it leads to one")
  func reopened() async throws {
    let server = PageServer(0...100)
    let store = try await shrunk(server)
    #expect(try await store.fetchNextPage() == nil)
    server.range = 0...100
    #expect(!store.hasNextPage)
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [0, 1, 2] && store.nextPageId == 3)

    server.range = 0...2
    try await store.fetchNextPage()
    #expect(!store.hasNextPage)
    server.range = 0...100
    try await store.fetchAllPages()
    #expect(store.nextPageId == 3)

    server.range = 0...2
    try await store.fetchNextPage()
    #expect(!store.hasNextPage)
    server.range = 0...100
    store.currentValue = .written(0...2)
    #expect(store.nextPageId == 3)
  }

  @Test("A page that was removed from the state and is added again has a next page again")
  func comesBack() async throws {
    let server = PageServer(0...100)
    let store = store(server, maxPages: 2)
    for _ in 0..<3 { try await store.fetchNextPage() }
    server.range = 0...2
    #expect(try await store.fetchNextPage() == nil)
    try await store.fetchPreviousPage()
    #expect(store.currentValue.ids == [0, 1] && store.nextPageId == 2)
    server.range = 0...100
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [1, 2] && store.nextPageId == 3)
  }

  @Test("An optimistic edit of the pages does not restore a next page that was not found")
  func optimisticEdit() async throws {
    // The request leads to a next page, and finds none when it is called.
    let hasEnded = Monitor(false)
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int>(
        path: ["feed"], initialPageId: 0,
        nextPageId: { page, paging in
          paging.kind == .nextPage && hasEnded.value ? nil : page.id + 1
        }
      ) { paging, _ in 0 })
    try await store.fetch()
    hasEnded.update { $0 = true }
    try await store.optimistically { pages in
      pages = pages.map { PaginatedPage(id: $0.id, value: $0.value + 1) }
    } while: { () async throws in
      #expect(store.hasNextPage)
      #expect(try await store.fetchNextPage() == nil)
      #expect(!store.hasNextPage && store.currentValue.map(\.value) == [1])
    }
    #expect(!store.hasNextPage && store.currentValue.map(\.value) == [1])
  }
}
