import FoundationEssentials
import Operation
import Testing

@Suite(.timeLimit(.minutes(5))) struct RetryingTests {
  private let clock = ManualClock()

  @Test("While a run waits for a retry, the state has its failure and the date of the next attempt")
  func retry() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(
      for: OpenQuery(script: Script(failures: 2)).retry(limit: 3).backoff(.linear(.seconds(10))))
    let run = Task { try await store.fetch() }
    for attempt in 1...2 {
      await clock.sleepers(atLeast: 1)
      let retry = try #require(store.state.retry)
      #expect(retry.failedAttempts == attempt)
      #expect(retry.lastFailure as? Refused == Refused(attempt: attempt))
      #expect(retry.nextAttemptAt == clock.now().addingTimeInterval(Double(attempt) * 10))
      #expect(store.error == nil)
      await clock.advance(by: .seconds(attempt * 10))
    }
    #expect(try await run.value == 3)
    #expect(store.state.retry == nil)
  }

  @Test("A cancelled run leaves no retry in the state") func cancelled() async {
    let client = OperationClient(defaults: .standard, clock: clock)
    let store = client.store(for: TypedQuery(script: Script(failures: 9)))
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 1)
    #expect(store.state.retry?.lastFailure == Refused(attempt: 1))
    store.cancel()
    #expect(store.state.retry == nil)
    _ = await run.result
  }

  @Test("A timeout ends the wait for a retry in the state, too, if the run continues")
  func timedOut() async throws {
    let calls = EventLog<Int>()
    let query = Query(path: ["timed out"]) { [clock] _ in
      if calls.append(0) == 1 { throw Refused() }
      try await clock.sleep(for: .seconds(1))
      return 2
    }
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(
      for: query.retry(limit: 1).backoff(.constant(.seconds(9))).timeout(after: .seconds(5))
        .modifier(Again()))
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 2)
    #expect(store.state.retry?.failedAttempts == 1)
    await clock.advance(by: .seconds(5))
    await clock.settle()
    #expect(store.isLoading)
    #expect(store.state.retry == nil)
    await clock.advance(by: .seconds(1))
    #expect(try await run.value == 2)
  }

  @Test("A failure of a retry is released without the lock of the store") func released() async {
    /// A clock whose sleeps fail, so that the run ends while the state still has the retry.
    struct FailingClock: OperationClock {
      func now() -> Date { Date(timeIntervalSince1970: 0) }
      nonisolated(nonsending) func sleep(for duration: Duration) async throws {
        throw CancellationError()
      }
    }
    struct Failure: Error { let sentinel: Sentinel }
    let released = EventLog<Bool>()
    let stores = EventLog<OperationStore<QueryState<Int, any Error>>>()
    let request = Query(path: ["released"]) { _ -> Int in
      throw Failure(
        sentinel: Sentinel { released.append(stores.values.first?.isLoading ?? true) })
    }
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: request.retry(limit: 3).clock(FailingClock()))
    stores.append(store)
    await #expect(throws: CancellationError.self) { try await store.fetch() }
    await released.wait(for: 1)
    #expect(store.state.retry == nil)
    stores.clear()
  }

  @Test("The states of pages and mutations have a retry as well") func kinds() async {
    let client = OperationClient(defaults: .standard, clock: clock)
    let pages = Paginated(path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }) {
      _, _ -> Int in throw Refused()
    }
    let mutation = Mutation(path: ["mutation"]) { (_: Int, _) -> Int in throw Refused() }
      .retry(limit: 1)
    let (first, second) = (client.store(for: pages), client.store(for: mutation))
    let runs = [
      Task { _ = try? await first.fetch() }, Task { _ = try? await second.mutate(with: 1) },
    ]
    await clock.sleepers(atLeast: 2)
    #expect(first.state.retry?.failedAttempts == 1)
    #expect(second.state.retry?.failedAttempts == 1)
    for run in runs { run.cancel() }
    first.cancel()
    second.cancel()
    for run in runs { await run.value }
  }

  @Test("Retries wait for a condition") func condition() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let isReady = Broadcast<Bool>()
    let script = Script(failures: 1)
    let store = client.store(
      for: OpenQuery(script: script).retry(limit: 1).backoff(.constant(.seconds(1)))
        .retries(onlyWhile: .latest(of: isReady)))
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    for _ in 0..<100 { await Task.yield() }
    #expect(script.attempts == 1)
    isReady.send(true)
    #expect(try await run.value == 2)
  }

  @Test("A retry whose connection was lost while it waited for a condition waits for both")
  func conditionAndConnection() async throws {
    let network = ManualNetworkObserver()
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, networkObserver: network), clock: clock)
    let isReady = Broadcast<Bool>()
    let script = Script(failures: 1)
    let store = client.store(
      for: OpenQuery(script: script).retry(limit: 1).backoff(.constant(.seconds(1)))
        .retries(onlyWhile: .latest(of: isReady)).networkMode(.online))
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    while isReady.subscriberCount == 0 { await Task.yield() }
    network.set(.disconnected)
    isReady.send(true)
    await store.settles { $0.state.isPaused }
    #expect(script.attempts == 1)
    isReady.send(false)
    network.set(.connected)
    await store.settles { !$0.state.isPaused && isReady.subscriberCount > 0 }
    #expect(script.attempts == 1)
    isReady.send(true)
    #expect(try await run.value == 2)
  }

  @Test("A condition that becomes satisfied runs a fresh request with evenIfFresh")
  func evenIfFresh() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let isReady = Broadcast<Bool>()
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).neverStale()
        .rerunOnChange(of: .latest(of: isReady), evenIfFresh: true))
    let subscription = store.subscribe { _ in }
    while store.currentValue != 1 { await Task.yield() }
    isReady.send(true)
    isReady.send(true)
    while store.currentValue != 2 { await Task.yield() }
    isReady.send(false)
    #expect(!store.isLoading)
    isReady.send(true)
    while store.currentValue != 3 { await Task.yield() }
    #expect(script.attempts == 3)
    subscription.cancel()
  }

  @Test("The state decides the interval of a poll") func interval() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script)
        .rerun(every: { $0.currentValue == 1 ? .seconds(5) : .seconds(60) }))
    try await store.fetch()
    let subscription = store.subscribe { _ in }
    while store.isLoading { await Task.yield() }
    let first = script.attempts
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(60))
    await script.contexts.wait(for: first + 1)
    while store.isLoading { await Task.yield() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(59))
    #expect(script.attempts == first + 1)
    await clock.advance(by: .seconds(1))
    await script.contexts.wait(for: first + 2)
    subscription.cancel()
  }

  @Test("The run for the first observer decides the interval of the first poll")
  func firstInterval() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let script = Script(failures: 1)
    let store = client.store(
      for: OpenQuery(script: script).retry(limit: 0)
        .rerun(every: { $0.error == nil ? .seconds(60) : .seconds(5) }))
    let subscription = store.subscribe { _ in }
    await clock.sleepers(atLeast: 1)
    #expect(script.attempts == 1 && store.error != nil)
    for (interval, attempts) in [(5, 2), (60, 3)] {
      await clock.advance(by: .seconds(interval - 1))
      await clock.settle()
      #expect(script.attempts == attempts - 1)
      await clock.advance(by: .seconds(1))
      await clock.settle()
      #expect(script.attempts == attempts)
    }
    subscription.cancel()
  }

  @Test("A poll with an interval that the state decides waits for a saved value and its run")
  func firstIntervalOfSavedValue() async throws {
    let storage = SlowStorage(base: MemoryStorage())
    let client = outboxProgram(storage, clock: clock)
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).persisted()
        .rerun(every: { $0.currentValue == 1 ? .seconds(5) : .seconds(60) }))
    let subscription = store.subscribe { _ in }
    await storage.loads.wait(for: 1)
    await clock.settle()
    #expect(script.attempts == 0 && clock.sleeperCount == 0)
    storage.gate.open()
    await clock.sleepers(atLeast: 1)
    #expect(store.currentValue == 1)
    await clock.advance(by: .seconds(5))
    await clock.settle()
    #expect(script.attempts == 2)
    subscription.cancel()
  }

  @Test("A run without a name has that of its request") func names() async throws {
    let names = EventLog<String?>()
    struct NamedQuery: SimpleQueryRequest {
      let names: EventLog<String?>
      var path: OperationPath { ["named"] }
      func fetch(in context: OperationContext) async throws -> Int { names.append(Task.name) }
    }
    let client = OperationClient(defaults: .testing, clock: clock)
    try await client.fetch(NamedQuery(names: names).retry(limit: 1))
    let pages = Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { _, _ in names.append(Task.name) }
    try await client.fetch(pages)
    try await client.store(for: pages).fetchNextPage()
    #expect(names.values[0] == "NamedQuery")
    #expect(names.values[2]?.hasSuffix(", next page") == true)
    let timed = NamedQuery(names: names).retry(limit: 1).timeout(after: .seconds(1))
    _ = try await OperationClient(defaults: .testing, clock: clock).fetch(timed)
    #expect(names.values.last == "NamedQuery")
  }

  @Test("A state has no retry while the attempt is in flight that it announced")
  func retryInFlight() async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      if attempt == 1 { return .failure(Refused(attempt: 1)) }
      await gate.wait()
      return .success(attempt)
    }
    let clock = ManualClock()
    let store = OperationClient(defaults: .testing, clock: clock).store(
      for: OpenQuery(script: script).retry(limit: 1).backoff(.constant(.seconds(1))))
    let run = Task { try await store.run() }
    await clock.sleepers(atLeast: 1)
    #expect(store.state.retry?.failedAttempts == 1)
    await clock.advance(by: .seconds(1))
    await script.contexts.wait(for: 2)
    #expect(store.state.retry == nil)
    gate.open()
    #expect(try await run.value == 2)
  }

  @Test("A modifier that gives up a retry and goes on leaves no retry in the state")
  func givenUpRetry() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let (mustGiveUp, mustEnd) = (AsyncGate(), AsyncGate())
    let query = OpenQuery(script: Script(failures: 9)).retry(limit: 3)
      .modifier(Fallback(mustGiveUp: mustGiveUp, mustEnd: mustEnd))
    let store = client.store(for: query)
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 1)
    #expect(store.state.retry?.failedAttempts == 1)
    mustGiveUp.open()
    while clock.sleeperCount > 0 || store.state.retry != nil { await Task.yield() }
    #expect(store.isLoading)
    mustEnd.open()
    #expect(try await run.value == 7)
  }
}

/// Cancels a request, and returns a number later.
private struct Fallback<Base: OperationRequest>: OperationModifier
where Base.Value == Int, Base.Failure == any Error {
  let mustGiveUp: AsyncGate
  let mustEnd: AsyncGate

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    let task = Task { try await base.run(isolation: nil, in: context, with: continuation) }
    await mustGiveUp.wait()
    task.cancel()
    _ = await task.result
    await mustEnd.wait()
    return 7
  }
}
