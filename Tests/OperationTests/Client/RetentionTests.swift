import FoundationEssentials
import Testing

@testable import Operation

@Suite(.timeLimit(.minutes(5))) struct RetentionTests {
  private let clock = ManualClock()

  private func client(_ retention: OperationRetention = .unusedFor(.seconds(300)))
    -> OperationClient
  {
    OperationClient(defaults: .testing, clock: clock, retention: retention)
  }

  private func query(_ id: Int = 0) -> Query<Int, any Error> {
    Query(path: ["number", id]) { _ in id }
  }

  private func ids(in client: OperationClient) -> [Int] {
    (0..<20).filter { client.retains(["number", $0]) }
  }

  @Test("A store is evicted five minutes after its last use, and not before")
  func unused() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let changes = Recorder<OperationStoreChange>()
    let watch = client.subscribe { changes.append($0) }
    let store = client.store(for: query())
    await clock.advance(by: .seconds(100))
    let subscription = store.subscribe { _ in }
    await clock.advance(by: .seconds(400))
    #expect(client.retains(["number", 0]), "the store is observed")
    await store.settles { !$0.isLoading }
    subscription.cancel()
    await clock.advance(by: .seconds(299.5))
    #expect(client.retains(["number", 0]))
    #expect(changes.count == 1)
    await clock.advance(by: .seconds(0.5))
    #expect(!client.retains(["number", 0]))
    #expect(changes.count == 2)
    #expect(clock.sleeperCount == 0)
    withExtendedLifetime(watch) {}
  }

  @Test("Of several retentions of one request, the longest counts", arguments: [false, true])
  func longest(isLast: Bool) {
    let retentions = [OperationRetention.whileUsed, .unusedFor(.seconds(9))]
    let request = query().retained(retentions[isLast ? 0 : 1]).retained(retentions[isLast ? 1 : 0])
    #expect(request.retention == .unusedFor(.seconds(9)))
  }

  @Test("A store that a later request retains forever no longer counts as unused")
  func becomesForever() {
    let client = client(.unusedFor(.seconds(300)).limited(to: 1))
    _ = client.store(for: query(0))
    _ = client.store(for: query(0).retained(.forever))
    for id in 1..<4 { _ = client.store(for: query(id)) }
    #expect(ids(in: client) == [0, 3])
  }

  @Test("A store with a deadline that a later request retains forever is not evicted")
  func becomesForeverBeforeDeadline() async {
    let client = client(.unusedFor(.seconds(300)))
    _ = client.store(for: query())
    _ = client.store(for: query().retained(.forever))
    await clock.advance(by: .seconds(1_000))
    #expect(ids(in: client) == [0] && clock.hasNoTraces)
  }

  @Test("An evicted store that is looked up by two requests is retained for the longer time")
  func evictedLonger() async {
    let client = client(.unusedFor(.seconds(10)))
    let store = client.store(for: query())
    await clock.advance(by: .seconds(10))
    #expect(ids(in: client) == [])
    #expect(client.store(for: query().retained(.unusedFor(.seconds(100)))) === store)
    await clock.advance(by: .seconds(99))
    #expect(ids(in: client) == [0])
    await clock.advance(by: .seconds(1))
    #expect(ids(in: client) == [])
  }

  @Test("A timer that is replaced is cancelled, also if it is set after the one that replaces it")
  func replacedTimer() {
    let cancelling = CancellingClock(base: clock)
    let client = OperationClient(defaults: .testing, clock: cancelling)
    let timers = (1...3).map { StoreIndex.Timer(time: .seconds($0)) }
    client.setTimer(timers[0], insteadOf: nil, at: .zero)
    client.setTimer(timers[2], insteadOf: timers[1], at: .zero)
    #expect(cancelling.cancelled.values == [])
    client.setTimer(timers[1], insteadOf: timers[0], at: .zero)
    #expect(cancelling.cancelled.values == [.seconds(1), .seconds(2)])
  }

  @Test("The timer of the system clock does not retain the client that is current when it is set")
  func timerOfCurrent() {
    weak var weakClient: OperationClient?
    do {
      let client = OperationClient(defaults: .testing, clock: SystemClock())
      weakClient = client
      OperationClient.withCurrent(client) { _ = client.store(for: query()) }
    }
    #expect(weakClient == nil)
  }

  @Test("A look-up by request is a use, a look-up by path is not")
  func lookUps() async {
    let client = client()
    _ = client.store(for: query(1))
    _ = client.store(for: query(2))
    await clock.advance(by: .seconds(200))
    _ = client.store(for: query(1))
    _ = client.store(with: ["number", 2])
    _ = client.stores(matching: [])
    await clock.advance(by: .seconds(100))
    #expect(ids(in: client) == [1])
    await clock.advance(by: .seconds(199))
    #expect(ids(in: client) == [1])
    await clock.advance(by: .seconds(1))
    #expect(ids(in: client) == [])
  }

  @Test("A run that is in flight, or only scheduled, keeps its store in the client")
  func running() async throws {
    let client = client()
    let remote = Remote<Int>()
    let store = client.store(for: remote.query(["number", 0]))
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    await clock.advance(by: .seconds(1_000))
    #expect(ids(in: client) == [0])
    remote.answer(1)
    _ = try await run.value
    await clock.advance(by: .seconds(299))
    #expect(ids(in: client) == [0])
    var task = Optional(store.runTask())
    await clock.advance(by: .seconds(1_000))
    #expect(ids(in: client) == [0])
    withExtendedLifetime(task) {}
    task = nil
    await clock.advance(by: .seconds(300))
    #expect(ids(in: client) == [])
  }

  @Test("A pending optimistic edit keeps its store in the client")
  func optimistic() async {
    let client = client(.unusedFor(.seconds(10)))
    let store = client.store(for: query())
    await store.optimistically {
      $0 = 1
    } while: {
      await clock.advance(by: .seconds(1_000))
      #expect(ids(in: client) == [0])
    }
    await clock.advance(by: .seconds(10))
    #expect(ids(in: client) == [])
  }

  @Test("With whileUsed a store is evicted when its last use ends, or a minute after its creation")
  func whileUsed() async throws {
    let client = client(.whileUsed)
    try await client.fetch(query(1))
    #expect(ids(in: client) == [])
    let store = client.store(for: query(2))
    let subscriptions = [store.subscribe { _ in }, store.subscribe { _ in }]
    subscriptions[0].cancel()
    await store.settles { !$0.isLoading }
    #expect(ids(in: client) == [2])
    subscriptions[1].cancel()
    #expect(ids(in: client) == [])
    _ = client.store(for: query(4))
    await clock.advance(by: .seconds(59))
    #expect(ids(in: client) == [4])
    await clock.advance(by: .seconds(1))
    #expect(ids(in: client) == [])
  }

  @Test("A retention that replaces whileUsed evicts the store at its own end")
  func longerThanWhileUsed() async throws {
    let client = client()
    _ = client.store(for: query().retained(.whileUsed))
    try await client.fetch(query().retained(.unusedFor(.seconds(10))))
    await clock.advance(by: .seconds(9))
    #expect(ids(in: client) == [0])
    await clock.advance(by: .seconds(1))
    #expect(ids(in: client) == [])
  }

  @Test("With forever a store is retained until it is cleared")
  func forever() async {
    let client = client(.forever)
    _ = client.store(for: query(1))
    await clock.advance(by: .seconds(1_000_000))
    #expect(ids(in: client) == [1])
    client.clearStores()
    #expect(ids(in: client) == [])
  }

  @Test("The retention of a request replaces that of the client, and the longest one applies")
  func longest() async {
    let client = client(.unusedFor(.seconds(50)))
    _ = client.store(for: query(1).retained(.unusedFor(.seconds(10))))
    _ = client.store(for: query(2).retained(.unusedFor(.seconds(10))).neverStale())
    _ = client.store(for: query(2).retained(.unusedFor(.seconds(100))))
    _ = client.store(for: query(2).retained(.unusedFor(.seconds(20))))
    _ = client.store(for: query(3).retained(.unusedFor(.seconds(10))))
    _ = client.store(for: query(3))
    _ = client.store(for: query(4).retained(.forever))
    await clock.advance(by: .seconds(10))
    #expect(ids(in: client) == [2, 3, 4])
    await clock.advance(by: .seconds(40))
    #expect(ids(in: client) == [2, 4])
    await clock.advance(by: .seconds(50))
    #expect(ids(in: client) == [4])
  }

  @Test("Of more unused stores than the limit the least recently used ones are evicted")
  func limit() async throws {
    let bounded = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)).limited(to: 3))
    for id in 1...3 { try await bounded.fetch(query(id)) }
    let store = bounded.store(for: query(1))
    try await bounded.fetch(query(4))
    #expect(ids(in: bounded) == [1, 3, 4], "the look-up of 1 is a use")
    let subscription = store.subscribe { _ in }
    await store.settles { !$0.isLoading }
    for id in 5...9 { try await bounded.fetch(query(id)) }
    #expect(ids(in: bounded) == [1, 7, 8, 9], "a store in use does not count")
    subscription.cancel()
    #expect(ids(in: bounded) == [1, 8, 9])
    _ = bounded.store(for: query(10).retained(.forever))
    try await bounded.fetch(query(11))
    try await bounded.fetch(query(12))
    #expect(ids(in: bounded) == [1, 10, 11, 12], "a store that is retained forever does not count")
    await clock.advance(by: .seconds(300))
    #expect(ids(in: bounded) == [10])
  }

  @Test("Of two requests that clash on a path each store is evicted by itself")
  func clash() async throws {
    let client = client()
    let mutation = Mutation<Int, Int>(path: ["number", 0]) { number, _ in number }
    _ = await issues {
      let query = client.store(for: query())
      let subscription = query.subscribe { _ in }
      _ = client.store(for: mutation)
      await query.settles { !$0.isLoading }
      await clock.advance(by: .seconds(300))
      #expect(client.stores(matching: []).count == 1)
      #expect(client.store(with: ["number", 0])?.isOpaque(of: query) == true)
      subscription.cancel()
    }
    await clock.advance(by: .seconds(300))
    #expect(!client.retains(["number", 0]))
  }

  @Test("When all stores are evicted, no node, no deadline and no store is left")
  func nothingLeft() async throws {
    let live = LiveCount()
    let client = client()
    for id in 0..<100 {
      let probe = live.makeProbe()
      let query = Query<Int, any Error>(path: ["probe", id, "leaf"]) { _ in
        withExtendedLifetime(probe) { id }
      }
      try await client.fetch(query)
    }
    #expect(live.value == 100)
    await clock.advance(by: .seconds(300))
    // The task of a run may not have ended yet.
    #expect(await eventually { live.value == 0 })
    #expect(client.read { ($0.entries.nodeCount, $0.deadlines.count) } == (0, 0))
  }

  @Test("A client that is deallocated leaves no timer")
  func noTimerLeft() async {
    do {
      let client = client()
      _ = client.store(for: query())
      withExtendedLifetime(client) {}
    }
    #expect(clock.hasNoTraces)
  }

  @Test("A time or a number below zero is reported, and taken as zero")
  func badInput() async throws {
    let (issues, _) = await issues { () async in
      #expect(OperationRetention.unusedFor(.seconds(-1)) == .whileUsed)
      #expect(OperationRetention.forever.limited(to: -1) == .forever.limited(to: 0))
    }
    #expect(issues.map(\.kind) == [.invalidValue, .invalidValue])
  }

  /// A manual clock that notes the durations of the timers that are cancelled.
  private struct CancellingClock: OperationClock {
    let base: ManualClock
    let cancelled = EventLog<Duration>()

    func now() -> Date { base.now() }
    func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }
    func schedule(
      after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> OperationSubscription {
      let timer = base.schedule(after: duration, action)
      return OperationSubscription { [cancelled] in
        timer.cancel()
        cancelled.append(duration)
      }
    }
  }

  @Test("A store that is added again and again has few deadlines, also if the clock stands still")
  func repeatedDeadlines() {
    var index = StoreIndex()
    let store = OpaqueOperationStore(OperationStore.detached(query: query()))
    let lookup = StoreIndex.Lookup(of: query(), default: .unusedFor(.seconds(300)))
    _ = index.insert(
      OpaqueOperationStore(OperationStore.detached(query: query(1))),
      for: StoreIndex.Lookup(of: query(1), default: .forever), at: .zero)
    for _ in 0..<1_000 {
      _ = index.insert(store, for: lookup, at: .zero)
      _ = index.remove([store])
    }
    #expect(index.deadlines.count <= 36)
  }
}
