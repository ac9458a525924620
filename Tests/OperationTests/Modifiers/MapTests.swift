import FoundationEssentials
import Operation
import Testing

@Suite("map") struct MapTests {
  @Test("The value and every yielded value are transformed, and failures are not", arguments: 0..<3)
  func withoutStore(kind: Int) async throws {
    let script = Script { attempt, _, yield in
      yield(.success(7))
      yield(.failure(Refused(attempt: 3)))
      return .success(attempt)
    }
    let log = EventLog<String>()
    @Sendable func record<Failure>(_ result: Result<String, Failure>) {
      switch result {
      case .success(let value): log.append(value)
      case .failure(let error): log.append("\(error)")
      }
    }
    let value =
      switch kind {
      case 0:
        try await OpenQuery(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { record($0) })
      case 1:
        try await TypedQuery(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { record($0) })
      default:
        try await PlainRequest(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { record($0) })
      }
    #expect(value == "<1>")
    #expect(log.values == ["<7>", "Refused(attempt: 3)"])
  }

  @Test("A mapped query is a query whose state has the new value and the old failure")
  func store() async throws {
    let client = OperationClient(defaults: .testing)
    let store: OperationStore<QueryState<String, Refused>> = client.store(
      for: TypedQuery(script: Script(failures: 1)).map { "<\($0)>" })
    await #expect(throws: Refused(attempt: 1)) { try await store.run() }
    let error: Refused? = store.error
    #expect(error == Refused(attempt: 1))
    #expect(try await store.run() == "<2>")
    #expect(store.currentValue == "<2>")
    #expect(OperationPath(["typed"]).isPrefix(of: store.path))
  }

  @Test("Modifiers before and after a map apply")
  func modifiers() async throws {
    func request() -> some QueryRequest<String, QueryState<String, any Error>> {
      OpenQuery(script: Script(failures: 1)).retry(limit: 1).map { $0 + 1 }
        .backoff(.noBackoff).map { "\($0)" }
    }
    #expect(try await request().run() == "3")
    #expect(try await OperationClient(defaults: .testing).store(for: request()).run() == "3")
  }

  @Test("A query and its map share one fetch, and have stores of their own without a clash")
  func oneFetch() async throws {
    let client = OperationClient(defaults: .testing)
    let script = Script()
    let query = OpenQuery(script: script)
    let mapped = query.map { "<\($0)>" }
    let reported = await issues {
      _ = client.store(for: query)
      _ = client.store(for: mapped)
    }
    #expect(reported.issues.isEmpty)
    #expect(try await client.fetch(mapped) == "<1>")
    #expect(client.store(for: query).currentValue == 1)
    #expect(try await client.ensure(query) == 1)
    #expect(try await client.ensure(mapped) == "<1>")
    #expect(script.attempts == 1)
    #expect(try await client.fetch(query) == 2)
    #expect(try await client.ensure(mapped) == "<2>")
    #expect(try await client.fetch(mapped) == "<3>")
    #expect(script.attempts == 3)
  }

  @Test(
    "Two maps of one query are two views, and observers of all share one fetch")
  func twoViews() async throws {
    let client = OperationClient(defaults: .testing)
    let script = Script()
    let query = OpenQuery(script: script)
    let first = client.store(for: query.map { $0 + 10 })
    let second = client.store(for: query.map { $0 + 20 })
    #expect(first !== second)
    var (ones, twos) = (first.values.makeAsyncIterator(), second.values.makeAsyncIterator())
    while let value = await ones.next(), value != 11 {}
    while let value = await twos.next(), value != 21 {}
    #expect(script.attempts == 1)
    client.store(for: query).currentValue = 5
    #expect(await ones.next() == 15)
    #expect(await twos.next() == 25)
    #expect(script.attempts == 1)
  }

  @Test(
    "An invalidation of the query invalidates its maps, and fetches once") func invalidation()
    async throws
  {
    let client = OperationClient(defaults: .testing)
    let script = Script()
    let query = OpenQuery(script: script).neverStale()
    let store = client.store(for: query.map { $0 + 10 })
    var values = store.values.makeAsyncIterator()
    while let value = await values.next(), value != 11 {}
    client.invalidate(query)
    #expect(await values.next() == 12)
    client.invalidate(matching: ["open"])
    #expect(await values.next() == 13)
    while client.stores(matching: [], where: .loading).count > 0 { await Task.yield() }
    #expect(script.attempts == 3)
  }

  @Test("A map follows a value that is stored after the map's run has read the earlier one")
  func missedValue() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script()).neverStale()
    let store = client.store(for: query)
    let mapped = client.store(
      for: query.map { value in
        if value == 1 { store.currentValue = 5 }
        return value + 10
      })
    var values = mapped.values.makeAsyncIterator()
    while let value = await values.next(), value != 15 {}
    #expect(mapped.currentValue == 15)
  }

  @Test("A map without subscribers is computed again after a value that was stored during its run")
  func unobserved() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script()).neverStale()
    let store = client.store(for: query)
    let mapped = query.map { value in
      if value == 1 { store.currentValue = 5 }
      return value + 10
    }
    #expect(try await client.fetch(mapped) == 11)
    #expect(client.store(for: mapped).isStale)
    #expect(try await client.ensure(mapped) == 15)
    #expect(!client.store(for: mapped).isStale)
  }

  @Test("A map is computed again after a value with the same date, and not without one")
  func sameMoment() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let query = OpenQuery(script: Script()).neverStale()
    let (store, mapped) = (client.store(for: query), query.map { $0 + 10 })
    let mappedStore = client.store(for: mapped)
    #expect(try await client.ensure(mapped) == 11)
    #expect(!mappedStore.isStale)
    for value in [5, 6] {
      store.currentValue = value
      #expect(mappedStore.isStale)
      #expect(try await client.ensure(mapped) == value + 10)
      #expect(!mappedStore.isStale)
    }
  }

  @Test("A map whose value was written is fresh") func written() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let query = OpenQuery(script: Script()).neverStale()
    let (store, mapped) = (client.store(for: query), query.map { $0 + 10 })
    #expect(try await client.ensure(mapped) == 11)
    store.currentValue = 5
    client.store(for: mapped).currentValue = 99
    #expect(try await client.ensure(mapped) == 99)
  }

  @Test("A map without subscribers is computed again after an edit of its query")
  func editedQuery() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let query = OpenQuery(script: Script()).neverStale()
    let (store, mapped) = (client.store(for: query), query.map { $0 + 10 })
    #expect(try await client.ensure(mapped) == 11)
    await store.optimistically({ $0 = 7 }, while: {})
    #expect(try await client.ensure(mapped) == 17)
  }

  @Test("A map follows a change before the delivery of its first state")
  func lateDelivery() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script()).neverStale()
    let (store, mapped) = (client.store(for: query), query.map { $0 + 10 })
    #expect(try await client.ensure(mapped) == 11)
    let mappedStore = client.store(for: mapped)
    let subscriptions = EventLog<OperationSubscription>()
    let subscription = store.subscribe { _ in
      guard subscriptions.count == 0 else { return }
      subscriptions.append(mappedStore.subscribe { _ in })
      store.currentValue = 5
    }
    #expect(await eventually { mappedStore.currentValue == 15 })
    subscription.cancel()
  }

  @Test("The end of the streams is no change") func shutdown() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script()).neverStale()
    let mapped = client.store(for: query.map { $0 + 10 })
    let subscription = mapped.subscribe { _ in }
    // The value may be followed by one more run, which the shutdown would cancel.
    #expect(
      await eventually { mapped.currentValue == 11 && !mapped.isStale && !mapped.isLoading })
    await client.shutdown(within: .zero)
    #expect(!mapped.isStale)
    subscription.cancel()
  }

  @Test("A map without subscribers is computed again after a value that was yielded during its run")
  func yielded() async throws {
    let client = OperationClient(defaults: .testing)
    let (gate, runs) = (AsyncGate(), EventLog<OperationContinuation<Int, any Error>>())
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      runs.append(continuation)
      await gate.wait()
      return 9
    }.neverStale()
    let run = Task { try await client.fetch(query) }
    await runs.wait(for: 1)
    runs.values[0].yield(1)
    let mapped = query.map { value in
      if value == 1 { runs.values[0].yield(5) }
      return value + 10
    }
    #expect(try await client.ensure(mapped) == 11)
    #expect(try await client.ensure(mapped) == 15)
    gate.open()
    #expect(try await run.value == 9)
    #expect(try await client.ensure(mapped) == 19)
  }

  /// A value that cannot be compared.
  private struct Opaque: Sendable {
    var number: Int
  }

  @Test("A map follows an optimistic edit as soon as it is confirmed") func confirmedEdit() async {
    await confirmsEdit(of: Query(path: ["number"]) { _ in 1 }, { $0 = 2 }, { $0 })
    await confirmsEdit(
      of: Query(path: ["opaque"]) { _ in Opaque(number: 1) }, { $0?.number = 2 }, { $0.number })
  }

  private func confirmsEdit<Value>(
    of query: Query<Value, any Error>, _ edit: @escaping @Sendable (inout Value?) -> Void,
    _ number: @escaping @Sendable (Value) -> Int
  ) async {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let (store, runs) = (client.store(for: query), Counter())
    let mapped = client.store(
      for: query.map { value in
        runs.increment()
        return number(value)
      })
    let subscription = mapped.subscribe { _ in }
    await clock.settle()
    let count = runs.value
    await store.optimistically(edit) {
      await clock.settle()
      #expect(mapped.currentValue == 1)
      #expect(runs.value == count)
    }
    await clock.settle()
    #expect(mapped.currentValue == 2)
    #expect(runs.value == count + 1)
    subscription.cancel()
  }

  @Test("A map follows a reset and a write at one moment, of a value that cannot be compared")
  func resetAtOneMoment() async {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let query = Query<Opaque, any Error>(path: ["opaque"]) { _ in Opaque(number: 1) }.neverStale()
    let (store, mapped) = (client.store(for: query), client.store(for: query.map(\.number)))
    store.currentValue = Opaque(number: 1)
    var values = mapped.values.makeAsyncIterator()
    while let value = await values.next(), value != 1 {}
    store.withExclusiveAccess {
      store.resetState()
      store.currentValue = Opaque(number: 2)
    }
    #expect(await values.next() == 2)
  }

  @Test("A look-up of stale stores neither creates nor uses the store of a map's query")
  func lookUp() async throws {
    let clock = ManualClock()
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(10)))
    let mapped = OpenQuery(script: Script()).map { $0 }.retained(.forever)
    try await client.fetch(mapped)
    for _ in 0..<3 {
      #expect(client.stores(matching: [], where: .stale).count <= 1)
      await clock.advance(by: .seconds(5))
    }
    #expect(client.store(with: ["open"]) == nil)
    #expect(client.snapshot().stores.map(\.isStale) == [true])
    #expect(client.store(with: ["open"]) == nil)
  }

  @Test("A map goes by the rules of its own query, also where that has a store with others")
  func ownRules() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = OpenQuery(script: Script())
    let store = client.store(for: query)
    let mapped = client.store(for: query.stale(after: .seconds(10)).map { $0 + 1 })
    try await mapped.fetch()
    #expect(!mapped.isStale)
    await clock.advance(by: .seconds(10))
    #expect(mapped.isStale)
    withExtendedLifetime(store) {}
  }

  @Test("A map may throw, and a failure of the query is its own") func throwing() async throws {
    let client = OperationClient(defaults: .testing)
    let odd = OpenQuery(script: Script(failures: 1)).map { value -> Int in
      if value % 2 == 0 { throw Refused(attempt: -value) }
      return value
    }
    await #expect(throws: Refused(attempt: 1)) { try await client.fetch(odd) }
    await #expect(throws: Refused(attempt: -2)) { try await client.fetch(odd) }
    #expect(try await client.fetch(odd) == 3)
  }

  @Test("The retries of both do not multiply") func retries() async throws {
    var defaults = OperationDefaults.standard
    defaults.backoff = .noBackoff
    let script = Script(failures: 99)
    let client = OperationClient(defaults: defaults)
    _ = try? await client.fetch(OpenQuery(script: script).map { $0 })
    #expect(script.attempts == 4)
  }

  @Test("A retry of a map waits as the defaults of the client say")
  func backoffOfDefaults() async throws {
    var defaults = OperationDefaults.testing
    defaults.backoff = .constant(.seconds(7))
    let clock = ManualClock()
    let client = OperationClient(defaults: defaults, clock: clock)
    let query = OpenQuery(script: Script(failures: 1)).map { $0 }.retry(limit: 1)
    async let value = client.fetch(query)
    await clock.sleepers(atLeast: 1)
    let retry = client.store(for: query).state.retry
    #expect(retry?.nextAttemptAt == clock.now().addingTimeInterval(7))
    await clock.advance(by: .seconds(7))
    #expect(try await value == 2)
  }

  @Test("A map whose store has no client fetches its query itself, also for a subscriber")
  func withoutClient() async throws {
    let store = OperationStore.detached(query: OpenQuery(script: Script()).map { "<\($0)>" })
    let (events, subscription) = store.record()
    #expect(try await store.run() == "<1>")
    await events.wait { $0.contains { $0.state?.currentValue == "<1>" } }
    subscription.cancel()
  }

  @Test("A map returns the value of a run of its query whose store is reset as the run ends")
  func resetAtEnd() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script()).manual()
    let source = client.store(for: query)
    let subscription = source.subscribe { [weak source] event in
      if event.state?.currentValue != nil { source?.resetState() }
    }
    #expect(try await client.fetch(query.map { "<\($0)>" }) == "<1>")
    #expect(source.currentValue == nil)
    subscription.cancel()
  }

  @Test("A map of an initial value that is never stale is made once")
  func initialValue() async throws {
    let client = OperationClient(defaults: .testing)
    let (script, inputs) = (Script(), EventLog<Int>())
    let query = OpenQuery(script: script).neverStale().manual()
    let source = client.store(for: query, initialValue: 7)
    let map = query.map { value in
      inputs.append(value)
      return "<\(value)>"
    }
    for _ in 0..<2 { #expect(try await client.ensure(map) == "<7>") }
    #expect(inputs.values == [7] && script.attempts == 0)
    withExtendedLifetime(source) {}
  }
}
