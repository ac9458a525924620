import Foundation
import ReactiveStreams
import Testing

@testable import Operation

/// The rules of a map are those of the query that it is made from.
@Suite(.timeLimit(.minutes(5))) struct MapRuleTests {
  private let clock = ManualClock(now: Date(timeIntervalSinceReferenceDate: 800_000_000))
  private let calls = Monitor(0)

  private func client(_ defaults: OperationDefaults = .testing) -> OperationClient {
    OperationClient(defaults: defaults, clock: clock)
  }

  private var numbers: Query<Int, any Error> {
    Query(path: ["numbers"]) { [calls] _ in
      calls.update {
        $0 += 1
        return $0
      }
    }
  }

  /// Returns the map of a query at one place in the source.
  private func label<Base: QueryRequest<Int, QueryState<Int, any Error>>>(
    _ base: Base
  ) -> MappedQuery<Base, String, any Error> where Base.FetchFailure == any Error {
    base.map { "<\($0)>" }
  }

  @Test("Maps of a query with several modifiers share a store")
  func sharedStore() async {
    let client = client()
    let reported = await issues {
      let first = client.store(for: label(numbers))
      #expect(client.store(for: label(numbers.retry(limit: 1))) === first)
    }
    #expect(reported.issues.isEmpty)
    #expect(client.stores(matching: []).count == 1)
  }

  @Test("A map brings the stale time of its query")
  func staleTime() async throws {
    let client = client()
    #expect(try await client.ensure(label(numbers.stale(after: .seconds(1000)))) == "<1>")
    await clock.advance(by: .seconds(10))
    #expect(try await client.ensure(label(numbers.stale(after: .seconds(1000)))) == "<1>")
    #expect(try await client.ensure(label(numbers.stale(after: .seconds(5)))) == "<2>")
  }

  @Test("A map brings the retries of its query")
  func retries() async throws {
    let client = client()
    let query = Query<Int, any Error>(path: ["failing"]) { [calls] context in
      calls.update { $0 += 1 }
      guard context.isLastRetryAttempt, context.operationMaxRetries > 0 else { throw Refused() }
      return calls.value
    }.backoff(.noBackoff)
    _ = client.store(for: label(query.retry(limit: 0)))
    #expect(try await client.fetch(label(query.retry(limit: 2))) == "<3>")
  }

  @Test("Observers of a map poll its query at the interval of their own")
  func polls() async {
    let client = client()
    let query = numbers.neverStale()
    let store = client.store(for: label(query.rerun(every: .seconds(1000))))
    let slow = store.subscribe { _ in }
    await clock.settle()
    let rules = store.rules(of: label(query.rerun(every: .seconds(10))))
    let fast = store.subscribe(by: rules) { _ in }
    await clock.settle()
    #expect(calls.value == 1)
    await clock.advance(by: .seconds(10))
    await clock.settle()
    #expect(calls.value == 2 && store.currentValue == "<2>")
    fast.cancel()
    slow.cancel()
  }

  @Test("A map of a query whose clock is ahead is fresh")
  func clockAhead() async throws {
    let client = client()
    let ahead = ManualClock(now: Date(timeIntervalSinceReferenceDate: 900_000_000))
    let mapped = label(numbers.neverStale().clock(ahead))
    for _ in 0..<3 { #expect(try await client.ensure(mapped) == "<1>") }
    #expect(!client.store(for: mapped).isStale)
  }

  @Test("A map follows the values of its query without a connection")
  func offline() async {
    let client = client(
      OperationDefaults(
        retryLimit: 0, networkMode: .online, networkObserver: ManualNetworkObserver(.disconnected)))
    let query = numbers.neverStale()
    let store = client.store(for: query)
    store.setResult(to: .success(7))
    let mapped = client.store(for: label(query))
    let subscription = mapped.subscribe { _ in }
    await clock.settle()
    #expect(mapped.currentValue == "<7>")
    store.setResult(to: .success(8))
    await clock.settle()
    #expect(mapped.currentValue == "<8>" && mapped.status.isSuccess)
    subscription.cancel()
  }

  @Test("A condition of a map has its query called again") func conditionOfMap() async {
    let network = ManualNetworkObserver(.disconnected)
    let client = client(OperationDefaults(retryLimit: 0, networkObserver: network))
    let mapped = label(numbers.neverStale()).rerunOnChange(of: .connected, evenIfFresh: true)
    let store = client.store(for: mapped)
    let subscription = store.subscribe { _ in }
    await clock.settle()
    #expect(store.currentValue == "<1>")
    network.set(.connected)
    await clock.settle()
    #expect(store.currentValue == "<2>" && calls.value == 2)
    subscription.cancel()
  }

  @Test(
    "An observed reader of a map does not fetch the map's query without an end", arguments: 0..<2)
  func readerOfMap(kind: Int) async {
    let client = client()
    let failing = Monitor(false)
    let query = Query<Int, any Error>(path: ["numbers"]) { [calls] _ in
      calls.update { $0 += 1 }
      if failing.value, calls.value < 50 { throw Refused() }
      return calls.value
    }
    let base = kind == 0 ? query.stale(after: .seconds(1000)) : query.stale(after: .zero)
    let mapped = label(base)
    let reader = Query<String, any Error>(path: ["reader"]) { context in
      try await context.ensure(mapped)
    }
    let subscriptions = [
      client.store(for: mapped).subscribe { _ in },
      client.store(for: reader).subscribe { _ in },
    ]
    await clock.settle()
    let count = calls.value
    failing.update { $0 = kind == 0 }
    _ = try? await client.fetch(base)
    await clock.settle()
    #expect(calls.value == count + 1)
    #expect(client.store(for: reader).currentValue != nil)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A reset of a query while a run of its observed map is in flight starts no run")
  func resetInFlight() async {
    let client = client()
    let gate = AsyncGate()
    let query = Query<Int, any Error>(path: ["numbers"]) { [calls] _ in
      calls.update { $0 += 1 }
      await gate.wait()
      return calls.value
    }
    let store = client.store(for: label(query))
    let subscription = store.subscribe { _ in }
    // The map's run waits for that of the query, which the subscriber holds, too.
    await Settled.when { client.store(for: query).leaseCount == 2 }
    client.reset(query)
    gate.open()
    await clock.settle()
    #expect(calls.value == 1 && !store.isLoading && store.currentValue == nil)
    subscription.cancel()
  }

  @Test("An observed map has a failure that its query yields")
  func yieldedFailure() async {
    let client = client()
    let gates = (0..<3).map { _ in AsyncGate() }
    let query = Query<Int, any Error>(path: ["numbers"]) { _, continuation in
      await gates[0].wait()
      continuation.yield(1)
      await gates[1].wait()
      continuation.yield(error: Refused())
      await gates[2].wait()
      return 2
    }
    let store = client.store(for: label(query))
    let states = Monitor<[String]>([])
    let subscription = store.subscribe { event in
      guard case .stateChanged(let state) = event else { return }
      states.update { $0.append("\(state.currentValue ?? "none") \(state.error == nil)") }
    }
    await Settled.when { client.store(for: query).leaseCount == 2 }
    gates[0].open()
    await states.wait { $0.last == "<1> true" }
    gates[1].open()
    await states.wait { $0.last == "<1> false" }
    gates[2].open()
    await states.wait { $0.last == "<2> true" }
    subscription.cancel()
  }

  @Test("An observed map has the failure that comes after the value, until the next value")
  func followedFailure() async throws {
    let client = client()
    let failing = Monitor(false)
    let query = Query<Int, any Error>(path: ["numbers"]) { [calls] _ in
      calls.update { $0 += 1 }
      if failing.value { throw Refused() }
      return calls.value
    }.neverStale()
    let mapped = client.store(for: label(query))
    let subscription = mapped.subscribe { _ in }
    await clock.settle()
    #expect(mapped.currentValue == "<1>" && mapped.error == nil)
    failing.update { $0 = true }
    await #expect(throws: Refused()) { try await client.fetch(query) }
    await clock.settle()
    #expect(mapped.currentValue == "<1>" && mapped.error is Refused)
    #expect(calls.value == 2)
    failing.update { $0 = false }
    try await client.fetch(query)
    await clock.settle()
    #expect(mapped.currentValue == "<3>" && mapped.error == nil && !mapped.isStale)
    #expect(calls.value == 3)
    subscription.cancel()
  }

  @Test("A map that was written beside an initial value of its query is fresh")
  func initialValue() {
    let client = client()
    _ = client.store(for: numbers.neverStale(), initialValue: 1)
    let store = client.store(for: label(numbers.neverStale()))
    store.currentValue = "<0>"
    #expect(!store.isStale)
  }

  @Test("An observation of a map that is fresh calls nothing")
  func freshMap() async throws {
    let client = client()
    let transforms = Monitor(0)
    let map = numbers.neverStale().map { number in
      transforms.update { $0 += 1 }
      return number
    }
    try await client.fetch(map)
    let subscription = client.store(for: map).subscribe { _ in }
    await clock.settle()
    #expect(transforms.value == 1 && calls.value == 1)
    subscription.cancel()
  }

  @Test("An invalidation of a query reaches those who read a map of it")
  func invalidatedForReader() async throws {
    let client = client()
    let base = client.store(for: numbers.neverStale())
    try await base.run()
    let map = label(numbers.neverStale())
    let reader = client.store(
      for: Query<String, any Error>(path: ["reader"]) { try await $0.ensure(map) }.neverStale())
    let subscription = reader.subscribe { _ in }
    await clock.settle()
    #expect(reader.currentValue == "<1>")
    base.invalidate()
    await clock.settle()
    #expect(reader.currentValue == "<2>")
    subscription.cancel()
  }

  @Test("A cancellation that is set leaves a map as out of date as it was")
  func cancellationOfMap() async throws {
    let client = client()
    let query = OpenQuery(script: Script()).neverStale()
    let map = query.map { $0 * 10 }
    let store = client.store(for: map)
    #expect(try await store.fetch() == 10)
    client.store(for: query).currentValue = 2
    store.setResult(to: .failure(CancellationError()))
    #expect(store.isStale)
    #expect(try await client.ensure(map) == 20)
  }
}
