import FoundationEssentials
@testable import Operation
import Testing

/// What comes between the sweep of a client and the use of a store.
@Suite(.timeLimit(.minutes(1))) struct RetentionRaceTests {
  private let clock = ManualClock()

  private struct Indexed {
    var index: StoreIndex
    let query: Query<Int, any Error>
    let store: OperationStore<QueryState<Int, any Error>>
    let opaque: OpaqueOperationStore
  }

  private func indexed(
    _ retention: OperationRetention = .unusedFor(.seconds(10)), limit: Int? = nil
  ) -> Indexed {
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }
    let store = OperationStore.detached(query: query)
    store.lastUse = StoreUse.Moment(clock.now())
    var indexed = Indexed(
      index: StoreIndex(limit: limit), query: query, store: store,
      opaque: OpaqueOperationStore(store))
    _ = indexed.index.insert(
      indexed.opaque, retention: retention, deadline: clock.now().advanced(by: 10))
    return indexed
  }

  /// Takes what is due ten seconds later, with the verdict that it leaves.
  private func verdict(of indexed: inout Indexed) -> StoreIndex.Verdict {
    let generation = indexed.index.nextWake(at: clock.now())?.generation ?? 0
    let due = indexed.index.takeDue(at: clock.now().advanced(by: 10), generation: generation)
    #expect(due.count == 1)
    return .leave(indexed.opaque, indexed.store.useMark)
  }

  @Test("A store that is asked for while the client looks at it stays, and gets another deadline")
  func askedMeanwhile() {
    var indexed = indexed()
    let verdict = verdict(of: &indexed)
    let now = clock.now().advanced(by: 10)
    let type = RequestType(of: indexed.query)
    let found = indexed.index.ask(
      for: type, at: indexed.opaque.path, retention: nil, at: StoreUse.Moment(now))
    #expect(found != nil)
    #expect(indexed.index.settle([verdict]).isEmpty)
    #expect(indexed.index.count == 1)
    #expect(indexed.index.nextWake(at: now)?.date == now.advanced(by: 10))
  }

  @Test("A store that is observed while the client looks at it stays, and gets another deadline")
  func observedMeanwhile() {
    var indexed = indexed()
    let verdict = verdict(of: &indexed)
    let subscription = indexed.store.subscribe { _ in }
    #expect(indexed.index.settle([verdict]).isEmpty)
    #expect(indexed.index.count == 1)
    #expect(indexed.index.nextWake(at: clock.now()) != nil)
    withExtendedLifetime(subscription) {}
  }

  @Test("A last use that is reported when a new one has begun takes no store away")
  func lateReport() {
    var indexed = indexed(.whileUsed)
    let subscription = indexed.store.subscribe { _ in }
    let ended = StoreUse.Change(isUsed: false, version: indexed.store.useMark.version - 1)
    #expect(indexed.index.useChanged(of: indexed.opaque, ended).isEmpty)
    #expect(indexed.index.count == 1)
    subscription.cancel()
    let last = StoreUse.Change(isUsed: false, version: indexed.store.useMark.version)
    #expect(indexed.index.useChanged(of: indexed.opaque, last).count == 1)
  }

  @Test("A store whose use has begun does not leave for a new one, before that is told, either")
  func limited() {
    var indexed = indexed(limit: 1)
    let subscription = indexed.store.subscribe { _ in }
    let query = Query<Int, any Error>(path: ["other"]) { _ in 1 }
    let other = OperationStore.detached(query: query)
    let insertion = indexed.index.insert(
      OpaqueOperationStore(other), retention: .unusedFor(.seconds(10)), deadline: nil)
    guard case .inserted(let left) = insertion else { preconditionFailure() }
    #expect(left.isEmpty)
    withExtendedLifetime(subscription) {}
  }

  @Test("Who comes too late to make a store asks for it, so that the longest retention wins")
  func presentIsAsked() {
    var indexed = indexed()
    let other = OperationStore.detached(query: indexed.query)
    let now = clock.now().advanced(by: 5)
    other.lastUse = StoreUse.Moment(now)
    let insertion = indexed.index.insert(
      OpaqueOperationStore(other), retention: .forever, deadline: nil)
    guard case .present(let present) = insertion else { preconditionFailure() }
    #expect(present.isOpaque(of: indexed.store))
    #expect(indexed.opaque.retention.isEndless)
    #expect(indexed.store.lastUse.date == now)
  }

  @Test("A store that is used is not asked again and again, however short its retention is")
  func shortRetention() async {
    let counting = CountingClock(base: clock)
    let client = OperationClient(defaults: .testing, clock: counting)
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }
    let store = client.store(for: query.retained(.unusedFor(.nanoseconds(100))))
    let subscription = store.subscribe { _ in }
    await clock.advance(by: .seconds(10))
    #expect(counting.timers.value < 20)
    subscription.cancel()
    await clock.advance(by: .seconds(2))
    #expect(client.store(with: ["number"]) == nil)
  }

  @Test("The last use has been noted when its end is told") func notedBefore() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    await clock.advance(by: .seconds(100))
    let seen = Recorder<Date>()
    try await store.run { [clock] event in
      guard case .runEnded = event else { return }
      seen.append(store.lastUse.date)
      #expect(store.lastUse.date == clock.now())
    }
    #expect(seen.count == 1)
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

  @Test("Only a store that may leave earlier than the others sets the timer anew")
  func timers() async {
    let counting = CountingClock(base: clock)
    let client = OperationClient(
      defaults: .testing, clock: counting, retention: .unusedFor(.seconds(300)))
    for id in 0..<10 { _ = client.store(for: Query(path: ["long", id]) { _ in 1 }) }
    #expect(counting.timers.value == 1)
    _ = client.store(for: Query(path: ["short"]) { _ in 1 }.retained(.unusedFor(.seconds(10))))
    #expect(counting.timers.value == 2)
    await clock.advance(by: .seconds(10))
    #expect(client.store(with: ["short"]) == nil)
    #expect(client.stores(matching: ["long"]).count == 10)
  }

  @Test("Stores that are made and cleared again and again leave no heap of deadlines")
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

  @Test("Retention goes by the clock of the client, whatever clock a request has")
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
      #expect(client.store(with: ["number"]) != nil, "\(start)")
      await clock.advance(by: .seconds(1))
      #expect(client.store(with: ["number"]) == nil, "\(start)")
    }
  }
}
