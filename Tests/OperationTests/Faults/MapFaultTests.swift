import Foundation
import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

@Suite(.timeLimit(.minutes(5))) struct MapFaultTests {
  private let clock = ManualClock(now: Date(timeIntervalSinceReferenceDate: 800_000_000))

  private func client() -> OperationClient { OperationClient(defaults: .testing, clock: clock) }

  /// A query that returns the number of its calls.
  private func numbers(_ calls: Monitor<Int>) -> Query<Int, any Error> {
    Query(path: ["numbers"]) { _ in
      calls.update {
        $0 += 1
        return $0
      }
    }
  }

  private func rounds(_ limit: Int = 3_000, until isDone: () -> Bool) async {
    var count = 0
    while !isDone(), count < limit {
      await Task.yield()
      count += 1
    }
  }

  @Test(
    "A map of a query whose value is stale at once does not fetch without an end", arguments: 0..<3)
  func mapOfStale(kind: Int) async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let calls = Monitor(0)
    let base = numbers(calls)
    let subscription: OperationSubscription
    switch kind {
    case 0:
      subscription = client.store(for: base.stale(after: .zero).map { 2 * $0 }).subscribe { _ in }
    case 1:
      subscription = client.store(for: base.staleWhen { _, _ in true }.map { 2 * $0 }).subscribe {
        _ in
      }
    default:
      subscription = client.store(for: base.map { 2 * $0 }).subscribe { _ in }
    }
    await rounds { calls.value > 50 }
    subscription.cancel()
    #expect(calls.value < 5)
  }

  @Test("A map of a query that yields and then fails does not fetch without an end")
  func mapOfFailing() async {
    let client = client()
    let calls = Monitor(0)
    let base = Query<Int, any Error>(path: ["numbers"]) { _, continuation in
      calls.update { $0 += 1 }
      continuation.yield(calls.value)
      if calls.value > 50 { return 0 }
      throw Refused()
    }
    let mapped = client.store(for: base.map { 2 * $0 })
    let subscription = mapped.subscribe { _ in }
    await clock.settle()
    client.invalidate(base)
    await clock.settle()
    #expect(calls.value < 5)
    #expect(mapped.currentValue == 2 * calls.value && mapped.error is Refused)
    subscription.cancel()
  }

  @Test("A chain of maps of a query whose value is stale at once does not fetch without an end")
  func mapsOfMaps() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let calls = Monitor(0)
    let base = numbers(calls)
    let mapped = client.store(for: base.stale(after: .zero).map { 2 * $0 }.map { "\($0)" })
    let subscription = mapped.subscribe { _ in }
    var count = 0
    while calls.value < 50, count < 3_000 {
      await Task.yield()
      count += 1
    }
    #expect(calls.value < 5)
    #expect(await eventually { client.stores(matching: [], where: .loading).isEmpty })
    let before = calls.value
    client.invalidate(base)
    #expect(await eventually { calls.value > before })
    count = 0
    while calls.value < 50, count < 3_000 {
      await Task.yield()
      count += 1
    }
    #expect(calls.value <= before + 2)
    #expect(await eventually { mapped.currentValue == "\(2 * calls.value)" })
    subscription.cancel()
  }

  @Test("A run that follows a new value does not fetch for a map below it")
  func followingRun() async throws {
    let client = client()
    let calls = Monitor(0)
    let mapped = client.store(for: numbers(calls).stale(after: .zero).map { 2 * $0 })
    try await mapped.fetch()
    mapped.invalidateAlone()
    // As a map of this map does when the value has changed.
    let value = try await mapped.ensure(ignoringAge: true, present: { $0 }, fetched: { $0 })
    #expect(value == 2 && calls.value == 1)
  }

  @Test("A reset of a query whose map is observed starts no run")
  func resetOfMapped() async throws {
    let client = client()
    let calls = Monitor(0)
    let base = numbers(calls)
    let mapped = client.store(for: base.map { 2 * $0 })
    let subscription = mapped.subscribe { _ in }
    // The map runs again after the first value. If that run began after the reset, it would fetch.
    await clock.settle()
    #expect(mapped.currentValue == 2)
    let before = calls.value
    client.reset(base)
    await clock.settle()
    #expect(mapped.isStale)
    subscription.cancel()
    #expect(calls.value == before)
  }

  private func base(_ number: Monitor<Int>, _ calls: Counter = Counter()) -> Query<Int, any Error> {
    Query(path: ["base"]) { _ in
      calls.increment()
      return number.value
    }
  }

  @Test("An observed map is fresh after its query was fetched again with an equal value")
  func mapAfterEqual() async throws {
    let client = client()
    let calls = Counter()
    let base = base(Monitor(1), calls).neverStale()
    let mapped = client.store(for: base.map { $0 + 10 })
    let subscription = mapped.subscribe { _ in }
    await clock.settle()
    #expect(mapped.currentValue == 11 && !mapped.isStale)
    await clock.advance(by: .seconds(1))
    try await client.fetch(base)
    await clock.settle()
    #expect(calls.value == 2)
    #expect(!mapped.isStale)
    subscription.cancel()
  }

  @Test("A map is made again from the initial value of another store of its query")
  func mapOfOtherInitial() async throws {
    let client = client()
    let base = base(Monitor(1)).neverStale()
    _ = client.store(for: base, initialValue: 5)
    let mapped = base.map { $0 + 10 }
    #expect(try await client.ensure(mapped) == 15)
    client.clearStore(with: ["base"])
    _ = client.store(for: base, initialValue: 9)
    #expect(try await client.ensure(mapped) == 19)
  }

  @Test("A map is made again from the initial value after its query was evicted")
  func mapOfEvicted() async throws {
    let client = client()
    let base = base(Monitor(1)).neverStale()
    _ = client.store(for: base, initialValue: 5)
    let mapped = base.map { $0 + 10 }.retained(.forever)
    #expect(try await client.ensure(mapped) == 15)
    await clock.advance(by: .seconds(301))
    await clock.settle()
    #expect(client.store(with: ["base"]) == nil)
    _ = client.store(for: base, initialValue: 9)
    #expect(try await client.ensure(mapped) == 19)
  }

  @Test("A map is made again from another store of its query, at the same moment")
  func mapOfOtherStore() async throws {
    let client = client()
    let number = Monitor(1)
    let base = base(number).neverStale()
    let mapped = base.map { $0 + 10 }
    #expect(try await client.ensure(mapped) == 11)
    client.clearStore(with: ["base"])
    number.update { $0 = 2 }
    #expect(try await client.fetch(base) == 2)
    #expect(try await client.ensure(mapped) == 12)
  }

  @Test("A map of a store that was removed during the run is made again from the next store")
  func mapOfRemovedStore() async throws {
    let client = client()
    let (gates, calls) = ([AsyncGate(), AsyncGate()], Counter())
    let base = Query<Int, any Error>(path: ["numbers"]) { _ in
      let call = calls.increment()
      await gates[call - 1].wait()
      return call
    }
    let mapped = base.map { $0 + 10 }
    let first = Task { try await client.ensure(mapped) }
    await Settled.when { calls.value == 1 }
    client.clearStore(with: base.path)
    gates[0].open()
    #expect(try await first.value == 11)
    gates[1].open()
    #expect(try await client.fetch(base) == 2)
    #expect(client.store(for: mapped).isStale)
    #expect(try await client.ensure(mapped) == 12)
  }

  @Test("What an older run sets after the newest value is no value for a run that reads a map")
  func olderAfterNewest() async throws {
    let client = client()
    let (hands, calls) = (OverlappingYieldTests.Hands(), Counter())
    let base = Query<String, any Error>(path: ["base"]) { _, yields in
      try await hands.take(calls.increment(), yields)
    }
    let reader = Query<String, any Error>(path: ["reader"]) { context in
      try await context.ensure(base.map { "<\($0)>" })
    }
    let store = client.store(for: base)
    let old = Task { try await client.fetch(base) }
    await hands.has(1)
    client.invalidate(base)
    let new = Task { try await client.ensure(reader) }
    await hands.has(2)
    let subscription = store.subscribe { event in
      if case .stateChanged(let state) = event, state.currentValue == "new" {
        hands.yield(1, "old")
      }
    }
    hands.end(2, "new")
    #expect(try await new.value == "<new>")
    #expect(store.currentValue == "old" && store.isStale)
    hands.end(1, "old")
    _ = try await old.value
    await hands.has(3)
    hands.end(3, "newest")
    await store.settles { $0.currentValue == "newest" }
    await clock.settle()
    #expect(try await client.ensure(reader) == "<newest>")
    subscription.cancel()
  }

  @Test("A restart of a map has its query called again, though that is observed and hangs")
  func restartOfMap() async throws {
    let client = client()
    let remote = Remote<Int>()
    let mapped = client.store(for: remote.query().map { $0 + 10 })
    let subscription = mapped.subscribe { _ in }
    await remote.wait(forCalls: 1)
    let restarting = Task { try await mapped.fetch(restarting: true) }
    await remote.wait(forCalls: 2)
    remote.answer(5, to: 1)
    #expect(try await restarting.value == 15)
    subscription.cancel()
  }

  @Test("A map that begins while its query is in flight has the old value until then")
  func ofLoading() async throws {
    let client = client()
    let (gate, runs) = (AsyncGate(), EventLog<OperationContinuation<Int, any Error>>())
    let query = Query<Int, any Error>(path: ["socket"]) { _, continuation in
      runs.append(continuation)
      await gate.wait()
      return 9
    }.stale(after: .zero)
    let run = Task { try await client.fetch(query) }
    await runs.wait(for: 1)
    runs.values[0].yield(1)
    let mapped = client.store(for: query.map { $0 + 10 })
    let states = Monitor<[Int?]>([])
    let subscription = mapped.subscribe { event in
      if case .stateChanged(let state) = event { states.update { $0.append(state.currentValue) } }
    }
    await states.wait { $0.contains(11) }
    gate.open()
    #expect(try await run.value == 9)
    await states.wait { $0.last == 19 }
    subscription.cancel()
  }
}
