import Operation
import Synchronization
import Testing

/// Pages that yield values before their last one.
@Suite struct PageYieldTests {
  /// Pages with a yielded value, which is partial, and a final one, which is the server's.
  struct Halves: PaginatedRequest {
    let server: PageServer
    let initialPageId = 0
    var continuations: Continuations?
    var path: OperationPath { ["halves"] }

    func pageId(
      after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
      in context: OperationContext
    ) -> Int? { page.id + 1 }

    func pageId(
      before page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
      in context: OperationContext
    ) -> Int? { page.id - 1 }

    func fetchPage(
      using paging: PaginatedPaging<Int, String>, in context: OperationContext,
      with continuation: OperationContinuation<String, any Error>
    ) async throws -> String {
      continuations?.add(continuation)
      continuation.yield("half \(paging.pageId)")
      return try await server.page(paging)
    }
  }

  final class Continuations: Sendable {
    private let storage = Mutex<[OperationContinuation<String, any Error>]>([])
    func add(_ continuation: OperationContinuation<String, any Error>) {
      storage.withLock { $0.append(continuation) }
    }
    /// Releases the continuations, which retain the request that retains them.
    func clear() { storage.withLock { $0 = [] } }
    var last: OperationContinuation<String, any Error>? { storage.withLock { $0.last } }
  }

  private func line(_ state: NumberState) -> String { "\(state.currentValue.elementValues)" }

  @Test("A partial page is displayed and notified as a yield, and the final page replaces it")
  func displayed() async throws {
    let store = OperationClient(defaults: .quiet()).store(for: Halves(server: PageServer()))
    try await store.fetchNextPage()
    let log = ReceivedEvents<NumberState>()
    try await store.fetchNextPage(handler: log.handler)
    #expect(
      log.lines(line) == [
        "started", "[\"0v0\"]", "[\"0v0\", \"half 1\"]", "yielded", "[\"0v0\", \"1v0\"]", "ended",
      ])
    #expect(store.currentValue.ids == [0, 1] && store.nextPageId == 2)
  }

  @Test("A fetch of all pages displays partial pages in place, and removes none before its end")
  func allPages() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet()).store(for: Halves(server: server))
    for _ in 0..<2 { try await store.fetchNextPage() }
    server.version = 1
    server.close()
    let all = Task { try await store.fetchAllPages().elementValues }
    await server.pending(1)
    #expect(store.currentValue.elementValues == ["half 0", "1v0"] && store.isLoadingAllPages)
    server.answer(0)
    await Settled.when { server.pending.first?.id == 1 }
    #expect(store.currentValue.ids == [0, 1])
    server.open()
    #expect(try await all.value == ["0v1", "1v1"])
    #expect(store.currentValue.elementValues == ["0v1", "1v1"])
  }

  @Test("A cancelled run removes its partial page")
  func cancelled() async throws {
    let server = PageServer()
    let store = OperationClient(defaults: .quiet()).store(for: Halves(server: server))
    try await store.fetchNextPage()
    server.close()
    let next = Task { try await store.fetchNextPage() }
    await server.pending(1)
    #expect(store.currentValue.ids == [0, 1])
    store.cancel()
    await #expect(throws: CancellationError.self) { try await next.value }
    #expect(store.currentValue.elementValues == ["0v0"] && store.nextPageId == 1)
    server.open()
  }

  /// Fetches a page on either side of a first one. Both are partial when this returns.
  private func bothSides(
    _ server: PageServer, nextFirst: Bool
  ) async throws -> (store: NumberStore, first: Task<Void, any Error>, other: Task<Void, any Error>)
  {
    let store = OperationClient(defaults: .quiet()).store(for: Halves(server: server))
    try await store.fetchNextPage()
    server.close()
    var runs: [Task<Void, any Error>] = []
    for isNext in [nextFirst, !nextFirst] {
      runs.append(
        Task {
          if isNext { try await store.fetchNextPage() } else { try await store.fetchPreviousPage() }
        })
      await server.pending(runs.count)
    }
    #expect(store.currentValue.elementValues == ["half -1", "0v0", "half 1"])
    return (store, runs[0], runs[1])
  }

  @Test(
    "A cancelled run removes its partial page, and not the one at the other side",
    arguments: [(true, true), (true, false), (false, true), (false, false)])
  func cancelledSide(nextFirst: Bool, endsBefore: Bool) async throws {
    let server = PageServer()
    let (store, first, other) = try await bothSides(server, nextFirst: nextFirst)
    let otherID = nextFirst ? -1 : 1
    if endsBefore {
      server.answer(otherID)
      try await other.value
    }
    first.cancel()
    _ = await first.result
    if !endsBefore {
      #expect(store.currentValue[id: otherID]?.value == "half \(otherID)")
      #expect(store.currentValue.count == 2)
      server.answer(otherID)
      try await other.value
    }
    #expect(store.currentValue.ids == (nextFirst ? [-1, 0] : [0, 1]))
    #expect(store.currentValue[id: otherID]?.value == "\(otherID)v0")
    server.open()
  }

  @Test("A failure that is set stays when one of two runs with partial pages is cancelled")
  func setFailure() async throws {
    let server = PageServer()
    let (store, first, other) = try await bothSides(server, nextFirst: true)
    store.setResult(to: .failure(PageServer.Failed(id: 9)))
    first.cancel()
    _ = await first.result
    #expect(store.currentValue.elementValues == ["half -1", "0v0"])
    #expect(store.error as? PageServer.Failed == PageServer.Failed(id: 9))
    #expect(store.valueUpdateCount == 3)
    server.open()
    try await other.value
    #expect(store.error == nil)
  }

  @Test("A failed page keeps its partial value when the run at the other side is cancelled")
  func failedSide() async throws {
    let server = PageServer()
    let (store, first, other) = try await bothSides(server, nextFirst: true)
    server.fail(-1)
    server.answer(-1)
    await #expect(throws: PageServer.Failed.self) { try await other.value }
    first.cancel()
    _ = await first.result
    #expect(store.currentValue.elementValues == ["half -1", "0v0"])
    #expect(store.error is PageServer.Failed)
    server.open()
  }

  @Test("A yield after the end of the run is reported, and changes nothing")
  func late() async throws {
    let issues = ReceivedIssues()
    let continuations = Continuations()
    defer { continuations.clear() }
    let request = Halves(server: PageServer(), continuations: continuations)
    let store = OperationClient(defaults: .quiet()).store(for: request)
    try await store.fetchNextPage()
    let updates = store.valueUpdateCount
    OperationIssue.withHandler(issues.handler) { continuations.last?.yield("late") }
    #expect(issues.kinds == [.lateYield])
    #expect(issues.messages.first?.contains("halves") == true)
    #expect(store.currentValue.elementValues == ["0v0"] && store.valueUpdateCount == updates)
  }

  @Test("A yield after a cancellation is dropped without a report")
  func lateAfterCancel() async throws {
    let issues = ReceivedIssues()
    let server = PageServer()
    let continuations = Continuations()
    defer { continuations.clear() }
    let request = Halves(server: server, continuations: continuations)
    let store = OperationClient(defaults: .quiet()).store(for: request)
    server.close()
    let run = Task { try await store.fetchNextPage() }
    await server.pending(1)
    store.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    OperationIssue.withHandler(issues.handler) { continuations.last?.yield("late") }
    #expect(issues.kinds.isEmpty && store.currentValue.isEmpty)
    server.open()
  }

  @Test("Subscribers are notified of a yielded failure, and the run continues")
  func yieldedFailure() async throws {
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, String>(
        path: ["failing"], initialPageId: 0, nextPageId: { _, _ in nil }
      ) { _, _, continuation in
        continuation.yield(error: PageServer.Failed(id: 9))
        return "whole"
      })
    let log = ReceivedEvents<NumberState>()
    #expect(try await store.fetchNextPage(handler: log.handler)?.value == "whole")
    #expect(log.lines(line) == ["started", "[]", "[]", "yielded", "[\"whole\"]", "ended"])
    #expect(store.errorUpdateCount == 1 && store.error == nil)
  }

  @Test("The continuation of a run without a store receives its yields")
  func withoutAStore() async throws {
    let yielded = Mutex<[String]>([])
    let result = try await Halves(server: PageServer()).run(
      with: OperationContinuation { result in
        yielded.withLock { $0 += (try? result.get().pages.elementValues) ?? [] }
      })
    #expect(result.pages.elementValues == ["0v0"] && yielded.withLock { $0 } == ["half 0"])
  }

  @Test("A query displays what it yields, and reports a yield after its end")
  func query() async throws {
    let continuations = Continuations()
    let store = OperationClient(defaults: .quiet()).store(
      for: Query(path: ["query"]) { (_, continuation: OperationContinuation<String, any Error>) in
        continuations.add(continuation)
        continuation.yield("half")
        return "whole"
      })
    let log = ReceivedEvents<QueryState<String, any Error>>()
    #expect(try await store.run(handler: log.handler) == "whole")
    #expect(
      log.lines { $0.currentValue ?? "nothing" } == [
        "started", "nothing", "half", "yielded", "whole", "ended",
      ])
    let issues = ReceivedIssues()
    OperationIssue.withHandler(issues.handler) { continuations.last?.yield("late") }
    #expect(issues.kinds == [.lateYield] && store.currentValue == "whole")
  }
}
