import FoundationEssentials
import Operation
import Testing

/// Resets, cancellations and failures in the middle of page runs.
@Suite struct PageEndTests {
  enum Call: CaseIterable, Sendable {
    case next
    case previous
    case all
    case plain
  }

  private func start(_ call: Call, _ store: NumberStore) -> Task<Void, any Error> {
    Task {
      switch call {
      case .next: try await store.fetchNextPage()
      case .previous: try await store.fetchPreviousPage()
      case .all: try await store.fetchAllPages()
      case .plain: try await store.fetch()
      }
    }
  }

  @Test("A reset in the middle of a run drops what it fetches", arguments: Call.allCases)
  func reset(_ call: Call) async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...2)
    server.close()
    let run = start(call, store)
    await server.pending(1)
    store.resetState()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(store.currentValue.isEmpty && !store.isLoading && store.status.isIdle)
    let again = Task { try await store.fetchNextPage()?.id }
    await server.pending(2)
    server.open()
    #expect(try await again.value == 0)
    await Settled.when { server.pending.isEmpty }
    #expect(store.currentValue.ids == [0] && store.valueUpdateCount == 1)
  }

  @Test(
    "A cancelled run changes no page, and stores no error", arguments: Call.allCases)
  func cancel(_ call: Call) async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...2)
    server.version = 1
    server.close()
    let run = start(call, store)
    await server.pending(1)
    let second = try #require(server.pending.first)
    if call == .all || call == .plain {
      server.answer(second)
      await Settled.when { server.pending.first?.id == 1 }
    }
    store.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(!store.isLoading && store.error == nil)
    let count = server.requests.count
    server.open()
    #expect(store.currentValue.elementValues == ["0v0", "1v0", "2v0"])
    #expect(try await store.fetchNextPage()?.value == "3v1")
    #expect(server.requests.count == count + 1)
  }

  @Test("A cancelled run that waits for another one never reaches the server")
  func cancelWaiting() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    let all = Task { try await store.fetchAllPages() }
    await Settled.when { store.leaseCount == 2 }
    all.cancel()
    await #expect(throws: CancellationError.self) { try await all.value }
    #expect(!store.isLoadingAllPages && store.isLoadingNextPage)
    server.open()
    #expect(try await next.value == 2)
    #expect(try await store.fetchNextPage()?.id == 3)
    #expect(server.requests == [0, 1, 2, 3])
  }

  @Test("A cancelled next page does not affect a concurrent previous page")
  func cancelOfTwo() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    server.close()
    let next = start(.next, store)
    let previous = start(.previous, store)
    await server.pending(2)
    next.cancel()
    await #expect(throws: CancellationError.self) { try await next.value }
    server.open()
    try await previous.value
    #expect(store.currentValue.ids == [-1, 0])
  }

  @Test("A run fails with the failure of the request's own type, and the state keeps it")
  func typedFailures() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet()).store(for: TypedNumbers(server: server))
    for _ in 0..<2 { try await store.fetchNextPage() }
    server.fail(2)
    do throws(PageServer.Failed) {
      try await store.fetchNextPage()
      Issue.record("The page failed.")
    } catch {
      #expect(error.id == 2)
    }
    #expect(store.error == PageServer.Failed(id: 2))
    #expect(store.status.isFailure && store.currentValue.ids == [0, 1])
    #expect(try await store.fetchNextPage()?.id == 2)
    #expect(store.error == nil)
  }

  @Test("A cancelled caller of a typed run gets its result, and the state does not")
  func typedCancel() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet()).store(for: TypedNumbers(server: server))
    for _ in 0..<3 { try await store.fetchNextPage() }
    server.version = 1
    server.close()
    let all = Task { try await store.fetchAllPages().elementValues }
    await server.pending(1)
    all.cancel()
    await Settled.when { !store.isLoading }
    server.open()
    #expect(try await all.value == ["0v1", "1v1", "2v1"])
    #expect(store.currentValue.elementValues == ["0v0", "1v0", "2v0"])
  }

  @Test("A reset in the middle of a typed run drops what it fetches")
  func typedReset() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet()).store(for: TypedNumbers(server: server))
    try await store.fetchNextPage()
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    store.resetState()
    server.open()
    #expect(try await next.value == 1)
    #expect(store.currentValue.isEmpty && store.status.isIdle)
  }

  @Test("After a failed next page, the queued fetch of all pages continues")
  func failureBefore() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    server.fail(2)
    server.close()
    let next = start(.next, store)
    await server.pending(1)
    let all = start(.all, store)
    await Settled.when { store.leaseCount == 2 }
    server.open()
    await #expect(throws: PageServer.Failed(id: 2)) { try await next.value }
    try await all.value
    #expect(store.currentValue.ids == [0, 1] && store.error == nil)
  }

  @Test("A page that follows the last one ends the mark that there is none")
  func endMark() async throws {
    let isLast = Monitor(false)
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int>(
        path: ["marked"], initialPageId: 1,
        nextPageId: { page, _ in isLast.value ? nil : page.id + 1 },
        previousPageId: { page, _ in page.id - 1 }
      ) { paging, _ in paging.pageId }.maxPages(3))
    for _ in 0..<2 { try await store.fetchNextPage() }
    isLast.update { $0 = true }
    #expect(try await store.fetchNextPage() == nil)
    #expect(store.currentValue.ids == [1, 2] && !store.hasNextPage)
    isLast.update { $0 = false }
    try await store.fetchNextPage()
    try await store.fetchPreviousPage()
    #expect(store.currentValue.ids == [0, 1, 2])
    #expect(store.hasNextPage)
  }

  @Test(
    "After a call has found no further page, an edit can name one, until it is undone",
    arguments: [true, false])
  func endMarkBelowEdit(isNext: Bool) async throws {
    let isLast = Monitor(false)
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Int>(
        path: ["marked"], initialPageId: 1,
        nextPageId: { page, _ in isLast.value ? nil : page.value },
        previousPageId: { page, _ in isLast.value ? nil : page.value }
      ) { paging, _ in paging.pageId + 1 })
    let further = { isNext ? store.nextPageId : store.previousPageId }
    let fetch = {
      (isNext ? try await store.fetchNextPage() : try await store.fetchPreviousPage())?.id
    }
    #expect(try await fetch() == 1)
    isLast.update { $0 = true }
    #expect(try await fetch() == nil)
    isLast.update { $0 = false }
    #expect(store.currentValue.ids == [1] && further() == nil)
    await #expect(throws: PageServer.Failed.self) {
      try await store.optimistically {
        $0[0].value = 7
      } while: {
        #expect(further() == 7)
        throw PageServer.Failed()
      }
    }
    #expect(store.currentValue[0].value == 2 && further() == nil)
    await store.optimistically {
      $0[0].value = 7
    } while: {
    }
    #expect(further() == 7)
    #expect(try await fetch() == 7)
  }

  @Test("A page that is dropped, because its neighbour was removed, does not make the others newer")
  func dateOfDropped() async throws {
    let server = PageServer()
    let clock = ManualClock()
    let store = OperationClient(defaults: .quiet(), clock: clock).store(
      for: Numbers(server: server))
    try await store.fetchNextPage()
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    store.currentValue = .written([5])
    let date = store.valueLastUpdatedAt
    await clock.advance(by: .seconds(1))
    server.open()
    #expect(try await next.value == 1)
    #expect(store.currentValue.ids == [5])
    #expect(store.valueLastUpdatedAt == date)
    try await store.fetchNextPage()
    #expect(store.valueLastUpdatedAt == date?.addingTimeInterval(1))
  }
}
