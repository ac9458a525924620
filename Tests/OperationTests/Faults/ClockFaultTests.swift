import FoundationEssentials
import Operation
import Synchronization
import Testing

/// A clock whose date a test sets, and whose waits do not change with it, like that of a machine.
private final class JumpingClock: OperationClock {
  let waits = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  private let offset = Mutex(0.0)
  private let step: Double

  /// - Parameter step: The number of seconds that each read adds to the date.
  init(step: Double = 0) {
    self.step = step
  }

  func now() -> Date {
    let offset = offset.withLock { offset in
      offset += step
      return offset
    }
    return waits.now().addingTimeInterval(offset)
  }

  func jump(by seconds: Double) { offset.withLock { $0 += seconds } }

  nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await waits.sleep(for: duration)
  }

  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    waits.schedule(after: duration, action)
  }
}

/// A jumping clock with an elapsed time, which does not jump.
private struct SteadyClock: OperationClock {
  let jumping: JumpingClock

  func now() -> Date { jumping.now() }
  func elapsed() -> Duration { jumping.waits.elapsed() }

  nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await jumping.sleep(for: duration)
  }

  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    jumping.schedule(after: duration, action)
  }
}

private let year = 365.0 * 86_400

/// With a clock that is set back, nothing hangs, traps or runs forever.
@Suite("Faults: clocks", .timeLimit(.minutes(5))) struct ClockFaultTests {
  private let clock = JumpingClock()
  private let script = Script()

  private func client(_ defaults: OperationDefaults = .testing) -> OperationClient {
    OperationClient(defaults: defaults, clock: clock)
  }

  @Test("A value with a future date is not returned in place of a failure")
  func staleIfError() async throws {
    let script = Script { attempt, _, _ in attempt == 1 ? .success(1) : .failure(Refused()) }
    let client = client()
    let store = client.store(for: OpenQuery(script: script).staleIfError(for: .seconds(60)))
    #expect(try await store.fetch() == 1)
    #expect(try await store.fetch() == 1)
    clock.jump(by: -year)
    await #expect(throws: Refused.self) { try await store.fetch() }
  }

  @Test("A clock that is set back makes a value with a future date stale, until it is fetched")
  func staleness() async throws {
    let client = client()
    let request = OpenQuery(script: script).stale(after: .seconds(60))
    let store = client.store(for: request)
    try await store.run()
    #expect(!store.isStale)
    clock.jump(by: -year)
    #expect(store.isStale, "the age of the value is unknown")
    #expect(try await client.ensure(request) == 2)
    #expect(store.valueLastUpdatedAt == clock.now())
    #expect(!store.isStale)
    #expect(try await client.ensure(request) == 2)
    await clock.waits.advance(by: .seconds(60))
    #expect(store.isStale)
    #expect(store.valueUpdateCount == 2)
  }

  @Test("With a clock that goes back at every read, each ensure fetches once")
  func everGoingBack() async throws {
    let client = OperationClient(defaults: .testing, clock: JumpingClock(step: -100))
    let query = OpenQuery(script: script).stale(after: .seconds(60))
    for call in 1...5 { #expect(try await client.ensure(query) == call) }
    let store = client.store(for: query)
    let subscription = store.subscribe { _ in }
    await store.settles { !$0.isLoading && $0.currentValue == 6 }
    for _ in 0..<100 { await Task.yield() }
    #expect(script.attempts == 6, "a subscriber of a stale store starts one run")
    subscription.cancel()
    for id in 0..<100 { _ = client.store(for: OpenQuery(script: script, path: ["other", id])) }
    #expect(client.stores(matching: ["other"]).count == 100)
  }

  @Test("A clock that is set back while a retry waits does not change the wait")
  func retry() async throws {
    let script = Script(failures: 2)
    let query = OpenQuery(script: script).retry(limit: 2).backoff(.constant(.seconds(10)))
    let store = client().store(for: query)
    let run = Task { try await store.run() }
    await clock.waits.sleepers(atLeast: 1)
    clock.jump(by: -year)
    await clock.waits.advance(by: .seconds(9))
    #expect(script.attempts == 1)
    await clock.waits.advance(by: .seconds(1))
    await clock.waits.sleepers(atLeast: 1)
    clock.jump(by: year)
    #expect(script.attempts == 2)
    await clock.waits.advance(by: .seconds(10))
    #expect(try await run.value == 3)
    #expect(clock.waits.sleeperCount == 0)
  }

  @Test("A clock that is set back during a run with a timeout does not change the timeout")
  func timeout() async throws {
    let remote = Remote<Int>()
    let store = client().store(for: remote.query().timeout(after: .seconds(10)))
    let run = Task { try await store.run() }
    await clock.waits.sleepers(atLeast: 1)
    clock.jump(by: -year)
    await clock.waits.advance(by: .seconds(10))
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(store.errorLastUpdatedAt == clock.now())
  }

  @Test("A clock that is set back and forward does not change the number of polls")
  func polling() async {
    let query = OpenQuery(script: script).neverStale().rerun(every: .seconds(10))
    let store = client().store(for: query)
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    for (poll, jump) in [-year, year, -2 * year, 0].enumerated() {
      await clock.waits.sleepers(atLeast: 1)
      clock.jump(by: jump)
      await clock.waits.advance(by: .seconds(10))
      await store.settles { $0.currentValue == poll + 1 && !$0.isLoading }
    }
    await clock.waits.sleepers(atLeast: 1)
    #expect(script.attempts == 4)
    subscription.cancel()
    await store.settles { _ in clock.waits.sleeperCount == 0 }
  }

  @Test("After a clock is set back, unused stores are evicted when their time has passed again")
  func retention() async {
    let client = client()
    for id in 0..<3 {
      _ = client.store(for: OpenQuery(script: script, path: [id]))
      await clock.waits.advance(by: .seconds(60))
    }
    clock.jump(by: -year)
    await clock.waits.advance(by: .seconds(120))
    #expect(client.stores(matching: []).count == 3)
    await clock.waits.advance(by: .seconds(299))
    #expect(client.stores(matching: []).count == 3)
    await clock.waits.advance(by: .seconds(1))
    #expect(client.stores(matching: []).isEmpty)
  }

  @Test("A store is evicted in its time by the elapsed time, also if the date jumps by a year")
  func retentionByElapsedTime() async {
    let clock = SteadyClock(jumping: clock)
    let client = OperationClient(defaults: .testing, clock: clock)
    for jump in [year, -2 * year, year / 2] {
      _ = client.store(for: OpenQuery(script: script))
      await clock.jumping.waits.advance(by: .seconds(100))
      clock.jumping.jump(by: jump)
      await clock.jumping.waits.advance(by: .seconds(199))
      _ = client.store(for: OpenQuery(script: script, path: ["other"]))
      #expect(client.stores(matching: []).count == 2)
      await clock.jumping.waits.advance(by: .seconds(1))
      #expect(client.stores(matching: []).count == 1)
      await clock.jumping.waits.advance(by: .seconds(299))
      #expect(client.stores(matching: []).isEmpty)
    }
  }

  @Test("After a clock is set back, a new store is evicted in its time, and the older ones with it")
  func retentionOfNewStores() async {
    let client = client()
    let used = client.store(for: OpenQuery(script: script, path: ["used"]).neverStale())
    used.currentValue = 1
    let subscription = used.subscribe { _ in }
    _ = client.store(for: OpenQuery(script: script, path: ["old"]))
    clock.jump(by: -year)
    _ = client.store(for: OpenQuery(script: script, path: ["new"]))
    await clock.waits.advance(by: .seconds(299))
    #expect(client.stores(matching: []).count == 3)
    await clock.waits.advance(by: .seconds(1))
    #expect(client.stores(matching: []).map(\.path) == [["used"]])
    // The subscription retains the store, and the client finds it until it is released.
    subscription.cancel()
    await clock.waits.advance(by: .seconds(300))
    #expect(client.stores(matching: []).map(\.path) == [["used"]])
    client.clearStores()
    #expect(client.stores(matching: []).isEmpty && used.currentValue == 1)
  }

  @Test("After a clock is set back, events have the new dates, and snapshots have ages below zero")
  func events() async throws {
    let client = client()
    let events = Recorder<OperationClientEvent>()
    let log = client.log(to: Logger { events.append($0) })
    let store = client.store(for: OpenQuery(script: script).logDuration("run") { _ in })
    try await store.run()
    clock.jump(by: -year)
    #expect(client.snapshot().stores.map(\.age) == [-year])
    try await store.run()
    #expect(events.all.last?.date == clock.now())
    #expect(client.snapshot().stores.map(\.age) == [0])
    log.cancel()
  }

  @Test(
    "With a clock without a finite date, values are stale, and nothing traps or loops forever",
    arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
  func noDate(_ seconds: Double) async throws {
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    let clock = ManualClock(now: date)
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = OpenQuery(script: script).stale(after: .seconds(60))
    let store = client.store(for: query)
    #expect(try await client.ensure(query) == 1)
    #expect(store.isStale != seconds.isFinite)
    _ = try await client.ensure(query)
    await clock.advance(by: .seconds(1_000))
    await clock.advance(by: .seconds(-1_000))
    for id in 0..<10 { _ = client.store(for: OpenQuery(script: script, path: [id])) }
    let line = client.snapshot().stores.first?.age
    #expect(line?.isFinite ?? true)
    #expect(store.status.isSuccess)
    #expect(clock.sleeperCount == 0)
  }
}

private struct Logger: OperationLogger {
  let handler: @Sendable (OperationClientEvent) -> Void

  func log(_ event: OperationClientEvent) { handler(event) }
}
