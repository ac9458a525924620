import FoundationEssentials
@testable import Operation
import Synchronization
import Testing

/// Requests that share a store, each with its own rules.
@Suite("Rules of requests that share a store", .timeLimit(.minutes(5))) struct OwnRulesTests {
  private struct Failed: Error {}

  private struct NumberQuery: QueryRequest, Hashable {
    let id: Int
    let log: Log

    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int { try await log.fetch() }
  }

  /// Counts the calls, of which some fail.
  private final class Log: Sendable, Hashable {
    let calls = EventLog<Int>()
    let failures = Mutex(0)
    let gate = Mutex<AsyncGate?>(nil)

    static func == (lhs: Log, rhs: Log) -> Bool { lhs === rhs }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    func fail(_ count: Int) { failures.withLock { $0 = count } }

    func fetch() async throws -> Int {
      let number = calls.append(0)
      await gate.withLock { $0 }?.wait()
      let fails = failures.withLock { failures in
        failures -= 1
        return failures >= 0
      }
      if fails { throw Failed() }
      return number
    }
  }

  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  private let log = Log()

  private var request: NumberQuery { NumberQuery(id: 1, log: log) }

  private func client(runsAutomatically: Bool = false) -> OperationClient {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: runsAutomatically),
      clock: clock)
  }

  @Test("fetch applies the retries of its own request, whichever request created the store")
  func retries() async throws {
    let client = client()
    _ = client.store(for: request)
    log.fail(3)
    try await client.fetch(request.retry(limit: 3).backoff(.noBackoff))
    #expect(log.calls.count == 4)
    log.fail(1)
    await #expect(throws: Failed.self) { try await client.fetch(request) }
    #expect(log.calls.count == 5)
    let other = self.client()
    _ = other.store(for: request.retry(limit: 5).backoff(.noBackoff))
    log.fail(1)
    await #expect(throws: Failed.self) { try await other.fetch(request) }
    log.fail(2)
    await #expect(throws: Failed.self) {
      try await other.fetch(request.retry(limit: 1).backoff(.noBackoff))
    }
    log.fail(1)
    try await other.store(for: request).fetch()
  }

  @Test("A fetch applies the timeout of its own request, and other callers still wait")
  func timeouts() async throws {
    let client = client()
    let store = client.store(for: request)
    let gate = AsyncGate()
    log.gate.withLock { $0 = gate }
    let request = request
    let impatient = Task { try await client.fetch(request.timeout(after: .seconds(5))) }
    await withTaskCancellationHandler {
      await clock.sleepers(atLeast: 1)
    } onCancel: {
      gate.open()
    }
    await clock.advance(by: .seconds(5))
    await #expect(throws: (any Error).self) { try await impatient.value }
    let patient = Task { try await store.fetch() }
    await log.calls.wait(for: 2)
    await clock.advance(by: .seconds(50))
    gate.open()
    _ = try await patient.value
  }

  @Test("ensure and prefetch apply the stale time of their own request")
  func staleTimes() async throws {
    let client = client()
    try await client.fetch(request.neverStale())
    await clock.advance(by: .seconds(10))
    try await client.ensure(request.neverStale())
    try await client.ensure(request.stale(after: .seconds(11)))
    try await client.ensure(request)
    #expect(log.calls.count == 1)
    try await client.ensure(request.stale(after: .seconds(10)))
    #expect(log.calls.count == 2)
    await clock.advance(by: .seconds(10))
    await client.prefetch(request.stale(after: .seconds(20)))
    #expect(log.calls.count == 2)
    await client.prefetch(request.stale(after: .seconds(10)))
    #expect(log.calls.count == 3)
  }

  @Test("A run in flight is joined by requests with other rules")
  func joining() async throws {
    let client = client()
    let gate = AsyncGate()
    log.gate.withLock { $0 = gate }
    let request = request
    let first = Task { try await client.fetch(request) }
    await log.calls.wait(for: 1)
    let second = Task { try await client.fetch(request.retry(limit: 3).neverStale()) }
    let store = client.store(for: request)
    while store.leaseCount < 2 { await Task.yield() }
    gate.open()
    #expect(try await first.value == second.value)
    #expect(log.calls.count == 1)
  }

  @Test("A chain polls as its own request defines, even if another request created the store")
  func polling() async throws {
    let client = client()
    let store = client.store(for: request)
    store.currentValue = 0
    let link = client.store(for: Query<Int, any Error>(path: ["first"]) { _ in 1 })
    link.currentValue = 1
    let request = request
    let chain = link.chain { (_: Int) in request.rerun(every: .seconds(1), inBackground: true) }
    let reading = Task {
      for await _ in chain.values {}
    }
    for count in 1...3 {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(1))
      await log.calls.wait(for: count)
    }
    reading.cancel()
    await reading.value
    #expect(log.calls.count == 3)
    #expect(store.subscriberCount == 0)
    await clock.advance(by: .seconds(10))
    await clock.settle()
    #expect(log.calls.count == 3, "the poll ends with the observer")
  }

  @Test("A subscriber that is cancelled before a saved value is loaded starts no run for others")
  func cancelledBeforeLoad() async throws {
    let storage = MemoryStorage(clock: clock)
    storage.delay = .seconds(1)
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: clock,
      storage: storage)
    let request = request.persisted(as: "number")
    let store = client.store(for: request)
    let rules = store.rules(of: request.enableAutomaticRunning())
    store.subscribe(by: rules) { _ in }.cancel()
    let subscription = store.subscribe { _ in }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    while store.isRestoring { await Task.yield() }
    await clock.settle()
    #expect(log.calls.count == 0)
    subscription.cancel()
  }

  @Test("Two serialized scopes for one store are reported once, and the first one applies")
  func scopes() async throws {
    let client = client()
    _ = client.store(for: request.serialized(in: "a"))
    let issues = ReceivedIssues()
    try await OperationIssue.withHandler(issues.handler) {
      try await client.fetch(request.serialized(in: "b"))
      try await client.fetch(request.serialized(in: "b"))
      try await client.fetch(request.serialized(in: "a"))
      try await client.fetch(request)
    }
    #expect(issues.kinds == [.ruleConflict])
  }

  private struct UserKey: OperationContext.Key {
    static let defaultValue = "nobody"
  }

  @Test("A context that is set on the store reaches the runs and rules of each of its requests")
  func contextOfStore() async throws {
    let users = EventLog<String>()
    let staleFor = EventLog<String>()
    let plain = Query<Int, any Error>(path: ["user"]) { context in
      users.append(context[UserKey.self])
    }
    let modified = plain.retry(limit: 2).staleWhen { _, context in
      staleFor.append(context[UserKey.self])
      return true
    }
    let client = client()
    let store = client.store(for: plain)
    let rules = store.rules(of: modified)
    let subscription = store.subscribe(by: rules) { _ in }
    try await client.fetch(modified)
    store.context[UserKey.self] = "ada"
    store.invalidate()
    await clock.settle()
    #expect(users.values == ["nobody", "ada"])
    #expect(store.isStale(by: rules))
    #expect(staleFor.values.last == "ada")
    store.context[UserKey.self] = "bob"
    store.invalidate()
    await clock.settle()
    try await client.fetch(modified)
    #expect(users.values == ["nobody", "ada", "bob", "bob"])
    #expect(store.setting(by: rules) { $0.retry.limit } == 2)
    subscription.cancel()
  }
}

/// The deinitialisers of requests are user code.
@Suite("Rules that are released", .timeLimit(.minutes(5))) struct ReleasedRulesTests {
  @Test("A request whose rules a subscriber uses is released without the store's lock")
  func release() {
    let client = OperationClient(defaults: .quiet())
    let plain = Query<Int, any Error>(path: ["released"]) { _ in 1 }
    let store = client.store(for: plain)
    let released = Counter()
    var subscription = OperationSubscription.empty
    do {
      let sentinel = Sentinel {
        // Under the lock this is a fatal error.
        _ = store.isLoading
        released.increment()
      }
      let request = Query<Int, any Error>(path: ["released"]) { _ in sentinel.number }.neverStale()
      subscription = store.subscribe(by: store.rules(of: request)) { _ in }
    }
    #expect(released.value == 0)
    subscription.cancel()
    #expect(released.value == 1)
  }
}
