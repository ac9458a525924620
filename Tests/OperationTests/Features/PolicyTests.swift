import Operation
import Testing

@Suite struct PolicyTests {
  private let clock = ManualClock()
  private let script = Script()

  private func client() -> OperationClient { OperationClient(defaults: .testing, clock: clock) }

  @Test("A stale value is returned at once, and is fetched again in the background")
  func revalidates() async throws {
    let client = client()
    let request = OpenQuery(script: script).stale(after: .seconds(10))
    #expect(try await client.ensure(request, whileStale: .revalidates) == 1)
    #expect(try await client.ensure(request, whileStale: .revalidates) == 1)
    await clock.advance(by: .seconds(11))
    #expect(try await client.ensure(request, whileStale: .revalidates) == 1)
    await clock.settle()
    #expect(try await client.ensure(request, whileStale: .revalidates) == 2)
    #expect(script.attempts == 2)
  }

  @Test("Stale pages are returned at once as well") func revalidatesPages() async throws {
    let client = client()
    let count = EventLog<Int>()
    let pages = Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in count.append(0) }
    #expect(try await client.ensure(pages).map(\.value) == [1])
    client.invalidate(pages)
    #expect(try await client.ensure(pages, whileStale: .revalidates).map(\.value) == [1])
    await count.wait(for: 2)
  }

  @Test(
    "An invalidation runs the observed stores, none, or all",
    arguments: [
      (InvalidatedStores.observed, [2, 1]), (.nothing, [1, 1]), (.all, [2, 2]),
    ])
  func running(_ running: InvalidatedStores, expected: [Int]) async throws {
    let client = client()
    let scripts = [Script(), Script()]
    let stores = scripts.indices.map { index in
      client.store(for: OpenQuery(script: scripts[index], path: ["some", index]).neverStale())
    }
    for store in stores { try await store.fetch() }
    let subscription = stores[0].subscribe { _ in }
    client.invalidate(matching: ["some"], running: running)
    for (script, count) in zip(scripts, expected) { await script.contexts.wait(for: count) }
    while stores.contains(where: \.isLoading) { await Task.yield() }
    #expect(scripts.map(\.attempts) == expected)
    #expect(stores.map(\.isStale) == expected.map { $0 == 1 })
    subscription.cancel()
  }

  @Test("A restart cancels the request in flight, and all callers get the value of the new one")
  func restarting() async throws {
    let client = client()
    let (gate, secondGate) = (AsyncGate(), AsyncGate())
    let cancelled = EventLog<Bool>()
    let script = Script { attempt, _, yield in
      if attempt > 1 {
        await secondGate.wait()
        return .success(attempt)
      }
      yield(.success(-1))
      await gate.wait()
      cancelled.append(Task.isCancelled)
      yield(.success(-2))
      return .success(0)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    while store.currentValue != -1 { await Task.yield() }
    let second = Task { try await store.fetch(restarting: true) }
    await script.contexts.wait(for: 2)
    #expect(store.currentValue == nil)
    // The old request ends while the new one is in flight.
    gate.open()
    await cancelled.wait(for: 1)
    #expect(cancelled.values == [true])
    for _ in 0..<100 { await Task.yield() }
    #expect(store.currentValue == nil)
    #expect(store.isLoading)
    secondGate.open()
    #expect(try await second.value == 2)
    #expect(try await first.value == 2)
    #expect(store.currentValue == 2)
    #expect(store.leaseCount == 0)
    #expect(!store.isLoading)
  }

  @Test("A restarted run keeps its place in its queue, and is removed once") func serialized()
    async throws
  {
    let client = client()
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      if attempt == 1 { await gate.wait() }
      return .success(attempt)
    }
    let request = OpenQuery(script: script).deduplicated().serialized(in: "queue")
    let store = client.store(for: request)
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let other = client.store(
      for: OpenQuery(script: Script(), path: ["other"]).serialized(in: "queue"))
    let second = Task { try await other.fetch() }
    while other.leaseCount == 0 { await Task.yield() }
    #expect(try await client.fetch(request, restarting: true) == 2)
    gate.open()
    #expect(try await first.value == 2)
    #expect(try await second.value == 1)
    #expect(try await other.fetch() == 2)
  }

  @Test("A restarted request has the priority of the highest caller that has joined its run")
  func restartedPriority() async {
    let client = client()
    _ = client.statistics
    let (gate, isHigh) = (AsyncGate(), EventLog<Bool>())
    let script = Script { attempt, _, _ in
      if attempt > 1 { isHigh.append(await eventually { Task.currentPriority == .high }) }
      await gate.wait()
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated())
    let first = Task.detached(priority: .low) { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let second = Task.detached(priority: .high) { try await store.fetch() }
    while client.statistics.total.joins < 1 { await Task.yield() }
    let third = Task.detached(priority: .low) { try await store.fetch(restarting: true) }
    await isHigh.wait(for: 1)
    #expect(isHigh.values == [true])
    gate.open()
    _ = await (first.result, second.result, third.result)
  }

  @Test("The result of an earlier launch does not end a cancelled run")
  func staleEnd() async throws {
    let (gates, script) = gatedScript()
    let store = client().store(for: TypedQuery(script: script).deduplicated())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let second = Task { try await store.fetch(restarting: true) }
    await script.contexts.wait(for: 2)
    store.cancel()
    gates[0].open()
    await clock.settle()
    gates[1].open()
    #expect(try await first.value == 2)
    #expect(try await second.value == 2)
  }

  /// A script whose attempts each wait at a gate, and ignore cancellation.
  private func gatedScript() -> ([AsyncGate], Script) {
    let gates = [AsyncGate(), AsyncGate()]
    let script = Script { attempt, _, _ in
      await gates[attempt - 1].wait()
      return .success(attempt)
    }
    return (gates, script)
  }

  @Test("A restarted run that is cancelled ends once, and keeps its place in the queue until then")
  func stalePlace() async throws {
    let client = client()
    _ = client.statistics
    let (gates, script) = gatedScript()
    let request = OpenQuery(script: script).deduplicated().serialized(in: "queue")
    let store = client.store(for: request)
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let second = Task { try await store.fetch(restarting: true) }
    await script.contexts.wait(for: 2)
    let other = Script()
    let otherStore = client.store(
      for: OpenQuery(script: other, path: ["other"]).serialized(in: "queue"))
    let third = Task { try await otherStore.fetch() }
    await otherStore.settles { $0.leaseCount == 1 }
    store.cancel()
    _ = await (first.result, second.result)
    gates[0].open()
    await clock.settle()
    #expect(other.attempts == 0)
    #expect(client.statistics.total.cancellations == 0)
    gates[1].open()
    #expect(try await third.value == 1)
    #expect(client.statistics.total.cancellations == 1)
  }

  @Test("An invalidation that runs nothing marks the readers of a value, and does not run them")
  func runningNothing() async throws {
    let client = client()
    let (source, reader) = (Script(), Script())
    let query = OpenQuery(script: source, path: ["source"]).neverStale()
    let reading = Query(path: ["reader"]) { [reader] context in
      _ = await reader.run(in: context) { _ in }
      return try await context.ensure(query)
    }.neverStale()
    let stores = [client.store(for: query), client.store(for: reading)]
    for store in stores { try await store.fetch() }
    let subscriptions = stores.map { $0.subscribe { _ in } }
    client.invalidate(matching: ["source"], running: .nothing)
    #expect(stores.map(\.isStale) == [true, true])
    #expect(stores.map(\.isLoading) == [false, false])
    #expect([source.attempts, reader.attempts] == [1, 1])
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A request that restarts its own run gets the cycle error") func restartingItself() async {
    let attempts = EventLog<Int>()
    let request = Query(path: ["own"]) { context -> Int in
      attempts.append(0)
      guard let store = context.operationClient?.store(with: ["own"])?.base,
        let own = store as? OperationStore<QueryState<Int, any Error>>
      else { return 0 }
      return try await own.fetch(restarting: true)
    }
    let client = client()
    let store = client.store(for: request.deduplicated())
    await #expect(throws: OperationDependencyError.self) { try await store.fetch() }
    #expect(attempts.count == 1)
  }

  @Test("A restart without a run in flight starts one") func restartingNothing() async throws {
    let store = client().store(for: OpenQuery(script: script))
    #expect(try await store.fetch(restarting: true) == 1)
  }

  @Test("With random restarts, cancellations and resets, every caller returns and no lease remains")
  func restartingRandomly() async throws {
    for _ in 0..<200 {
      let client = client()
      let request = Query(path: ["random"]) { _ in
        await Task.yield()
        return 1
      }.deduplicated()
      let store = client.store(for: request)
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<8 {
          group.addTask {
            switch index % 4 {
            case 0: store.cancel()
            case 1: store.resetState()
            default: _ = try? await store.fetch(restarting: index > 3)
            }
          }
        }
      }
      #expect(store.leaseCount == 0)
      while store.isLoading { await Task.yield() }
      #expect(try await store.fetch() == 1)
    }
  }

  @Test("A number of pages below one is reported, and one is used", arguments: [0, -4])
  func prefetchBadCount(count: Int) async {
    let client = client()
    let pages = Paginated(path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 })
    {
      paging, _ in paging.pageId
    }
    let (reported, _) = await issues { await client.prefetch(pages, pages: count) }
    #expect(reported.map(\.kind) == [.invalidValue])
    #expect(client.store(for: pages).currentValue.count == 1)
  }

  @Test(
    "A prefetch fetches the requested number of pages, or all if there are fewer",
    arguments: [
      (1, 1), (2, 2), (9, 3),
    ])
  func prefetchPages(count: Int, expected: Int) async {
    let client = client()
    let pages = Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id < 2 ? page.id + 1 : nil }
    ) { paging, _ in paging.pageId }
    await client.prefetch(pages, pages: count)
    #expect(client.store(for: pages).currentValue.count == expected)
  }

  @Test(
    "A prefetch fetches no further page than requested when the list does not grow",
    arguments: [true, false])
  func prefetchOfShortList(isLimited: Bool) async {
    let client = client()
    let fetches = Counter()
    let pages = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in isLimited ? page.id + 1 : 1 }
    ) { paging, _ in
      fetches.increment()
      if fetches.value > 10 { throw Refused() }
      return paging.pageId
    }
    await client.prefetch(pages.maxPages(isLimited ? 2 : 9), pages: 5)
    #expect(fetches.value == 5)
    #expect(client.store(for: pages).currentValue.count == 2)
  }

  @Test("A prefetch of pages ends with the first page that fails")
  func prefetchFailure() async {
    let client = client()
    let fetches = Counter()
    let pages = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, _ in
      fetches.increment()
      if paging.pageId == 1 { throw Refused() }
      return paging.pageId
    }
    await client.prefetch(pages, pages: 5)
    #expect(fetches.value == 2)
    #expect(client.store(for: pages).currentValue.map(\.id) == [0])
  }
}
