import Operation
import Synchronization
import Testing

/// Fetching the pages of the state again.
@Suite struct AllPagesTests {
  @Test("A retry of all pages continues at the page that failed")
  func retryContinues() async throws {
    let server = PageServer()
    let clock = ManualClock()
    let store = OperationClient(defaults: .quiet(), clock: clock)
      .store(for: Numbers(server: server).retry(limit: 2))
    for _ in 0..<5 { try await store.fetchNextPage() }
    let earlier = server.requests.count
    server.version = 1
    server.fail(2, times: 2)
    let all = Task { try await store.fetchAllPages().elementValues }
    await clock.sleepers(atLeast: 1)
    #expect(store.currentValue.elementValues == ["0v0", "1v0", "2v0", "3v0", "4v0"])
    await clock.advance(by: .seconds(1))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(2))
    #expect(try await all.value == ["0v1", "1v1", "2v1", "3v1", "4v1"])
    #expect(Array(server.requests.dropFirst(earlier)) == [0, 1, 2, 2, 2, 3, 4])
    #expect(store.error == nil && store.errorUpdateCount == 0)
  }

  @Test("A failed fetch of all pages does not change the pages, and the next run starts over")
  func failsForGood() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...3)
    server.version = 1
    server.fail(2)
    await #expect(throws: PageServer.Failed(id: 2)) { try await store.fetchAllPages() }
    #expect(store.currentValue.elementValues == ["0v0", "1v0", "2v0", "3v0"])
    #expect(store.status.isFailure)
    #expect(try await store.fetchAllPages().elementValues == ["0v1", "1v1", "2v1", "3v1"])
    #expect(server.requests.suffix(7) == [0, 1, 2, 0, 1, 2, 3])
  }

  @Test("An attempt that timed out adds nothing to the retry, and requests no further page")
  func timeout() async throws {
    let server = PageServer()
    let clock = ManualClock()
    let request = Numbers(server: server).timeout(after: .seconds(5)).retry(limit: 1)
    let store = OperationClient(defaults: .quiet(), clock: clock)
      .store(for: request.backoff(.constant(.seconds(1))))
    for _ in 0..<3 { try await store.fetchNextPage() }
    let earlier = server.requests.count
    server.version = 1
    server.close()
    let all = Task { try await store.fetchAllPages().elementValues }
    await server.pending(1)
    server.answer(0)
    await Settled.when { server.pending.first?.id == 1 }
    await Settled.when { clock.sleeperCount == 1 }
    await clock.advance(by: .seconds(5))
    // The attempt is abandoned, and the retry waits for its backoff. The first answer arrives now.
    await clock.sleepers(atLeast: 1)
    server.answer(1)
    await clock.advance(by: .seconds(1))
    await server.pending(1)
    #expect(server.pending.map(\.id) == [1])
    server.version = 2
    server.open()
    #expect(try await all.value == ["0v1", "1v2", "2v2"])
    #expect(Array(server.requests.dropFirst(earlier)) == [0, 1, 1, 2])
  }

  @Test("New pages replace the old ones in one change of the state")
  func oneCommit() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...2)
    let log = ReceivedEvents<NumberState>()
    let subscription = store.subscribe(log.handler)
    server.version = 1
    try await store.fetchAllPages()
    subscription.cancel()
    let old = "[\"0v0\", \"1v0\", \"2v0\"]"
    let new = "[\"0v1\", \"1v1\", \"2v1\"]"
    #expect(
      log.lines { "\($0.currentValue.elementValues)" } == [old, "started", old, new, "ended"])
  }

  @Test("Pages that the server no longer has are removed")
  func shrinks() async throws {
    let server = PageServer(0...9)
    let store = try await numbers(server, there: 0...5)
    server.range = 0...2
    #expect(try await store.fetchAllPages().ids == [0, 1, 2])
    #expect(store.currentValue.ids == [0, 1, 2] && !store.hasNextPage)
    #expect(server.requests.suffix(3) == [0, 1, 2])
  }

  @Test("A fetch of all pages begins at the first page of the state")
  func beginsAtTheFirst() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    try await store.fetchPreviousPage()
    try await store.fetchPreviousPage()
    #expect(try await store.fetchAllPages().ids == [-2, -1, 0, 1])
  }

  @Test("A page replaces the page with the same identifier")
  func sameIdentifier() async throws {
    let version = Atomic(0)
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int>(
        path: ["circle"], initialPageId: 0, nextPageId: { page, _ in (page.id + 1) % 3 },
        previousPageId: { page, _ in (page.id + 2) % 3 }
      ) { _, _ in version.wrappingAdd(1, ordering: .relaxed).newValue })
    for _ in 0..<3 { try await store.fetchNextPage() }
    #expect(try await store.fetchNextPage()?.id == 0)
    #expect(store.currentValue.ids == [0, 1, 2])
    #expect(store.currentValue[0].value == 4)
    #expect(try await store.fetchPreviousPage()?.id == 2)
    #expect(store.currentValue.ids == [0, 1, 2] && store.currentValue[2].value == 5)
    #expect(try await store.fetchAllPages().ids == [0, 1, 2])
  }

  @Test("A refetch fetches what the request states, and calls for all pages fetch all")
  func refetching() async throws {
    let server = PageServer()
    let client = OperationClient(defaults: .quiet())
    let request = Numbers(server: server).refetching(.pages { [$0.ids[2], $0.ids[1]] })
    let store = client.store(for: request)
    for _ in 0..<3 { try await store.fetchNextPage() }
    server.version = 1
    #expect(try await store.fetch().pages.ids == [2, 1])
    #expect(store.currentValue.elementValues == ["0v0", "1v1", "2v1"])
    #expect(store.nextPageId == 3 && store.previousPageId == -1)
    server.version = 2
    try await store.fetchAllPages()
    #expect(store.currentValue.elementValues == ["0v2", "1v2", "2v2"])

    let first = OperationClient(defaults: .quiet())
      .store(for: Numbers(server: server).refetching(.firstPage))
    for _ in 0..<2 { try await first.fetchNextPage() }
    server.version = 3
    #expect(try await first.fetch().pages.ids == [0])
    #expect(first.currentValue.elementValues == ["0v3", "1v2"])
  }

  @Test("A retry of a refetch of picked pages continues at the page that failed")
  func retryOfPicked() async throws {
    let server = PageServer()
    let request = Numbers(server: server).refetching(.pages { [$0.ids[0], $0.ids[2]] })
    let store = OperationClient(defaults: .quiet())
      .store(for: request.retry(limit: 1).backoff(.noBackoff))
    for _ in 0..<3 { try await store.fetchNextPage() }
    server.fail(2)
    try await store.fetch()
    #expect(server.requests == [0, 1, 2, 0, 2, 2])
  }
}
