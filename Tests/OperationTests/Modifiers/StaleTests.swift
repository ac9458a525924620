import FoundationEssentials
import Operation
import Testing

@Suite("stale(after:), staleWhen and neverStale") struct StaleTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  private let script = Script()
  private var client: OperationClient { OperationClient(defaults: .testing, clock: clock) }

  @Test("Without a rule a value is stale as soon as it is stored")
  func byDefault() async throws {
    let store = client.store(for: OpenQuery(script: script))
    #expect(store.isStale)
    _ = try await store.run()
    #expect(store.isStale)
  }

  @Test("A value becomes stale at the end of its stale time, to the millisecond")
  func after() async throws {
    let store = client.store(for: TypedQuery(script: script).stale(after: .milliseconds(300)))
    #expect(store.isStale)
    for _ in 0..<20 {
      _ = try await store.run()
      #expect(!store.isStale)
      await clock.advance(by: .milliseconds(299))
      #expect(!store.isStale)
      await clock.advance(by: .milliseconds(1))
      #expect(store.isStale)
    }
  }

  @Test("The stale time can be zero, and can be huge")
  func extremes() async throws {
    let client = client
    let none = client.store(for: OpenQuery(script: script, path: ["none"]).stale(after: .zero))
    none.currentValue = 1
    #expect(none.isStale)
    let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
    let age = client.store(for: OpenQuery(script: script, path: ["age"]).stale(after: huge))
    age.currentValue = 1
    #expect(!age.isStale)
  }

  @Test("An infinite or undefined time does not trap", arguments: [TimeInterval.infinity, .nan])
  func brokenClock(interval: TimeInterval) {
    struct Broken: OperationClock {
      let interval: TimeInterval
      func now() -> Date { Date(timeIntervalSince1970: interval) }
      nonisolated(nonsending) func sleep(for duration: Duration) async throws {}
    }
    let store = client.store(
      for: OpenQuery(script: script).stale(after: .seconds(1)).clock(Broken(interval: interval)))
    store.setResult(to: .success(1), using: .timed(by: clock))
    _ = store.isStale
  }

  @Test("A predicate is called with the state and the context, with no lock held")
  func when() async throws {
    let stores = EventLog<OperationStore<QueryState<Int, Refused>>>()
    let request = TypedQuery(script: script).staleWhen { state, context in
      _ = stores.values.first?.isLoading
      return (state.currentValue ?? 0) < context.fixtureNumber
    }
    let store = client.store(for: request)
    stores.append(store)
    defer { stores.clear() }
    store.currentValue = 5
    #expect(!store.isStale)
    store.context.fixtureNumber = 9
    #expect(store.isStale)
  }

  @Test("A value that is stored while the staleness is checked prevents the run")
  func freshMeanwhile() {
    let stores = EventLog<OperationStore<QueryState<Int, Refused>>>()
    let request = TypedQuery(script: script).staleWhen { _, _ in
      stores.values.first?.currentValue = 2
      return true
    }
    let store = client.store(for: request)
    defer { stores.clear() }
    store.currentValue = 1
    stores.append(store)
    let subscription = store.subscribe { _ in }
    #expect(store.currentValue == 2)
    #expect(store.leaseCount == 0 && !store.isLoading)
    subscription.cancel()
  }

  @Test("A value that is never stale becomes stale only by an invalidation")
  func never() async throws {
    let store = client.store(for: OpenQuery(script: script).neverStale())
    #expect(store.isStale)
    _ = try await store.run()
    await clock.advance(by: .seconds(1_000_000))
    #expect(!store.isStale)
    store.invalidate()
    #expect(store.isStale)
    _ = try await store.run()
    #expect(!store.isStale)
  }

  @Test("Of several rules the last one counts")
  func lastOneWins() {
    let client = client
    let query = OpenQuery(script: script, path: ["a"])
    let fresh = client.store(for: query.stale(after: .zero).staleWhen { _, _ in true }.neverStale())
    fresh.currentValue = 1
    #expect(!fresh.isStale)
    let other = OpenQuery(script: script, path: ["b"])
    let stale = client.store(for: other.neverStale().staleWhen { _, _ in true })
    stale.currentValue = 1
    #expect(stale.isStale)
  }

  @Test("A failure makes no value fresh, and no fresh value stale")
  func failure() async {
    let store = client.store(for: TypedQuery(script: Script(failures: 9)).neverStale())
    _ = try? await store.run()
    #expect(store.isStale)
    store.currentValue = 1
    _ = try? await store.run()
    #expect(!store.isStale)
  }

  @Test("A rule for another state is reported, and the value counts as stale")
  func mismatch() async {
    let store = client.store(
      for: TypedQuery(script: script).staleWhen { _, _ in false }.timeout(after: .seconds(9)))
    store.currentValue = 1
    let reported = await issues { store.isStale }
    #expect(reported.output)
    #expect(reported.issues.map(\.kind) == [.stateMismatch])
    #expect(reported.issues.first?.message.contains("\"typed\"") == true)
  }

  @Test("A run without a store ignores the rules, and calls the request each time")
  func plain() async throws {
    let request = PlainRequest(script: script).neverStale()
    #expect(try await [request.run(), request.stale(after: .seconds(9)).run()] == [1, 2])
    #expect(try await OpenQuery(script: script).staleWhen { _, _ in false }.run() == 3)
  }

  @Test("A negative stale time is reported, and zero is used")
  func negative() async {
    let reported = await issues { OpenQuery(script: script).stale(after: .seconds(-1)) }
    #expect(reported.issues.map(\.kind) == [.invalidValue])
    let store = client.store(for: reported.output)
    store.currentValue = 1
    #expect(store.isStale)
  }
}
