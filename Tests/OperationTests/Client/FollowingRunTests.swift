import Synchronization
import Testing

@testable import Operation

@Suite("Runs that follow", .timeLimit(.minutes(1))) struct FollowingRunTests {
  private typealias Number = Query<Int, any Error>

  private func rest() async {
    for _ in 0..<2_000 { await Task.yield() }
  }

  @Test("Who asks for a value behind an invalidation gets no older one, however late he goes on")
  func ensureByATaskThatGoesOnLate() async throws {
    let client = OperationClient(defaults: .testing)
    let remote = Remote<Int>()
    let query = remote.query(["source"]).neverStale()
    let source = client.store(for: query)
    source.currentValue = 0
    let subscription = source.subscribe { _ in }
    let old = Task { try await source.run() }
    await remote.wait(forCalls: 1)
    client.invalidate(query)
    let executor = HandExecutor()
    let asked = Task(executorPreference: executor) { try await client.ensure(query) }
    while source.leaseCount < 2 { executor.run() }
    remote.answer(1, to: 0)
    // The answer to the invalidation.
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    await source.settles { $0.currentValue == 2 && !$0.isLoading && !$0.isStale }
    _ = try await old.value
    let isDone = Monitor(false)
    let end = Task {
      let value = try await asked.value
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

  @Test("Nor where a value is set behind the run that was older")
  func ensureWhereAPushComesBehindAnOldRun() async throws {
    let client = OperationClient(defaults: .testing)
    let remote = Remote<Int>()
    let source = client.store(for: remote.query(["source"]).neverStale())
    source.currentValue = 1
    let readerQuery = Number(path: ["reader"]) {
      try await $0.ensure(remote.query(["source"]).neverStale())
    }.neverStale()
    let reader = client.store(for: readerQuery)
    try await reader.run()
    let old = Task {
      try await source.run { event in
        // The server tells of the change at this very moment.
        if case .runEnded = event { source.currentValue = 3 }
      }
    }
    await remote.wait(forCalls: 1)
    client.invalidate(matching: ["source"])
    let run = Task { try await reader.run() }
    await source.settles { $0.leaseCount == 2 }
    remote.answer(2)
    #expect(try await run.value == 3)
    #expect(source.currentValue == 3 && !source.isStale)
    #expect(reader.currentValue == 3 || reader.isStale)
    _ = try await old.value
  }

  @Test("Nor where several older runs end one after the other")
  func ensureOfARequestThatSharesNoRuns() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, isDeduplicated: false, runsAutomatically: true))
    let remote = Remote<Int>()
    let source = client.store(for: remote.query(["source"]).neverStale())
    source.currentValue = 1
    let readerQuery = Number(path: ["reader"]) {
      try await $0.ensure(remote.query(["source"]).neverStale())
    }.neverStale()
    let reader = client.store(for: readerQuery)
    try await reader.run()
    let old = (0..<2).map { _ in Task { try await source.run() } }
    await remote.wait(forCalls: 2)
    client.invalidate(matching: ["source"])
    #expect(source.isStale && reader.isStale)
    let run = Task { try await reader.run() }
    await source.settles { $0.leaseCount == 3 }
    remote.answer(10, to: 0)
    _ = try? await old[0].value
    await rest()
    remote.answer(11, to: 1)
    _ = try await old[1].value
    await rest()
    if remote.callCount > 2 { remote.answer(12, to: 2) }
    await rest()
    if remote.callCount > 2 { #expect(try await run.value == 12) }
    #expect(source.isStale == reader.isStale)
    #expect(reader.currentValue == 12)
    run.cancel()
  }

  @Test("A reader under way comes after what its last run has read and it has not read yet")
  func readerUnderWayFollowsWhatItHasNotReadYet() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let server = Monitor(1)
    let forecastGate = Monitor<AsyncGate?>(nil)
    let readerGate = Monitor<AsyncGate?>(nil)
    let began = EventLog<Int>()
    let home = Number(path: ["home"]) { _ in 1 }.neverStale()
    let forecast = Number(path: ["forecast"]) { _ in
      let value = server.value
      await forecastGate.value?.wait()
      return value
    }.neverStale()
    let greeting = Number(path: ["greeting"]) { context in
      let home = try await context.ensure(home)
      began.append(0)
      await readerGate.value?.wait()
      return home * 100 + (context.value(of: forecast) ?? 0)
    }.neverStale()
    try await client.fetch(forecast)
    try await client.fetch(greeting)
    let (source, reader) = (client.store(for: forecast), client.store(for: greeting))
    let subscriptions = [source.subscribe { _ in }, reader.subscribe { _ in }]
    #expect(reader.currentValue == 101)
    let closed = AsyncGate()
    readerGate.update { $0 = closed }
    let refetch = Task { try await reader.run() }
    await began.wait(for: 2)
    server.update { $0 = 2 }
    let slow = AsyncGate()
    forecastGate.update { $0 = slow }
    client.invalidate(forecast)
    #expect(source.isLoading && reader.isStale)
    readerGate.update { $0 = nil }
    closed.open()
    _ = try await refetch.value
    await rest()
    slow.open()
    await source.settles { !$0.isLoading && $0.currentValue == 2 }
    await reader.settles { !$0.isLoading }
    #expect(reader.currentValue == 102)
    #expect(!reader.isStale)
    withExtendedLifetime(subscriptions) {}
  }

  @Test("A run in another context does not stand for the one that comes after what is read")
  func observedReaderWithAnotherRunInAnotherContext() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let server = Monitor(1)
    let gate = Monitor<AsyncGate?>(nil)
    let readerGate = Monitor<AsyncGate?>(nil)
    let began = EventLog<Int>()
    let sourceQuery = Number(path: ["source"]) { _ in
      let value = server.value
      await gate.value?.wait()
      return value
    }.neverStale()
    let readerQuery = Number(path: ["reader"]) { context in
      let value = context.value(of: sourceQuery) ?? 0
      if began.append(0) == 2 { await readerGate.value?.wait() }
      return value
    }.neverStale()
    try await client.fetch(sourceQuery)
    try await client.fetch(readerQuery)
    let (source, reader) = (client.store(for: sourceQuery), client.store(for: readerQuery))
    let subscriptions = [source.subscribe { _ in }, reader.subscribe { _ in }]
    let closed = AsyncGate()
    readerGate.update { $0 = closed }
    let old = Task { try await reader.run() }
    await began.wait(for: 2)
    server.update { $0 = 2 }
    let slow = AsyncGate()
    gate.update { $0 = slow }
    client.invalidate(sourceQuery)
    // Another one, which does not join the old one.
    #expect(try await reader.run(using: .number(7)) == 1)
    closed.open()
    _ = try await old.value
    await rest()
    slow.open()
    await source.settles { !$0.isLoading && $0.currentValue == 2 }
    await reader.settles { !$0.isLoading }
    #expect(reader.currentValue == 2 || reader.isStale)
    withExtendedLifetime(subscriptions) {}
  }

  @Test(
    "What a run was to come after is let go of by a cancellation and a reset",
    arguments: [false, true])
  func whatARunWasToComeAfterIsLetGo(isReset: Bool) async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let (sourceGate, readerGate) = (Monitor<AsyncGate?>(nil), Monitor<AsyncGate?>(nil))
    let (sourceCalls, readerCalls) = (EventLog<Int>(), EventLog<Int>())
    let sourceQuery = Number(path: ["source"]) { _ in
      sourceCalls.append(0)
      await sourceGate.value?.wait()
      return 1
    }
    let readerQuery = Number(path: ["reader"]) { context in
      let value = context.value(of: Number(path: ["source"]) { _ in 1 }) ?? 0
      readerCalls.append(0)
      await readerGate.value?.wait()
      return value
    }
    let reader = client.store(for: readerQuery.neverStale())
    weak var weakSource: OperationStore<QueryState<Int, any Error>>?
    let readerSubscription = reader.subscribe { _ in }
    do {
      let source = client.store(for: sourceQuery.neverStale())
      weakSource = source
      try await source.run()
      try await reader.run()
      let subscription = source.subscribe { _ in }
      let (slow, closed) = (AsyncGate(), AsyncGate())
      sourceGate.update { $0 = slow }
      readerGate.update { $0 = closed }
      let before = (sourceCalls.count, readerCalls.count)
      let runs = (Task { try? await source.run() }, Task { try? await reader.run() })
      await sourceCalls.wait(for: before.0 + 1)
      await readerCalls.wait(for: before.1 + 1)
      source.invalidate()
      if isReset { reader.resetState() } else { reader.cancel() }
      sourceGate.update { $0 = nil }
      readerGate.update { $0 = nil }
      slow.open()
      closed.open()
      _ = await runs.0.value
      _ = await runs.1.value
      await source.settles { !$0.isLoading }
      subscription.cancel()
    }
    client.clearStore(with: ["source"])
    await rest()
    #expect(weakSource == nil)
    #expect(reader.read { $0.followsAfter.isEmpty })
    readerSubscription.cancel()
  }

  @Test("A refetch of some pages keeps what the others have read")
  func refetchOfSomePagesKeepsWhatOthersHaveRead() async throws {
    let client = OperationClient(defaults: .quiet(), clock: ManualClock())
    let region = Number(path: ["region"]) { _ in 1 }.neverStale()
    let list = Paginated<Int, Int>(
      path: ["list"], initialPageId: 0, nextPageId: { page, _ in page.id < 1 ? page.id + 1 : nil }
    ) { paging, context in
      paging.pageId == 0 ? 0 : try await context.ensure(region)
    }.refetching(.firstPage).neverStale()
    let store = client.store(for: list)
    try await store.fetch()
    try await store.fetchNextPage()
    try await store.fetch()
    #expect(store.currentValue.map(\.value) == [0, 1])
    client.invalidate(region)
    #expect(store.isStale)
  }

  @Test("A yield in exclusive access leaves the confirmed edits to the owner")
  func yieldInExclusiveAccessKeepsConfirmedEdit() async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    await store.optimistically {
      $0? += 100
    } while: {
    }
    #expect(store.currentValue == 101)
    let seen = store.withExclusiveAccess {
      remote.yield(10)
      let seen = store.currentValue
      store.currentValue? += 1
      return seen
    }
    #expect(seen == 110)
    #expect(store.currentValue == 111)
    run.cancel()
    _ = try? await run.value
  }

  @Test("So does an edit that is confirmed there")
  func editInExclusiveAccess() async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    store.currentValue = 1
    let seen = store.withExclusiveAccess {
      Task.immediate {
        await store.optimistically {
          $0? += 100
        } while: {
        }
      }
      let seen = store.currentValue
      store.currentValue? += 1
      return seen
    }
    #expect(seen == 101)
    #expect(store.currentValue == 102)
  }
}
