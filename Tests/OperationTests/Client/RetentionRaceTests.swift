import FoundationEssentials
@testable import Operation
import Testing

/// Uses of a store that begin and end while the client checks whether it evicts the store.
@Suite(.timeLimit(.minutes(5))) struct RetentionRaceTests {
  private let clock = ManualClock()

  private struct Indexed {
    var index: StoreIndex
    let query: Query<Int, any Error>
    let store: OperationStore<QueryState<Int, any Error>>
    let opaque: OpaqueOperationStore
    let retention: OperationRetention

    var lookup: StoreIndex.Lookup { StoreIndex.Lookup(of: query, default: retention) }
  }

  private func indexed(
    _ retention: OperationRetention = .unusedFor(.seconds(10)), limit: Int? = nil
  ) -> Indexed {
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }
    let store = OperationStore.detached(query: query)
    var indexed = Indexed(
      index: StoreIndex(limit: limit), query: query, store: store,
      opaque: OpaqueOperationStore(store),
      retention: retention)
    _ = indexed.index.insert(indexed.opaque, for: indexed.lookup, at: clock.elapsed())
    return indexed
  }

  /// Fires the timer a number of seconds after the insertion.
  private func fire(_ index: inout StoreIndex, after seconds: Double) -> [OpaqueOperationStore] {
    _ = index.nextTimer(at: clock.elapsed())
    let now = clock.elapsed() + .seconds(seconds)
    return index.timer.map { index.evictDue(at: now, $0.place) } ?? []
  }

  @Test("A store that is not used again is evicted when the timer fires, and not before")
  func notUsed() {
    var indexed = indexed()
    #expect(fire(&indexed.index, after: 9).isEmpty)
    #expect(fire(&indexed.index, after: 10).map(\.id) == [indexed.opaque.id])
    #expect(!indexed.index.isRetained(indexed.opaque))
    #expect(indexed.index.store(at: ["number"])?.id == indexed.opaque.id)
  }

  @Test("A timer that was replaced evicts nothing")
  func replacedTimer() throws {
    var indexed = indexed()
    let next = indexed.index.nextTimer(at: clock.elapsed())
    let first = try #require(next)
    #expect(first.old?.time == nil)
    let query = Query<Int, any Error>(path: ["other"]) { _ in 1 }
    _ = indexed.index.insert(
      OpaqueOperationStore(OperationStore.detached(query: query)),
      for: StoreIndex.Lookup(of: query, default: .unusedFor(.seconds(5))), at: clock.elapsed())
    let later = indexed.index.nextTimer(at: clock.elapsed())
    let second = try #require(later)
    #expect(second.old?.place === first.new.place)
    let end = clock.elapsed() + .seconds(10)
    #expect(indexed.index.evictDue(at: end, first.new.place).isEmpty)
    #expect(indexed.index.evictDue(at: end, second.new.place).count == 2)
  }

  @Test("A store that is looked up before the timer fires is retained, and gets a later deadline")
  func lookedUp() {
    var indexed = indexed()
    let now = clock.elapsed() + .seconds(10)
    let used = indexed.index.use(indexed.lookup, at: now).store
    #expect(used?.id == indexed.opaque.id)
    #expect(fire(&indexed.index, after: 10).isEmpty)
    #expect(indexed.index.entries.count == 1)
    #expect(indexed.index.nextTimer(at: now)?.new.time == now + .seconds(10))
  }

  @Test("A store that is observed when the timer fires reports the end, which starts its time")
  func observed() {
    var indexed = indexed()
    let subscription = indexed.store.subscribe { _ in }
    #expect(indexed.store.use.isWatched == false)
    #expect(fire(&indexed.index, after: 10).isEmpty)
    #expect(indexed.index.entries.count == 1)
    #expect(indexed.index.nextTimer(at: clock.elapsed()) == nil)
    #expect(indexed.store.use.isWatched == true)
    subscription.cancel()
    indexed.store.use.lastUse = .seconds(17)
    let end = StoreUse.Change(isUsed: false, version: indexed.store.use.latest.version)
    #expect(indexed.index.useChanged(of: indexed.opaque, end, at: .seconds(17)).evicted.isEmpty)
    #expect(indexed.index.nextTimer(at: .seconds(17))?.new.time == .seconds(27))
    #expect(indexed.store.use.isWatched == false)
  }

  @Test("A store is in use until the end of the use is recorded, and its time starts then")
  func recordedLater() {
    var indexed = indexed()
    _ = indexed.store.use.change(isUsed: true)
    let end = indexed.store.use.change(isUsed: false)
    #expect(indexed.store.use.latest.isInUse)
    #expect(fire(&indexed.index, after: 10).isEmpty)
    #expect(indexed.index.evictUnused().isEmpty)
    indexed.store.use.noteEnd(end, at: clock.elapsed() + .seconds(11))
    #expect(!indexed.store.use.latest.isInUse)
    #expect(indexed.index.useChanged(of: indexed.opaque, end, at: .seconds(11)).evicted.isEmpty)
    #expect(fire(&indexed.index, after: 20).isEmpty)
    #expect(fire(&indexed.index, after: 21).count == 1)
  }

  @Test("The recorded end of an earlier use does not end a later one")
  func laterUse() {
    let indexed = indexed()
    _ = indexed.store.use.change(isUsed: true)
    let end = indexed.store.use.change(isUsed: false)
    _ = indexed.store.use.change(isUsed: true)
    indexed.store.use.noteEnd(end, at: clock.elapsed())
    #expect(indexed.store.use.latest.isInUse)
  }

  @Test("A store is not evicted when the end of a use is reported after a new use has begun")
  func lateReport() {
    var indexed = indexed(.whileUsed)
    let subscription = indexed.store.subscribe { _ in }
    let ended = StoreUse.Change(isUsed: false, version: indexed.store.use.latest.version - 1)
    #expect(indexed.index.useChanged(of: indexed.opaque, ended, at: .zero).evicted.isEmpty)
    #expect(indexed.index.entries.count == 1)
    subscription.cancel()
    let last = StoreUse.Change(isUsed: false, version: indexed.store.use.latest.version)
    #expect(indexed.index.useChanged(of: indexed.opaque, last, at: .zero).evicted.count == 1)
  }

  @Test("A store whose use has begun is not evicted for a new one, even before that is reported")
  func limited() {
    var indexed = indexed(limit: 1)
    let subscription = indexed.store.subscribe { _ in }
    let query = Query<Int, any Error>(path: ["other"]) { _ in 1 }
    let other = OperationStore.detached(query: query)
    let inserted = indexed.index.insert(
      OpaqueOperationStore(other),
      for: StoreIndex.Lookup(of: query, default: .unusedFor(.seconds(10))), at: clock.elapsed())
    #expect(inserted.store.isOpaque(of: other) && inserted.evicted.isEmpty)
    withExtendedLifetime(subscription) {}
  }

  @Test("An insertion that is too late uses the present store, with the longest retention")
  func presentIsUsed() {
    var indexed = indexed()
    let other = OperationStore.detached(query: indexed.query)
    let now = clock.elapsed() + .seconds(5)
    let present = indexed.index.insert(
      OpaqueOperationStore(other),
      for: StoreIndex.Lookup(of: indexed.query, default: .forever), at: now)
    #expect(present.store.isOpaque(of: indexed.store))
    #expect(indexed.store.use.retention.isForever)
    #expect(indexed.store.use.lastUse == now)
  }

  @Test("A store in use is not checked repeatedly, however short its retention is")
  func shortRetention() async {
    let counting = CountingClock(base: clock)
    let client = OperationClient(defaults: .testing, clock: counting)
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }
    let store = client.store(for: query.retained(.unusedFor(.nanoseconds(100))))
    let subscription = store.subscribe { _ in }
    await clock.advance(by: .seconds(10))
    #expect(counting.timers.value == 1)
    subscription.cancel()
    await clock.advance(by: .milliseconds(1))
    #expect(!client.retains(["number"]))
  }

  @Test("The end of a use is recorded before the subscribers are notified")
  func recordedBefore() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    await clock.advance(by: .seconds(100))
    let uses = Recorder<Duration>()
    try await store.run { [clock] event in
      guard case .runEnded = event else { return }
      uses.append(store.use.lastUse)
      #expect(store.use.lastUse == clock.elapsed())
    }
    #expect(uses.count == 1)
  }

  @Test("Retention is exact to the millisecond, however short it is and however long a use takes")
  func milliseconds() async throws {
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.milliseconds(100)))
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }.neverStale()
    client.store(for: query).currentValue = 1
    for use in [1, 99, 100, 101, 5_000] {
      let subscription = client.store(for: query).subscribe { _ in }
      await clock.advance(by: .milliseconds(use))
      subscription.cancel()
      await clock.advance(by: .milliseconds(99))
      #expect(client.retains(["number"]), "after \(use)")
    }
    await clock.advance(by: .milliseconds(1))
    #expect(!client.retains(["number"]))
  }

  @Test("If a use ends while its store is checked, either the check or the report is in time")
  func endDuringCheck() async {
    for round in 0..<500 {
      let client = OperationClient(
        defaults: .testing, clock: clock, retention: .unusedFor(.seconds(10)))
      let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }.neverStale()
      client.store(for: query).currentValue = 1
      let subscription = client.store(for: query).subscribe { _ in }
      await clock.advance(by: .seconds(9))
      async let end: Void = onThreads(1) { _ in subscription.cancel() }
      await clock.advance(by: .seconds(1))
      await end
      await clock.advance(by: .seconds(10))
      #expect(!client.retains(["number"]), "\(round)")
    }
  }

  /// A manual clock that counts its timers.
  private struct CountingClock: OperationClock {
    let base: ManualClock
    let timers = Counter()

    func now() -> Date { base.now() }
    func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }
    func schedule(
      after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> OperationSubscription {
      timers.increment()
      return base.schedule(after: duration, action)
    }
  }

  @Test("Only a store that may be evicted before the others sets a new timer")
  func timers() async {
    let counting = CountingClock(base: clock)
    let client = OperationClient(
      defaults: .testing, clock: counting, retention: .unusedFor(.seconds(300)))
    for id in 0..<10 { _ = client.store(for: Query(path: ["long", id]) { _ in 1 }) }
    #expect(counting.timers.value == 1)
    _ = client.store(for: Query(path: ["short"]) { _ in 1 }.retained(.unusedFor(.seconds(10))))
    #expect(counting.timers.value == 2)
    await clock.advance(by: .seconds(10))
    #expect(!client.retains(["short"]))
    #expect(client.stores(matching: ["long"]).count == 10)
  }

  @Test("Stores that are created and cleared repeatedly leave few deadlines")
  func deadlines() {
    let client = OperationClient(defaults: .testing, clock: clock)
    let kept = client.store(for: Query(path: ["kept"]) { _ in 1 })
    for id in 0..<500 {
      _ = client.store(for: Query(path: ["gone", id]) { _ in 1 })
      client.clearStore(with: ["gone", id])
    }
    #expect(client.read { $0.deadlines.count } < 50)
    withExtendedLifetime(kept) {}
  }

  @Test("Retention uses the clock of the client, whatever clock a request has")
  func clockOfRequest() async throws {
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)))
    for start in [-1e6, 1e6] {
      let other = ManualClock(now: Date(timeIntervalSince1970: start))
      let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }.clock(other)
      let store = client.store(for: query)
      await clock.advance(by: .seconds(290))
      try await store.run()
      await clock.advance(by: .seconds(299))
      #expect(client.retains(["number"]), "\(start)")
      await clock.advance(by: .seconds(1))
      #expect(!client.retains(["number"]), "\(start)")
    }
  }
}
