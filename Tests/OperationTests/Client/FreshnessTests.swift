import FoundationEssentials
import Operation
import Synchronization
import Testing

/// When a value counts as fresh, and which run serves a caller.
@Suite("Freshness", .timeLimit(.minutes(5))) struct FreshnessTests {
  private struct Failed: Error {}

  /// A server with a mutable value. Each request can wait at its own gate.
  private final class Server: Sendable {
    let value = Mutex(0)
    let gates = Mutex<[AsyncGate]>([])
    let calls = EventLog<Int>()

    func set(_ new: Int) { value.withLock { $0 = new } }

    /// Makes each of the next requests wait at its own gate.
    func close(_ count: Int) -> [AsyncGate] {
      let new = (0..<count).map { _ in AsyncGate() }
      gates.withLock { $0 += new }
      return new
    }

    func fetch() async -> Int {
      let current = value.withLock { $0 }
      let gate = gates.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      calls.append(current)
      await gate?.wait()
      return current
    }
  }

  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  private let server = Server()

  private var request: Query<Int, any Error> {
    Query(path: ["value"]) { [server] _ in await server.fetch() }
  }

  private func client(runsAutomatically: Bool = true) -> OperationClient {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: runsAutomatically),
      clock: clock)
  }

  // MARK: Runs after an invalidation

  @Test("A fetch after a change and an invalidation returns and displays the new value")
  func fetchAfterInvalidation() async throws {
    let client = client()
    let store = client.store(for: request)
    let gates = server.close(2)
    defer { for gate in gates { gate.open() } }
    let old = Task { try await store.fetch() }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    let request = request
    let new = Task { try await client.fetch(request) }
    while store.leaseCount < 2 { await Task.yield() }
    try #require(store.activeTasks.count == 2, "the caller has not joined the older run")
    await server.calls.wait(for: 2)
    gates[1].open()
    #expect(try await new.value == 1)
    #expect(store.currentValue == 1)
    gates[0].open()
    #expect(try await old.value == 0)
    #expect(store.currentValue == 0 && store.isStale, "an older result is displayed, and stale")
    #expect(try await client.ensure(request) == 1)
    #expect(server.calls.values == [0, 1, 1])
  }

  @Test(
    "Without another run, the result from before an invalidation is displayed and remains stale")
  func oldResult() async throws {
    let client = client(runsAutomatically: false)
    let store = client.store(for: request.neverStale())
    let gates = server.close(1)
    let old = Task { try await store.fetch() }
    await server.calls.wait(for: 1)
    client.invalidate(request)
    gates[0].open()
    #expect(try await old.value == 0)
    #expect(store.currentValue == 0 && store.isStale)
  }

  @Test("Callers after an invalidation share one run")
  func sharedAnswer() async throws {
    let client = client()
    let store = client.store(for: request)
    let gates = server.close(2)
    defer { for gate in gates { gate.open() } }
    let old = Task { try await store.fetch() }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    let new = (0..<10).map { _ in Task { try await store.fetch() } }
    while store.leaseCount < 11 { await Task.yield() }
    try #require(store.activeTasks.count == 2)
    await server.calls.wait(for: 2)
    for gate in gates { gate.open() }
    for task in new { #expect(try await task.value == 1) }
    _ = try await old.value
    #expect(server.calls.count == 2)
  }

  @Test(
    "A caller and the observers share the run after an invalidation", arguments: [false, true])
  func observed(isCallerFirst: Bool) async throws {
    let client = client()
    let store = client.store(for: request)
    let gates = server.close(2)
    defer { for gate in gates { gate.open() } }
    let subscription = store.subscribe { _ in }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    if !isCallerFirst {
      gates[0].open()
      await server.calls.wait(for: 2)
    }
    let caller = Task { try await store.fetch() }
    if isCallerFirst {
      await server.calls.wait(for: 2)
      gates[0].open()
      while store.activeTasks.count > 1 { await Task.yield() }
    } else {
      while store.leaseCount < 2 { await Task.yield() }
    }
    gates[1].open()
    #expect(try await caller.value == 1)
    while store.isLoading { await Task.yield() }
    #expect(store.currentValue == 1 && server.calls.values == [0, 1])
    subscription.cancel()
  }

  @Test("ensure after an invalidation returns a value that was fetched after it")
  func ensureAfterInvalidation() async throws {
    let client = client()
    let gates = server.close(1)
    let request = request
    let old = Task { try await client.fetch(request) }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    #expect(try await client.ensure(request) == 1)
    gates[0].open()
    #expect(try await old.value == 0)
  }

  @Test("Pages: a fetch after an invalidation does not join an older one")
  func pages() async throws {
    let request = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { [server] _, _ in await server.fetch() }
    let client = client()
    let gates = server.close(1)
    let old = Task { try await client.fetch(request) }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    let new = Task { try await client.fetch(request) }
    gates[0].open()
    _ = try await old.value
    #expect(try await new.value.pages.map(\.value) == [1])
    #expect(client.store(for: request).currentValue.map(\.value) == [1])
  }

  @Test("An invalidation and a fetch of the stale stores run each observed store once")
  func fetchStale() async throws {
    for _ in 0..<300 {
      let client = client()
      let calls = Counter()
      let request = Query<Int, any Error>(path: ["counted"]) { _ in
        calls.increment()
        return 1
      }.neverStale()
      let store = client.store(for: request)
      let subscription = store.subscribe { _ in }
      _ = try await store.fetch()
      let before = calls.value
      client.invalidate(matching: [])
      try await client.fetch(matching: [], where: .stale)
      while store.isLoading { await Task.yield() }
      #expect(calls.value == before + 1)
      subscription.cancel()
    }
  }

  @Test("A fetch of the stale stores after an invalidation joins no older run")
  func fetchStaleBesideOldRun() async throws {
    let client = client()
    let gates = server.close(1)
    let old = Task { try await client.fetch(request) }
    await server.calls.wait(for: 1)
    server.set(1)
    client.invalidate(request)
    try await client.fetch(matching: [], where: .stale)
    #expect(client.store(for: request).currentValue == 1)
    gates[0].open()
    #expect(try await old.value == 0)
  }

  // MARK: Initial values

  @Test("An initial value is as fresh as a value that is set when the store is created")
  func initialValue() async throws {
    let client = client()
    let never = client.store(for: request.neverStale(), initialValue: 7)
    #expect(!never.isStale)
    #expect(never.valueUpdateCount == 0 && never.valueLastUpdatedAt == nil && never.status.isIdle)
    let subscription = never.subscribe { _ in }
    #expect(try await client.ensure(request.neverStale()) == 7)
    #expect(try await client.ensure(request) == 7)
    subscription.cancel()
    #expect(server.calls.count == 0)
    never.invalidate()
    #expect(never.isStale)
    #expect(try await client.ensure(request) == 0)
  }

  @Test("An initial value becomes stale like any other, and is fresh again after a reset")
  func initialValueAges() async throws {
    let store = client().store(for: request.stale(after: .seconds(10)), initialValue: 7)
    await clock.advance(by: .seconds(9))
    #expect(!store.isStale)
    await clock.advance(by: .seconds(1))
    #expect(store.isStale)
    let predicate = EventLog<Int?>()
    let judged = OperationStore.detached(
      query: request.staleWhen { state, _ in
        predicate.append(state.currentValue)
        return false
      }, initialValue: 7)
    #expect(!judged.isStale && predicate.values == [7])
    judged.currentValue = nil
    #expect(judged.isStale)
    judged.resetState()
    #expect(!judged.isStale)
  }

  @Test("An initial value with a confirmed edit is as fresh as before", arguments: [false, true])
  func editedInitialValue(isNever: Bool) async throws {
    let client = client()
    let store =
      isNever
      ? client.store(for: request.neverStale(), initialValue: 5)
      : client.store(for: request.stale(after: .seconds(60)), initialValue: 5)
    await store.optimistically {
      $0? += 1
    } while: {
      #expect(!store.isStale)
    }
    #expect(store.currentValue == 6)
    #expect(!store.isStale)
    store.currentValue = nil
    #expect(store.isStale)
  }

  @Test("Nil and an empty list of pages are not initial values")
  func emptyInitialValues() {
    let client = client()
    #expect(client.store(for: request.neverStale(), initialValue: nil).isStale)
    let pages = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in 1 }.neverStale()
    #expect(client.store(for: pages).isStale)
    let other = Paginated<Int, Int>(
      path: ["others"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in 1 }.neverStale()
    #expect(!client.store(for: other, initialValue: [PaginatedPage(id: 0, value: 3)]).isStale)
  }

  // MARK: Failures

  @Test("A failed refetch makes the value stale, and starts no further run")
  func failedRefetch() async throws {
    let results = Mutex<[Result<Int, Failed>]>([.success(1), .failure(Failed()), .success(2)])
    let calls = Counter()
    let query = Query<Int, any Error>(path: ["fallible"]) { _ in
      calls.increment()
      return try results.withLock { $0.removeFirst() }.get()
    }
    let request = query.stale(after: .seconds(100))
    let client = client(runsAutomatically: false)
    let store = client.store(for: request)
    try await store.fetch()
    #expect(!store.isStale)
    let subscription = store.subscribe { _ in }
    await #expect(throws: Failed.self) { try await store.fetch() }
    #expect(store.currentValue == 1 && store.isStale)
    await clock.advance(by: .seconds(50))
    await clock.settle()
    #expect(calls.value == 2, "no run starts by itself")
    #expect(try await client.ensure(request) == 2)
    #expect(!store.isStale)
    subscription.cancel()
  }

  @Test("Under neverStale a failure leaves the value fresh; without a rule ensure fetches again")
  func failureRules() async throws {
    let client = client(runsAutomatically: false)
    let never = client.store(for: request.neverStale())
    never.currentValue = 5
    never.setResult(to: .failure(Failed()))
    #expect(!never.isStale)
    #expect(try await client.ensure(request.neverStale()) == 5)
    #expect(try await client.ensure(request) == 0, "this request has no such rule")
    let judged = client.store(
      for: Query<Int, any Error>(path: ["judged"]) { _ in 1 }.staleWhen { _, _ in false })
    judged.currentValue = 5
    judged.setResult(to: .failure(Failed()))
    #expect(judged.isStale)
  }

  // MARK: Automatic runs

  @Test("Without automatic runs, an invalidation still runs an observed store")
  func invalidationRuns() async throws {
    let client = client(runsAutomatically: false)
    let store = client.store(for: request)
    let subscription = store.subscribe { _ in }
    #expect(server.calls.count == 0)
    store.invalidate()
    // The run may have ended by now.
    await store.settles { $0.currentValue == 0 && !$0.isLoading }
    #expect(server.calls.count == 1)
    subscription.cancel()
    let quiet = OperationClient(clock: clock).store(
      for: Query<Int, any Error>(path: ["quiet"]) { _ in 1 }
        .enableAutomaticRunning(onlyWhen: .never))
    let other = quiet.subscribe { _ in }
    quiet.invalidate()
    #expect(!quiet.isLoading)
    other.cancel()
  }

  // MARK: Events

  @Test("The state comes before the yield and before the end that it contains")
  func eventOrder() async throws {
    let store = client(runsAutomatically: false).store(
      for: Query<Int, any Error>(path: ["yielding"]) { _, continuation in
        continuation.yield(1)
        return 2
      })
    let states = Mutex<[Int?]>([])
    let order = Mutex<[String]>([])
    let subscription = store.subscribe { event in
      switch event {
      case .stateChanged(let state): states.withLock { $0.append(state.currentValue) }
      case .runStarted: break
      case .yielded(let result, _):
        let last = states.withLock { $0.last ?? nil }
        order.withLock { $0.append("yielded \((try? result.get()) == last)") }
      case .runEnded(let result, _):
        let last = states.withLock { $0.last ?? nil }
        order.withLock { $0.append("ended \((try? result.get()) == last)") }
      }
    }
    try await store.fetch()
    subscription.cancel()
    #expect(order.withLock { $0 } == ["yielded true", "ended true"])
  }
}
