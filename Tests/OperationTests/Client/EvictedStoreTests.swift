import Testing

@testable import Operation

/// A path without a clash has the same store while that is referenced.
@Suite("Evicted stores", .timeLimit(.minutes(5))) struct EvictedStoreTests {
  private let clock = ManualClock()

  private func client(
    _ retention: OperationRetention = .unusedFor(.seconds(300))
  ) -> OperationClient {
    OperationClient(defaults: .testing, clock: clock, retention: retention)
  }

  private func query(_ id: Int = 0) -> some QueryRequest<Int, QueryState<Int, any Error>> {
    Query(path: ["number", id]) { _ in id }.neverStale()
  }

  @Test("A request has the same store again after its eviction, and the client retains it again")
  func again() async throws {
    let client = client()
    let changes = Recorder<[Int]>()
    let watch = client.subscribe { changes.append([$0.storesAdded.count, $0.storesRemoved.count]) }
    let store = client.store(for: query())
    try await store.run()
    await clock.advance(by: .seconds(300))
    #expect(!client.retains(["number", 0]))
    let other = client.store(for: query())
    #expect(other === store)
    other.currentValue = 7
    #expect(store.currentValue == 7)
    #expect(client.retains(["number", 0]))
    await clock.advance(by: .seconds(299))
    #expect(client.retains(["number", 0]))
    await clock.advance(by: .seconds(1))
    #expect(!client.retains(["number", 0]))
    #expect(changes.all == [[1, 0], [0, 1], [1, 0], [0, 1]])
    withExtendedLifetime((store, watch)) {}
  }

  @Test("A store that is retained again has the longest retention of its requests")
  func longestRetention() async {
    let client = client()
    let store = client.store(for: query())
    await clock.advance(by: .seconds(300))
    #expect(!client.retains(["number", 0]))
    #expect(client.store(for: query().retained(.unusedFor(.seconds(10)))) === store)
    await clock.advance(by: .seconds(299))
    #expect(client.retains(["number", 0]))
    await clock.advance(by: .seconds(1))
    #expect(!client.retains(["number", 0]))
    #expect(client.store(for: query().retained(.unusedFor(.seconds(400)))) === store)
    await clock.advance(by: .seconds(399))
    #expect(client.retains(["number", 0]))
  }

  @Test("Invalidations and look-ups by path find an evicted store, and do not retain it")
  func byPath() async throws {
    let client = client()
    let store = client.store(for: query())
    try await store.run()
    await clock.advance(by: .seconds(300))
    #expect(client.store(with: ["number", 0])?.isOpaque(of: store) == true)
    #expect(client.stores(matching: ["number"]).count == 1)
    client.invalidate(matching: ["number"])
    #expect(store.isStale)
    try await store.run()
    await clock.advance(by: .seconds(300))
    client.invalidate(query())
    #expect(store.isStale)
    #expect(!client.retains(["number", 0]))
    withExtendedLifetime(store) {}
  }

  @Test("A use of an evicted store makes the client retain it again", arguments: [1, nil])
  func used(limit: Int?) async throws {
    var retention = OperationRetention.unusedFor(.seconds(300))
    if let limit { retention = retention.limited(to: limit) }
    let client = client(retention)
    let store = client.store(for: query())
    store.currentValue = 1
    await clock.advance(by: .seconds(300))
    let subscription = store.subscribe { _ in }
    #expect(client.retains(["number", 0]))
    await clock.advance(by: .seconds(1_000))
    #expect(client.retains(["number", 0]))
    subscription.cancel()
    await clock.advance(by: .seconds(299))
    #expect(client.retains(["number", 0]))
    await clock.advance(by: .seconds(1))
    #expect(!client.retains(["number", 0]))
    withExtendedLifetime(store) {}
  }

  @Test("A store that is retained while it is used is the same for each use")
  func whileUsed() async throws {
    let client = client(.whileUsed)
    let store = client.store(for: query())
    for _ in 0..<3 {
      try await client.fetch(query())
      #expect(!client.retains(["number", 0]))
      #expect(client.store(for: query()) === store)
    }
  }

  @Test("A store that is retained again counts as unused, and another one is evicted for it")
  func limited() {
    let client = client(.unusedFor(.seconds(300)).limited(to: 2))
    let stores = (0..<3).map { client.store(for: query($0)) }
    #expect((0..<3).map { client.retains(["number", $0]) } == [false, true, true])
    #expect(client.store(for: query(0)) === stores[0])
    #expect((0..<3).map { client.retains(["number", $0]) } == [true, false, true])
  }

  @Test("When the last reference to an evicted store is released, the client keeps nothing of it")
  func released() async throws {
    let (client, live) = (client(), LiveCount())
    var stores: [OperationStore<QueryState<LiveCount.Probe, any Error>>] = []
    for id in 0..<100 {
      let query = Query<LiveCount.Probe, any Error>(path: ["probe", id]) { _ in live.makeProbe() }
      let store = client.store(for: query.neverStale())
      store.currentValue = live.makeProbe()
      stores.append(store)
    }
    await clock.advance(by: .seconds(300))
    #expect(client.stores(matching: []).count == 100)
    stores.removeLast(60)
    #expect(client.stores(matching: []).count == 40)
    stores = []
    #expect(client.read { ($0.entries.count, $0.entries.nodeCount) } == (0, 0))
    #expect(client.read { $0.deadlines.count } == 0)
    #expect(live.value == 0)
    #expect(client.store(with: ["probe", 0]) == nil)
  }

  @Test("A store that is cleared is not found again, evicted or not", arguments: [true, false])
  func cleared(isEvicted: Bool) async throws {
    let client = client()
    let store = client.store(for: query())
    if isEvicted { await clock.advance(by: .seconds(300)) }
    client.clearStore(with: ["number", 0])
    #expect(client.store(with: ["number", 0]) == nil)
    let subscription = store.subscribe { _ in }
    #expect(client.store(with: ["number", 0]) == nil)
    #expect(client.store(for: query()) !== store)
    subscription.cancel()
  }

  @Test("An evicted store does not count as failed, and counts when it is retained again")
  func activity() async {
    let client = client()
    let failing = Query<Int, any Error>(path: ["number", 0]) { _ in throw Refused() }
    let store = client.store(for: failing)
    _ = try? await store.run()
    #expect(client.activity.queries.failed == 1)
    await clock.advance(by: .seconds(300))
    #expect(client.activity.queries.failed == 0)
    let subscription = store.subscribe { _ in }
    await store.settles { !$0.isLoading }
    // A store is counted after its subscribers were notified.
    #expect(await eventually { client.activity.queries.failed == 1 })
    subscription.cancel()
    await clock.advance(by: .seconds(300))
    #expect(client.activity.queries.failed == 0)
    #expect(client.store(for: failing) === store)
    #expect(client.activity.queries.failed == 1)
  }

  @Test("The events of a client report when a store is evicted and retained again")
  func events() async {
    let client = client()
    let recorded = Recorder<Bool>()
    let log = recordRetention(of: ["number", 0], in: client, by: recorded)
    let store = client.store(for: query())
    store.currentValue = 1
    await clock.advance(by: .seconds(300))
    #expect(client.store(for: query()) === store)
    await clock.advance(by: .seconds(300))
    let subscription = store.subscribe { _ in }
    #expect(recorded.all == [true, false, true, false, true])
    subscription.cancel()
    log.cancel()
  }

  @Test("A store that is retained again is reported before what is notified of it")
  func reportedFirst() async throws {
    let client = client()
    let store = client.store(for: query())
    store.currentValue = 1
    await clock.advance(by: .seconds(300))
    let (recorded, names) = (Recorder<Bool>(), Recorder<String>())
    let log = recordRetention(of: ["number", 0], in: client, by: recorded)
    // A handler can use the store, which is retained already.
    let watch = client.subscribe {
      names.append("\($0.storesAdded.count) added, \(recorded.count) reported")
    }
    let subscription = store.subscribe { _ in names.append("state, \(recorded.count) reported") }
    #expect(names.all == ["1 added, 1 reported", "state, 1 reported"])
    subscription.cancel()
    await clock.advance(by: .seconds(300))
    names.clear()
    recorded.clear()
    #expect(client.store(for: query()) === store)
    #expect(names.all == ["1 added, 1 reported"])
    withExtendedLifetime((log, watch)) {}
  }

  @Test("A store that is retained again and evicted at once is reported as added and removed")
  func lateReports() {
    let client = client(.unusedFor(.seconds(300)).limited(to: 0))
    let recorded = Recorder<Bool>()
    let log = recordRetention(of: ["number", 0], in: client, by: recorded)
    let store = client.store(for: query())
    _ = client.store(for: query(1))
    #expect(recorded.all == [true, false])
    // The reports of two threads arrive in another order than the changes.
    let begin = store.use.change(isUsed: true)
    let end = store.use.change(isUsed: false)
    store.use.noteEnd(end, at: clock.elapsed())
    client.useChanged(of: OpaqueOperationStore(store), begin)
    #expect(recorded.all == [true, false])
    client.useChanged(of: OpaqueOperationStore(store), end)
    #expect(recorded.all == [true, false, true, false])
    #expect(!client.retains(store.path))
    log.cancel()
  }

  @Test("A store that is retained again is reported as added before the one that is evicted for it")
  func lateReportBesideAnother() {
    let client = client(.unusedFor(.seconds(300)).limited(to: 1))
    let (first, second) = (client.store(for: query()), client.store(for: query(1)))
    #expect(!client.retains(first.path) && client.retains(second.path))
    let recorded = Recorder<String>()
    let log = client.log(
      to: EventRecorder { event in
        switch event.occurrence {
        case .storeAdded: recorded.append("added \(event.path)")
        case .storeRemoved: recorded.append("removed \(event.path)")
        default: break
        }
      })
    _ = first.use.change(isUsed: true)
    let end = first.use.change(isUsed: false)
    first.use.noteEnd(end, at: clock.elapsed())
    client.useChanged(of: OpaqueOperationStore(first), end)
    #expect(recorded.all == ["added \(first.path)", "removed \(second.path)"])
    #expect(client.retains(first.path) && !client.retains(second.path))
    log.cancel()
  }

  @Test("A store that a handler makes in place of a removed one is added after the removal")
  func replacedInHandler() async {
    let client = client(.unusedFor(.seconds(5)))
    let recorded = Recorder<Bool>()
    let log = recordRetention(of: query().path, in: client, by: recorded)
    let counts = Recorder<Int>()
    let subscription = client.subscribe { [self] change in
      if change.storesRemoved.isEmpty { return }
      counts.append(client.activity[.query].failed)
      if recorded.all.count < 5 { _ = client.store(for: query()) }
    }
    client.store(for: query()).setResult(to: .failure(Refused()))
    client.clearStore(with: query().path)
    #expect(recorded.all == [true, false, true] && client.retains(query().path))
    client.store(for: query()).setResult(to: .failure(Refused()))
    await clock.advance(by: .seconds(6))
    #expect(recorded.all == [true, false, true, false, true] && client.retains(query().path))
    #expect(counts.all == [0, 0])
    subscription.cancel()
    log.cancel()
  }

  /// Records whether the store of a path is added or removed.
  private func recordRetention(
    of path: OperationPath, in client: OperationClient, by recorded: Recorder<Bool>
  ) -> OperationSubscription {
    client.log(
      to: EventRecorder { event in
        guard event.path == path else { return }
        switch event.occurrence {
        case .storeAdded: recorded.append(true)
        case .storeRemoved: recorded.append(false)
        default: break
        }
      })
  }

  private struct EventRecorder: OperationLogger {
    let handler: @Sendable (OperationClientEvent) -> Void
    func log(_ event: OperationClientEvent) { handler(event) }
  }

  private struct Refused: Error {}

  @Test("Threads that look up, evict, use and release a store share one instance at a time")
  func threads() async {
    let client = client()
    await onThreads(4) { thread in
      for round in 0..<500 {
        let query = query(round % 2)
        let first = client.store(for: query)
        client.evictUnused()
        let second = client.store(for: query)
        #expect(first === second)
        if round % 5 == thread { first.subscribe { _ in }.cancel() }
        client.evictUnused()
        #expect(client.store(with: query.path)?.isOpaque(of: second) == true)
      }
    }
    client.evictUnused()
    #expect(await eventually { client.read { $0.entries.count } == 0 })
  }

  @Test("The removal of a store that another thread has removed is not reported again")
  func removedTwice() {
    let client = client()
    let store = OpaqueOperationStore(client.store(for: query()))
    let removed = Recorder<Int>()
    let subscription = client.subscribe { removed.append($0.storesRemoved.count) }
    for _ in 0..<2 { client.remove([store]) }
    #expect(removed.all == [1])
    subscription.cancel()
  }
}
