import Operation
import Testing

@Suite("ManualClock, settling", .timeLimit(.minutes(5))) struct SettleTests {
  private let clock = ManualClock()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: clock)
  }

  /// A request that yields its thread many times before it ends.
  private func slowScript(_ log: EventLog<String> = EventLog(), name: String = "") -> Script {
    Script { attempt, _, _ in
      log.append("\(name) begins")
      for _ in 0..<100 { await Task.yield() }
      log.append("\(name) ends")
      return .success(attempt)
    }
  }

  @Test("An unused clock is settled")
  func unused() async { await clock.settle() }

  @Test("A poll that is not due has fetched nothing, and one that is due has its value")
  func poll() async {
    let script = slowScript()
    let store = client.store(for: OpenQuery(script: script).rerun(every: .seconds(10)))
    let subscription = store.subscribe { _ in }
    await clock.settle()
    #expect(clock.sleeperCount == 1, "the poll sleeps")
    for attempt in 1...3 {
      await clock.advance(by: .seconds(9))
      await clock.settle()
      #expect(script.attempts == attempt - 1)
      await clock.advance(by: .seconds(1))
      await clock.settle()
      #expect(store.currentValue == attempt && !store.isLoading && clock.sleeperCount == 1)
    }
    subscription.cancel()
  }

  @Test("Of several polls that are due, each begins after the run of the one before it has ended")
  func severalPolls() async {
    let log = EventLog<String>()
    let subscriptions = (0..<5).map { number in
      client.store(
        for: OpenQuery(script: slowScript(log, name: "\(number)"), path: ["poll", number])
          .rerun(every: .seconds(10))
      ).subscribe { _ in }
    }
    await clock.settle()
    #expect(clock.sleeperCount == 5)
    for round in 1...3 {
      await clock.advance(by: .seconds(10))
      await clock.settle()
      #expect(log.count == round * 10)
      let events = log.values.suffix(10)
      let runs = events.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
      #expect(
        Array(events) == runs.flatMap { [$0, $0.replacing("begins", with: "ends")] },
        "no two runs overlap")
    }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A timer that is also due waits for the run of the poll before it")
  func timerAfterPoll() async {
    let log = EventLog<String>()
    let store = client.store(
      for: OpenQuery(script: slowScript(log, name: "poll")).rerun(every: .seconds(10)))
    let subscription = store.subscribe { _ in }
    await clock.settle()
    let timer = clock.schedule(after: .seconds(11)) { log.append("timer") }
    await clock.advance(by: .seconds(20))
    #expect(log.values == ["poll begins", "poll ends", "timer"])
    subscription.cancel()
    timer.cancel()
  }

  @Test("A run that waits for an external event does not prevent the clock from settling")
  func waitingRun() async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script))
    let task = store.runTask()
    let result = Task { try await task.runIfNeeded() }
    await script.contexts.wait(for: 1)
    await clock.settle()
    #expect(store.isLoading)
    gate.open()
    await clock.settle()
    #expect(store.currentValue == 1 && !store.isLoading)
    #expect(try await result.value == 1)
  }

  @Test("A run that retries is settled while it sleeps, with its modifiers and child tasks")
  func retry() async {
    let inner = OpenQuery(script: slowScript(), path: ["inner"])
    let script = Script { attempt, context, _ in
      async let first = context.ensure(inner)
      for _ in 0..<100 { await Task.yield() }
      return await (try? first) == 1 && attempt == 3 ? .success(attempt) : .failure(Refused())
    }
    let query = OpenQuery(script: script).retry(limit: 2).backoff(.constant(.seconds(2)))
      .timeout(after: .seconds(60)).rerun(every: .seconds(10))
    let store = client.store(for: query)
    let subscription = store.subscribe { _ in }
    await clock.settle()
    for (attempt, seconds) in [(1, 10), (2, 2), (3, 2)] {
      await clock.advance(by: .seconds(seconds))
      await clock.settle()
      #expect(script.attempts == attempt && store.isLoading == (attempt < 3))
    }
    #expect(store.currentValue == 3)
    subscription.cancel()
  }

  @Test("A run without a store, and a batch, are settled when they have ended")
  func withoutStore() async throws {
    let loader = BatchLoader<Int, Int>(delay: .seconds(1), maxSize: 10) { keys in
      for _ in 0..<100 { await Task.yield() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let ended = EventLog<Int>()
    let query = Query(path: ["batched"]) { context in
      defer { ended.append(1) }
      return try await loader.load(7, in: context)
    }
    let request = query.deduplicated()
    let result = Task { [clock] in try await request.run(in: .timed(by: clock)) }
    await clock.sleepers(atLeast: 1)
    await clock.settle()
    #expect(ended.count == 0)
    await clock.advance(by: .seconds(1))
    await clock.settle()
    #expect(ended.count == 1)
    #expect(try await result.value == 7)
  }

  @Test("Runs that the client starts by itself are settled when they have ended")
  func startedByClient() async throws {
    let script = slowScript()
    let query = OpenQuery(script: script).stale(after: .seconds(1))
    let store = client.store(for: query)
    client.invalidate(matching: ["open"], running: .all)
    await clock.settle()
    #expect(store.currentValue == 1)
    await clock.advance(by: .seconds(2))
    #expect(try await client.ensure(query, whileStale: .revalidates) == 1)
    await clock.settle()
    #expect(store.currentValue == 2)
  }

  /// A storage that yields its thread many times before it returns, and loads nothing before its
  /// gate is open.
  private struct SlowStorage: OperationStorage {
    let memory = MemoryStorage()
    let gate = AsyncGate()

    private func passTime() async { for _ in 0..<100 { await Task.yield() } }

    func load(_ key: String) async throws -> StorageEntry? {
      await gate.wait()
      await passTime()
      return try await memory.load(key)
    }

    func save(_ entries: [String: StorageEntry]) async throws {
      await passTime()
      try await memory.save(entries)
    }

    func remove(_ keys: [String]) async throws { try await memory.remove(keys) }

    func keys(withPrefix prefix: String) async throws -> [String] {
      try await memory.keys(withPrefix: prefix)
    }
  }

  @Test("A client is settled when all possible saves and loads have ended")
  func storage() async {
    let storage = SlowStorage()
    let query = OpenQuery(script: Script()).persisted()
    let writing = OperationClient(defaults: .testing, clock: clock, storage: storage)
    writing.store(for: query).currentValue = 7
    for _ in 0..<2 {
      await clock.settle()
      await clock.advance(by: .seconds(60))
    }
    await clock.settle()
    #expect(storage.memory.entries.count == 1)
    let reading = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = reading.store(for: query.manual())
    #expect(store.isRestoring)
    storage.gate.open()
    await clock.settle()
    #expect(store.currentValue == 7 && !store.isRestoring)
  }

  @Test("A request that settles the clock itself does not wait for itself")
  func fromRequest() async throws {
    let script = Script { [clock] attempt, _, _ in
      await clock.settle()
      await clock.advance(by: .seconds(1))
      return .success(attempt)
    }
    #expect(try await client.fetch(OpenQuery(script: script)) == 1)
  }

  @Test("A wait for a clock that does not settle ends when its task is cancelled")
  func cancelled() async {
    let isOver = Counter()
    let script = Script { attempt, _, _ in
      while isOver.value == 0 { await Task.yield() }
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script))
    let run = Task { try await store.run() }
    await script.contexts.wait(for: 1)
    let settled = Task { [clock] in await clock.settle() }
    settled.cancel()
    await settled.value
    #expect(store.isLoading)
    isOver.increment()
    _ = await run.result
  }
}
