import FoundationEssentials
import Synchronization
import Testing

@testable import Operation

/// Runs in flight at the same time, of which one is cancelled after others have yielded or ended.
@Suite(.timeLimit(.minutes(5))) struct OverlappingYieldTests {
  /// Requests that yield and end as a test says. They ignore cancellation.
  final class Hands: Sendable {
    typealias Yields = OperationContinuation<String, any Error>
    private struct Entry: Sendable {
      let yields: Yields
      let waiter: CheckedContinuation<Result<String, any Error>, Never>
    }
    private let entries = Mutex<[Int: Entry]>([:])

    func take(_ key: Int, _ yields: Yields) async throws -> String {
      try await withCheckedContinuation { waiter in
        entries.withLock { $0[key] = Entry(yields: yields, waiter: waiter) }
      }.get()
    }
    func has(_ key: Int) async { await Settled.when { entries.withLock { $0[key] != nil } } }
    func yield(_ key: Int, _ value: String) { entries.withLock { $0[key] }?.yields.yield(value) }
    func yieldError(_ key: Int) { entries.withLock { $0[key] }?.yields.yield(error: Failed()) }
    func end(_ key: Int, _ value: String? = nil) {
      entries.withLock { $0.removeValue(forKey: key) }?.waiter
        .resume(returning: value.map { .success($0) } ?? .failure(Failed()))
    }
    func endAll() { for key in entries.withLock({ $0.keys }) { end(key) } }
  }

  private let hands = Hands()
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 0))
  private func at(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

  private func mutation() -> OperationStore<MutationState<Int, String, any Error>> {
    let hands = hands
    return OperationClient(defaults: .quiet(), clock: clock).store(
      for: Mutation<Int, String>(path: ["m"]) { key, _, yields in try await hands.take(key, yields)
      }
    )
  }

  private func query() -> OperationStore<QueryState<String, any Error>> {
    let hands = hands
    return OperationClient(defaults: .quiet(isDeduplicated: false), clock: clock).store(
      for: Query<String, any Error>(path: ["q"]) { context, yields in
        try await hands.take(context.fixtureNumber, yields)
      })
  }

  private func pages() async throws -> OperationStore<PaginatedState<Int, String, any Error>> {
    let hands = hands
    let store = OperationClient(defaults: .quiet(), clock: clock).store(
      for: Paginated<Int, String>(
        path: ["p"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
        previousPageId: { page, _ in page.id - 1 }
      ) { paging, _, yields in try await hands.take(paging.pageId, yields) })
    let first = await start(0) { try await store.fetchNextPage() }
    hands.end(0, "0")
    _ = try await first.value
    return store
  }

  /// Starts a run whose request takes a key, and has it yield a value.
  private func start<Value: Sendable>(
    _ key: Int, yielding value: String? = nil,
    _ run: @escaping @Sendable () async throws -> Value
  ) async -> Task<Value, any Error> {
    let task = Task { try await run() }
    await hands.has(key)
    if let value { hands.yield(key, value) }
    return task
  }

  private func cancel<Value>(_ run: Task<Value, any Error>) async {
    run.cancel()
    _ = await run.result
  }

  @Test(
    "A yield is taken back after an older call has ended that yielded later",
    arguments: [true, false])
  func olderYieldsAfterNewer(succeeds: Bool) async throws {
    let store = mutation()
    let older = await start(0) { try await store.mutate(with: 0) }
    let newer = await start(1, yielding: "half 1") { try await store.mutate(with: 1) }
    hands.yield(0, "half 0")
    #expect(store.currentValue == "half 1")
    hands.end(0, succeeds ? "done 0" : nil)
    _ = await older.result
    await cancel(newer)
    #expect(store.currentValue == (succeeds ? "done 0" : nil))
    #expect((store.error != nil) == !succeeds)
    #expect(store.valueUpdateCount == (succeeds ? 1 : 0))
    hands.endAll()
  }

  @Test("A yield is taken back after another run has failed that yielded later")
  func failureOfOther() async throws {
    let store = query()
    let first = await start(0) { try await store.fetch(using: .number(0)) }
    let second = await start(1, yielding: "b") { try await store.fetch(using: .number(1)) }
    hands.yieldError(0)
    hands.end(0)
    _ = await first.result
    await cancel(second)
    #expect(store.currentValue == nil && store.error is Failed)
    hands.endAll()
  }

  @Test("A cancellation leaves the date of what the run of another page has yielded")
  func dateOfOtherPage() async throws {
    let store = try await pages()
    await clock.advance(by: .seconds(5))
    let next = await start(1, yielding: "half 1") { try await store.fetchNextPage() }
    await clock.advance(by: .seconds(5))
    let previous = await start(-1, yielding: "half -1") { try await store.fetchPreviousPage() }
    #expect(store.valueLastUpdatedAt == at(10))
    await clock.advance(by: .seconds(90))
    await cancel(next)
    #expect(store.currentValue.ids == [-1, 0])
    #expect(store.valueLastUpdatedAt == at(10))
    hands.endAll()
    _ = await previous.result
  }

  @Test("A cancellation leaves the date of a failure that another run has yielded")
  func dateOfFailure() async throws {
    let store = query()
    let first = await start(0, yielding: "a") { try await store.fetch(using: .number(0)) }
    let second = await start(1) { try await store.fetch(using: .number(1)) }
    hands.yieldError(1)
    await clock.advance(by: .seconds(90))
    await cancel(first)
    #expect(store.currentValue == nil && store.error is Failed)
    #expect(store.errorLastUpdatedAt == at(0))
    hands.endAll()
    _ = await second.result
  }

  @Test("A cancellation leaves the date of a failure that was set")
  func dateOfSetFailure() async throws {
    let store = query()
    let first = await start(0, yielding: "a") { try await store.fetch(using: .number(0)) }
    store.setResult(to: .failure(Failed()))
    await clock.advance(by: .seconds(90))
    await cancel(first)
    #expect(store.currentValue == nil && store.error is Failed)
    #expect(store.errorLastUpdatedAt == at(0))
    hands.endAll()
  }

  @Test("A cancellation leaves the dates of what another call has yielded")
  func dateOfCall() async throws {
    let store = mutation()
    let first = await start(0, yielding: "a") { try await store.mutate(with: 0) }
    let second = await start(1, yielding: "b") { try await store.mutate(with: 1) }
    await clock.advance(by: .seconds(90))
    await cancel(first)
    #expect(store.currentValue == "b")
    #expect(store.valueLastUpdatedAt == at(0))
    #expect(store.history.last?.lastUpdatedAt == at(0))
    hands.endAll()
    _ = await second.result
  }

  @Test("A cancellation leaves the value that another run has yielded before a failure")
  func valueBelowFailure() async throws {
    let store = query()
    let first = await start(0, yielding: "a") { try await store.fetch(using: .number(0)) }
    let second = await start(1, yielding: "b") { try await store.fetch(using: .number(1)) }
    hands.yieldError(1)
    #expect(store.currentValue == "b" && store.error is Failed)
    await cancel(first)
    #expect(store.currentValue == "b" && store.error is Failed)
    hands.endAll()
    _ = await second.result
  }

  @Test(
    "A cancellation leaves the page that another run has yielded before a failure",
    arguments: [false, true])
  func pageBelowFailure(hasEnded: Bool) async throws {
    let store = try await pages()
    let previous = await start(-1, yielding: "half -1") { try await store.fetchPreviousPage() }
    let next = await start(1, yielding: "half 1") { try await store.fetchNextPage() }
    hands.yieldError(1)
    if hasEnded {
      hands.end(1)
      _ = await next.result
    }
    #expect(store.currentValue.ids == [-1, 0, 1])
    await cancel(previous)
    #expect(store.currentValue.ids == [0, 1])
    hands.endAll()
    _ = await next.result
  }

  @Test("A cancellation leaves the value that another call has yielded before a failure")
  func valueOfCallBelowFailure() async throws {
    let store = mutation()
    let first = await start(0, yielding: "a") { try await store.mutate(with: 0) }
    let second = await start(1, yielding: "b") { try await store.mutate(with: 1) }
    hands.yieldError(1)
    await cancel(first)
    #expect(store.currentValue == "b" && store.error is Failed)
    hands.endAll()
    _ = await second.result
  }
}
