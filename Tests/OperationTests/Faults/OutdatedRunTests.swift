import Testing

@testable import Operation

/// Runs that began before an invalidation, beside those that answer it.
@Suite(.timeLimit(.minutes(5))) struct OutdatedRunTests {
  private let hands = OverlappingYieldTests.Hands()
  private let calls = Counter()
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, isDeduplicated: false), clock: ManualClock())
  private let store: OperationStore<QueryState<String, any Error>>

  init() {
    let query = Query<String, any Error>(path: ["q"]) { [hands, calls] _, yields in
      try await hands.take(calls.increment(), yields)
    }
    store = client.store(for: query.neverStale())
  }

  /// Begins a call, whose request has the next number.
  private func fetch() async -> Task<String, any Error> {
    let number = calls.value + 1
    let task = Task { try await store.fetch() }
    await hands.has(number)
    return task
  }

  /// Begins a run, invalidates the store, and answers the invalidation with a value.
  private func outdatedRun() async throws -> Task<String, any Error> {
    let run = await fetch()
    store.invalidate()
    let answer = await fetch()
    hands.end(2, "answer")
    #expect(try await answer.value == "answer" && !store.isStale)
    return run
  }

  /// Cancels runs, which restores the answer.
  private func cancel(_ runs: Task<String, any Error>...) async {
    for run in runs {
      run.cancel()
      _ = await run.result
    }
    #expect(store.currentValue == "answer")
  }

  @Test("A cancellation makes the value fresh again that an older run had replaced")
  func cancelled() async throws {
    let run = try await outdatedRun()
    hands.yield(1, "old")
    hands.yield(1, "older")
    #expect(store.currentValue == "older" && store.isStale)
    await cancel(run)
    #expect(!store.isStale)
    try await store.ensure()
    #expect(calls.value == 2)
    hands.endAll()
  }

  @Test(
    "A value is fresh again when the last of several runs that yielded is cancelled",
    arguments: [true, false])
  func severalYields(olderYieldsFirst: Bool) async throws {
    let run = try await outdatedRun()
    let newer = await fetch()
    hands.yield(olderYieldsFirst ? 1 : 3, "first")
    hands.yield(olderYieldsFirst ? 3 : 1, "second")
    await cancel(newer, run)
    #expect(!store.isStale)
    hands.endAll()
  }

  @Test("A value is fresh again after others have failed", arguments: 0...2)
  func failures(count: Int) async throws {
    let run = try await outdatedRun()
    hands.yield(1, "old")
    for number in 0..<count {
      let failing = await fetch()
      hands.end(3 + number)
      await #expect(throws: Failed.self) { try await failing.value }
    }
    await cancel(run)
    #expect(!store.isStale)
    hands.endAll()
  }

  @Test("What a follow-up would have waited for is released when the value is fresh again")
  func followUp() async throws {
    let (hands, baseCalls) = (hands, Counter())
    let base = Query<String, any Error>(path: ["base"]) { _, yields in
      try await hands.take(-baseCalls.increment(), yields)
    }
    let reader = client.store(
      for: Query<String, any Error>(path: ["reader"]) { context, yields in
        _ = try await context.ensure(base)
        return try await hands.take(1, yields)
      }.neverStale())
    let source = client.store(for: base)
    let subscription = OperationSubscription.combined([
      source.subscribe { _ in }, reader.subscribe { _ in },
    ])
    await hands.has(-1)
    hands.end(-1, "base")
    await hands.has(1)
    source.invalidate()
    await hands.has(-2)
    #expect(!reader.read { $0.freshness.followUpDependencies.isEmpty })
    reader.currentValue = "written"
    hands.yield(1, "old")
    #expect(reader.currentValue == "old" && reader.isStale)
    reader.cancel()
    #expect(reader.currentValue == "written" && !reader.isStale)
    #expect(reader.read { $0.freshness.followUpDependencies.isEmpty })
    hands.endAll()
    subscription.cancel()
  }

  @Test(
    "The restored value is stale after another invalidation, and what an older run yielded before it failed",
    arguments: [true, false])
  func stale(fails: Bool) async throws {
    let run = try await outdatedRun()
    hands.yield(1, "old")
    if fails {
      hands.end(1)
    } else {
      store.invalidate()
      run.cancel()
    }
    _ = await run.result
    #expect(store.currentValue == (fails ? "old" : "answer") && store.isStale)
    hands.endAll()
  }

  @Test("No run follows a failure that began after the invalidation", arguments: [true, false])
  func failed(isWritten: Bool) async throws {
    let subscription = store.subscribe { _ in }
    await hands.has(1)
    store.invalidate()
    let answer = await fetch()
    let last: Task<String, any Error>
    if isWritten {
      store.currentValue = "written"
      last = answer
    } else {
      hands.end(2, "answer")
      _ = try await answer.value
      last = await fetch()
    }
    let count = calls.value
    hands.end(1, "old")
    await Settled.when { store.currentValue == "old" }
    hands.end(count)
    await #expect(throws: Failed.self) { try await last.value }
    await Settled.when { store.leaseCount == 0 || calls.value > count }
    #expect(store.currentValue == "old" && store.isStale && calls.value == count)
    subscription.cancel()
  }
}
