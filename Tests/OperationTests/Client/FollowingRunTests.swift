import Testing

@testable import Operation

/// Runs that follow an invalidation, and the callers that wait for them.
@Suite("Runs that follow others", .timeLimit(.minutes(5))) struct FollowingRunTests {
  private typealias Number = Query<Int, any Error>
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let server = Monitor(1)
  private let sourceGate = Monitor<AsyncGate?>(nil)
  private let readerGate = Monitor<AsyncGate?>(nil)
  private let sourceRuns = EventLog<Void>()
  private let readerRuns = EventLog<Void>()

  /// Returns the value that the server had when the run began, once the gate is open.
  private var source: some QueryRequest<Int, QueryState<Int, any Error>> {
    Number(path: ["source"]) { [server, sourceGate, sourceRuns] _ in
      let value = server.value
      sourceRuns.append(())
      await sourceGate.value?.wait()
      return value
    }.neverStale()
  }

  /// Closes a gate. The returned closure opens it for current and later waiters.
  private func close(_ gate: Monitor<AsyncGate?>) -> () -> Void {
    let closed = AsyncGate()
    gate.update { $0 = closed }
    return {
      gate.update { $0 = nil }
      closed.open()
    }
  }

  /// Yields often enough for pending work to continue.
  private func rest() async {
    for _ in 0..<2_000 { await Task.yield() }
  }

  /// Returns the stores of a remote value, which is 1, and of a request that reads it.
  private func stores(
    of remote: Remote<Int>, in client: OperationClient
  ) async throws -> (source: Store, reader: Store) {
    let query = remote.query(["source"]).neverStale()
    let source = client.store(for: query)
    source.currentValue = 1
    let reader = client.store(
      for: Number(path: ["reader"]) { try await $0.ensure(query) }.neverStale())
    try await reader.run()
    return (source, reader)
  }

  @Test("A call after an invalidation returns no older value, however late it resumes")
  func lateCaller() async throws {
    let remote = Remote<Int>()
    let query = remote.query(["source"]).neverStale()
    let source = client.store(for: query)
    source.currentValue = 0
    let subscription = source.subscribe { _ in }
    let old = Task { try await source.run() }
    await remote.wait(forCalls: 1)
    client.invalidate(query)
    let executor = HandExecutor()
    let ensured = Task(executorPreference: executor) { [client] in try await client.ensure(query) }
    while source.leaseCount < 2 { executor.run() }
    remote.answer(1, to: 0)
    // If the older run ended last, its value would be the present one, and be replaced by another run.
    _ = try await old.value
    // The answer to the invalidation.
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    await source.settles { $0.currentValue == 2 && !$0.isLoading && !$0.isStale }
    let isDone = Monitor(false)
    let end = Task {
      let value = try await ensured.value
      isDone.update { $0 = true }
      return value
    }
    while !isDone.value {
      executor.run()
      await Task.yield()
    }
    #expect(try await end.value == 2)
    subscription.cancel()
  }

  @Test("A call after an invalidation awaits a run of its own, whatever the older run ends with")
  func valueSetBehindOldRun() async throws {
    let remote = Remote<Int>()
    let (source, reader) = try await stores(of: remote, in: client)
    let old = Task {
      try await source.run { event in
        // The server reports the change at this moment.
        if case .runEnded = event { source.currentValue = 3 }
      }
    }
    await remote.wait(forCalls: 1)
    client.invalidate(matching: ["source"])
    let run = Task { try await reader.run() }
    await source.settles { $0.leaseCount == 2 }
    remote.answer(2)
    _ = try await old.value
    #expect(source.currentValue == 3 && !source.isStale)
    await remote.wait(forCalls: 2)
    remote.answer(4, to: 1)
    #expect(try await run.value == 4)
    #expect(reader.currentValue == 4 && !reader.isStale)
  }

  @Test("A call after an invalidation returns no older value, even if several older runs end")
  func severalOldRuns() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, isDeduplicated: false, runsAutomatically: true))
    let remote = Remote<Int>()
    let (source, reader) = try await stores(of: remote, in: client)
    var old: [Task<Int, any Error>] = []
    for count in 1...2 {
      old.append(Task { try await source.run() })
      await remote.wait(forCalls: count)
    }
    client.invalidate(matching: ["source"])
    let run = Task { try await reader.run() }
    await source.settles { $0.leaseCount == 3 }
    for (index, run) in old.enumerated() {
      remote.answer(10 + index, to: index)
      _ = try await run.value
      await rest()
    }
    await remote.wait(forCalls: 3)
    remote.answer(12, to: 2)
    #expect(try await run.value == 12)
    #expect(reader.currentValue == 12 && !reader.isStale && !source.isStale)
  }

  @Test("A value that is replaced while it is checked is not returned", arguments: [false, true])
  func replacedWhileChecked(isForRun: Bool) async throws {
    let store = client.store(for: source)
    store.currentValue = 1
    store.invalidate()
    // Another thread could write at any time.
    let value = try await store.ensure(isForRun: isForRun) { value in
      if value == 1 { store.currentValue = 2 }
      return value
    } fetched: {
      $0
    }
    #expect(value == 2)
  }

  @Test("A value that its staleness rule replaces is not returned")
  func replacedByRule() async throws {
    let stores = Monitor<Store?>(nil)
    let query = Number(path: ["checked"]) { _ in 9 }.staleWhen { state, _ in
      // Another thread could write at any time.
      if state.currentValue == 1 { stores.value?.currentValue = 2 }
      return false
    }
    let store = client.store(for: query)
    store.currentValue = 1
    stores.update { $0 = store }
    #expect(try await client.ensure(query) == 2)
    stores.update { $0 = nil }
  }

  @Test(
    "The run that follows a reader in flight waits for a source that only the last run has read")
  func partlyReadSources() async throws {
    let home = Number(path: ["home"]) { _ in 1 }.neverStale()
    let greeting = Number(path: ["greeting"]) { [source, readerGate, readerRuns] context in
      let home = try await context.ensure(home)
      readerRuns.append(())
      await readerGate.value?.wait()
      return home * 100 + (context.value(of: source) ?? 0)
    }.neverStale()
    try await client.fetch(source)
    try await client.fetch(greeting)
    let (sourceStore, reader) = (client.store(for: source), client.store(for: greeting))
    let subscriptions = [sourceStore.subscribe { _ in }, reader.subscribe { _ in }]
    #expect(reader.currentValue == 101)
    let openReader = close(readerGate)
    let refetch = Task { try await reader.run() }
    await readerRuns.wait(for: 2)
    server.update { $0 = 2 }
    let openSource = close(sourceGate)
    client.invalidate(source)
    #expect(sourceStore.isLoading && reader.isStale)
    openReader()
    _ = try await refetch.value
    await rest()
    openSource()
    await reader.settles { !$0.isLoading && !$0.isStale }
    #expect(reader.currentValue == 102)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A run in another context does not replace the one that follows the dependencies")
  func runInAnotherContext() async throws {
    let query = Number(path: ["reader"]) { [source, readerGate, readerRuns] context in
      let value = context.value(of: source) ?? 0
      readerRuns.append(())
      if context.fixtureNumber == 0 { await readerGate.value?.wait() }
      return value
    }.neverStale()
    try await client.fetch(source)
    try await client.fetch(query)
    let (sourceStore, reader) = (client.store(for: source), client.store(for: query))
    let subscriptions = [sourceStore.subscribe { _ in }, reader.subscribe { _ in }]
    let openReader = close(readerGate)
    let old = Task { try await reader.run() }
    await readerRuns.wait(for: 2)
    server.update { $0 = 2 }
    let openSource = close(sourceGate)
    client.invalidate(source)
    // Another run, which does not join the old one.
    #expect(try await reader.run(using: .number(7)) == 1)
    #expect(reader.isStale)
    openReader()
    _ = try await old.value
    await rest()
    openSource()
    await reader.settles { !$0.isLoading && !$0.isStale }
    #expect(reader.currentValue == 2)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A run that awaits a reader which waits for it gets an error")
  func reversedEdges() async throws {
    let isReversed = Monitor(false)
    let errors = EventLog<any Error>()
    let readerQuery = Monitor<(any QueryRequest<Int, QueryState<Int, any Error>>)?>(nil)
    let source = Number(path: ["source"]) { [sourceGate, sourceRuns] context in
      sourceRuns.append(())
      // A run that began before the invalidation.
      await sourceGate.value?.wait()
      guard isReversed.value, let reader = readerQuery.value else { return 1 }
      do {
        return try await context.ensure(reader)
      } catch {
        errors.append(error)
        throw error
      }
    }.neverStale()
    let query = Number(path: ["reader"]) { [readerGate, readerRuns] context in
      readerRuns.append(())
      if isReversed.value {
        await readerGate.value?.wait()
        return 2
      }
      return try await context.ensure(source)
    }.neverStale()
    readerQuery.update { $0 = query }
    try await client.fetch(query)
    let (sourceStore, reader) = (client.store(for: source), client.store(for: query))
    let subscriptions = [sourceStore.subscribe { _ in }, reader.subscribe { _ in }]
    let (openSource, openReader) = (close(sourceGate), close(readerGate))
    let oldSource = Task { try? await sourceStore.run() }
    await sourceRuns.wait(for: 2)
    isReversed.update { $0 = true }
    let oldReader = Task { try? await reader.run() }
    await readerRuns.wait(for: 2)
    // Both runs are in flight, and each is followed by one. The second run of the reader waits for the
    // second run of the source.
    client.invalidate(source)
    openReader()
    _ = await oldReader.value
    await rest()
    openSource()
    _ = await oldSource.value
    await sourceStore.settles { !$0.isLoading }
    await reader.settles { !$0.isLoading }
    #expect(errors.values.contains { $0 is OperationDependencyError })
    readerQuery.update { $0 = nil }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A reader that no longer waits can be awaited by its former dependency")
  func reversedEdgesInFlight() async throws {
    let phase = Monitor(0)
    let (sourceGate, readerGate) = (AsyncGate(), AsyncGate())
    let readerQuery = Monitor<(any QueryRequest<Int, QueryState<Int, any Error>>)?>(nil)
    let other = Number(path: ["other"]) { _ in 7 }.neverStale()
    let source = Number(path: ["source"]) { [sourceRuns] context in
      sourceRuns.append(())
      switch phase.value {
      case 0: return 1
      case 1:
        await sourceGate.wait()
        return 1
      case 2: throw Refused()
      default:
        guard let reader = readerQuery.value else { return 0 }
        return try await context.ensure(reader)
      }
    }.neverStale()
    let query = Number(path: ["reader"]) { [readerRuns] context in
      if phase.value == 0 { return try await context.ensure(source) }
      _ = try await context.ensure(other)
      readerRuns.append(())
      await readerGate.wait()
      return 2
    }.neverStale()
    readerQuery.update { $0 = query }
    try await client.fetch(query)
    let (sourceStore, reader) = (client.store(for: source), client.store(for: query))
    let subscriptions = [sourceStore.subscribe { _ in }, reader.subscribe { _ in }]
    phase.update { $0 = 1 }
    let old = Task { try? await sourceStore.run() }
    await sourceRuns.wait(for: 2)
    client.invalidate(source)
    phase.update { $0 = 2 }
    sourceGate.open()
    _ = await old.value
    // The answer has failed. The reader continues, and no longer reads the source.
    await readerRuns.wait(for: 1)
    #expect(!sourceStore.isLoading && sourceStore.isStale)
    phase.update { $0 = 3 }
    let refetch = Task { try await sourceStore.run() }
    await reader.settles { $0.leaseCount == 2 }
    readerGate.open()
    #expect(try await refetch.value == 2)
    readerQuery.update { $0 = nil }
    for subscription in subscriptions { subscription.cancel() }
  }

  enum Way: CaseIterable {
    case cancelAll, cancelRun, reset
  }

  @Test("The dependencies of a run are released if none follows", arguments: Way.allCases)
  func releasedDependencies(way: Way) async throws {
    // The reader of the source must not retain its store.
    let query = Number(path: ["reader"]) { [source, readerGate, readerRuns] context in
      let value = context.value(of: source) ?? 0
      readerRuns.append(())
      await readerGate.value?.wait()
      return value
    }.neverStale()
    let reader = client.store(for: query)
    weak var weakSource: Store?
    let readerSubscription = reader.subscribe { _ in }
    await reader.settles { $0.currentValue == 0 && !$0.isLoading }
    do {
      let sourceStore = client.store(for: source)
      weakSource = sourceStore
      try await sourceStore.run()
      try await reader.run()
      let subscription = sourceStore.subscribe { _ in }
      let (openSource, openReader) = (close(sourceGate), close(readerGate))
      let (begunSources, begunReaders) = (sourceRuns.count, readerRuns.count)
      let runs = [Task { try? await sourceStore.run() }, Task { try? await reader.run() }]
      await sourceRuns.wait(for: begunSources + 1)
      await readerRuns.wait(for: begunReaders + 1)
      sourceStore.invalidate()
      #expect(!reader.read { $0.freshness.followUpDependencies.isEmpty })
      switch way {
      case .cancelAll: reader.cancel()
      case .cancelRun: for task in reader.activeTasks { task.cancel() }
      case .reset: reader.resetState()
      }
      openSource()
      openReader()
      for run in runs { _ = await run.value }
      await sourceStore.settles { !$0.isLoading }
      subscription.cancel()
    }
    client.clearStore(with: ["source"])
    #expect(await eventually { weakSource == nil })
    #expect(reader.read { $0.freshness.followUpDependencies.isEmpty })
    readerSubscription.cancel()
  }

  @Test("A restarted run that was the answer is followed when its callers are cancelled")
  func restartedAnswer() async {
    let remote = Remote<Int>(ignoresCancellation: true)
    let store = client.store(for: remote.query().deduplicated())
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    store.invalidate()
    let first = Task { try await store.fetch() }
    await remote.wait(forCalls: 2)
    remote.answer(1, to: 0)
    await store.settles { $0.currentValue == 1 }
    let second = Task { try await store.fetch(restarting: true) }
    await remote.wait(forCalls: 3)
    for caller in [first, second] { caller.cancel() }
    #expect(await eventually { remote.callCount == 4 })
    subscription.cancel()
  }
}
