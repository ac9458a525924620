import Operation
import Testing

/// Runs that wait for themselves, directly or through others.
@Suite(.timeLimit(.minutes(5))) struct AwaitedCycleTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  /// A query that ensures the next query of a circle, and counts its calls.
  private struct Link: QueryRequest, Hashable {
    let id: Int
    let length: Int
    let calls: Counter

    var path: OperationPath { ["link", id] }

    static func == (lhs: Self, rhs: Self) -> Bool { lhs.path == rhs.path }
    func hash(into hasher: inout Hasher) { hasher.combine(path) }

    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int {
      calls.increment()
      let next = Link(id: (id + 1) % length, length: length, calls: calls)
      async let value = context.ensure(next.retry(limit: 2))
      return try await value
    }
  }

  private static func paths(_ length: Int) -> [OperationPath] { (0..<length).map { ["link", $0] } }

  @Test("Without a client, queries that ensure each other end with the cycle", arguments: 1...4)
  func withoutClient(length: Int) async {
    let calls = Counter()
    let link = Link(id: 0, length: length, calls: calls)
    await #expect(throws: OperationDependencyError.cycle(Self.paths(length))) {
      try await link.run()
    }
    await #expect(throws: OperationDependencyError.cycle(Self.paths(length))) {
      try await OperationStore.detached(query: link).run()
    }
    await #expect(throws: OperationDependencyError.cycle(Self.paths(length))) {
      try await link.deduplicated().timeout(after: .seconds(60)).run()
    }
    #expect(calls.value == 3 * length)
  }

  @Test("When the client was released, queries that ensure each other end with the cycle")
  func releasedClient() async {
    let calls = Counter()
    var client: OperationClient? = OperationClient(defaults: .testing)
    let store = client?.store(for: Link(id: 0, length: 3, calls: calls))
    client = nil
    await #expect(throws: OperationDependencyError.cycle(Self.paths(3))) { try await store?.run() }
    #expect(calls.value == 3)
  }

  @Test("Without a client, a query may ensure one that has ended, and one twice")
  func noCycle() async throws {
    let leaf = Query<Int, any Error>(path: ["leaf"]) { _ in 1 }
    let middle = Query<Int, any Error>(path: ["middle"]) { try await $0.ensure(leaf) }
    let root = Query<Int, any Error>(path: ["root"]) { context in
      async let first = context.ensure(middle)
      async let second = context.ensure(middle)
      return try await first + second + context.ensure(leaf)
    }
    #expect(try await root.run() == 3)
  }

  /// A store whose request awaits another one in a child task.
  private func store(
    _ path: OperationPath, awaiting other: @escaping @Sendable () async throws -> Int
  ) -> OperationStore<QueryState<Int, any Error>> {
    client.store(
      for: Query<Int, any Error>(path: path) { _ in
        try await withThrowingTaskGroup(of: Int.self) { group in
          group.addTask { try await other() }
          return try await group.next() ?? 0
        }
      })
  }

  /// Removes all stores, because the closures of their requests retain the client.
  private func clear() { client.clearStores(matching: []) }

  private func run(_ path: OperationPath) async throws -> Int {
    let store = client.store(with: path)?.base as? OperationStore<QueryState<Int, any Error>>
    return try await store?.run() ?? 0
  }

  @Test("A request that awaits its own store from a child task ends with the cycle")
  func childTask() async {
    defer { clear() }
    let store = store(["self"]) { try await run(["self"]) }
    await #expect(throws: OperationDependencyError.cycle([["self"]])) { try await store.run() }
    #expect(store.leaseCount == 0)
  }

  @Test("Requests that await each other's stores from child tasks end with the cycle")
  func childTasks() async {
    defer { clear() }
    let paths: [OperationPath] = [["a"], ["b"], ["c"]]
    let stores = paths.indices.map { index in
      store(paths[index]) { try await run(paths[(index + 1) % 3]) }
    }
    await #expect(throws: OperationDependencyError.cycle(paths)) { try await stores[0].run() }
    for store in stores { #expect(store.leaseCount == 0) }
  }

  @Test("A scheduled task that is awaited in the request of its own run ends with the cycle")
  func scheduledTask() async {
    defer { clear() }
    let stores = [["a"], ["b"]].map { (path: OperationPath) in
      store(path) {
        let other = client.store(with: path == ["a"] ? ["b"] : ["a"])?.base
        let store = other as? OperationStore<QueryState<Int, any Error>>
        return try await store?.runTask().runIfNeeded() ?? 0
      }
    }
    await #expect(throws: OperationDependencyError.cycle([["a"], ["b"]])) {
      try await stores[0].run()
    }
  }

  @Test(
    "A run that waits for its own serial scope ends with the cycle, and the scope continues",
    arguments: [true, false])
  func serialScope(isDirect: Bool) async throws {
    let inner = client.store(
      for: Mutation<Int, Int>(path: ["inner"]) { number, _ in number }
        .serialized(in: "scope"))
    let between = store(["between"]) { try await inner.mutate(with: 2) }
    let outer = client.store(
      for: Mutation<Int, Int>(path: ["outer"]) { _, _ in
        isDirect ? try await inner.mutate(with: 1) : try await between.run()
      }.serialized(in: "scope"))
    let paths: [OperationPath] =
      isDirect ? [["inner"], ["outer"]] : [["inner"], ["outer"], ["between"]]
    await #expect(throws: OperationDependencyError.cycle(paths)) { try await outer.mutate(with: 0) }
    #expect(try await inner.mutate(with: 3) == 3)
  }

  @Test("A run that a serialized run starts and does not await is queued in the scope")
  func notAwaited() async throws {
    let inner = client.store(
      for: Mutation<Int, Int>(path: ["inner"]) { number, _ in number }
        .serialized(in: "scope"))
    let observed = store(["observed"]) { try await inner.mutate(with: 2) }
    let (isEnded, gate) = (EventLog<Bool>(), AsyncGate())
    let subscription = observed.subscribe { if case .runEnded = $0 { isEnded.append(true) } }
    await isEnded.wait(for: 1)
    let outer = client.store(
      for: Mutation<Int, Int>(path: ["outer"]) { number, _ in
        observed.invalidate()
        await gate.wait()
        return number
      }.serialized(in: "scope"))
    async let value = outer.mutate(with: 1)
    while inner.leaseCount == 0, isEnded.count == 1 { await Task.yield() }
    gate.open()
    #expect(try await value == 1)
    await isEnded.wait(for: 2)
    #expect(observed.error == nil)
    #expect(observed.currentValue == 2)
    subscription.cancel()
  }

  @Test("A task that a handler starts in a run may await that run")
  func handlerTask() async throws {
    let store = client.store(
      for: Query<Int, any Error>(path: ["yielding"]) { _, continuation in
        continuation.yield(1)
        return 2
      })
    let joined = Monitor<Task<Int, any Error>?>(nil)
    let value = try await store.run { event in
      guard case .yielded = event else { return }
      joined.update { $0 = Task.immediate { try await store.run() } }
    }
    #expect(value == 2)
    #expect(try await joined.value?.value == 2)
  }

  /// Handlers that a request's own task calls.
  enum HandlerPlace: CaseIterable {
    case clientChange, clientEvent, requestEvent, controller, observation, broadcast, network
  }

  private struct CallingController: OperationController {
    let began: @Sendable () -> Void
    let observed: @Sendable () -> Void

    func control(with controls: OperationControls<QueryState<Int, any Error>>)
      -> OperationSubscription
    {
      began()
      return .empty
    }

    func observationBegan(with controls: OperationControls<QueryState<Int, any Error>>) {
      observed()
    }
  }

  @Test(
    "A task of a handler that a request calls may await the request",
    arguments: HandlerPlace.allCases)
  func handlerTask(in place: HandlerPlace) async throws {
    defer { clear() }
    let joined = Monitor<Task<Int, any Error>?>(nil)
    let outer = Monitor<OperationStore<QueryState<Int, any Error>>?>(nil)
    @Sendable func call(in present: HandlerPlace) {
      guard present == place, let store = outer.value, joined.value == nil else { return }
      joined.update { $0 = Task.immediate { try await store.run() } }
    }
    let inner = Query<Int, any Error>(path: ["inner"]) { _ in 1 }
      .controlled(
        by: CallingController(
          began: { call(in: .controller) }, observed: { call(in: .observation) }))
    let (broadcast, network) = (Broadcast<Int>(), ManualNetworkObserver())
    let store = client.store(
      for: Query<Int, any Error>(path: ["outer"]) { [client] _ in
        broadcast.send(1)
        network.set(.disconnected)
        let subscription = client.store(for: inner).subscribe { _ in }
        subscription.cancel()
        return 2
      }.handleEvents { _ in call(in: .requestEvent) })
    let subscriptions = [
      client.subscribe { _ in call(in: .clientChange) },
      client.log(to: CallingLogger { call(in: .clientEvent) }),
      broadcast.subscribe { _ in call(in: .broadcast) },
      network.subscribe { _ in call(in: .network) },
    ]
    outer.update { $0 = store }
    #expect(try await store.run() == 2)
    #expect(try await joined.value?.value == 2)
    outer.update { $0 = nil }
    for subscription in subscriptions { subscription.cancel() }
  }

  private struct CallingLogger: OperationLogger {
    let call: @Sendable () -> Void

    func log(_ event: OperationClientEvent) {
      if case .storeAdded = event.occurrence { call() }
    }
  }

  @Test("A task of a handler of pages may await the run")
  func pageHandlerTask() async throws {
    let joined = Monitor<Task<Int?, any Error>?>(nil)
    let pages = Monitor<OperationStore<PaginatedState<Int, Int, any Error>>?>(nil)
    let store = client.store(
      for: Paginated(path: ["pages"], initialPageId: 1, nextPageId: { _, _ in nil }) { paging, _ in
        paging.pageId
      }.handlePages { event in
        guard case .began = event, let store = pages.value else { return }
        joined.update { $0 = Task.immediate { try await store.fetchNextPage()?.id } }
      })
    pages.update { $0 = store }
    #expect(try await store.fetchNextPage()?.id == 1)
    #expect(try await joined.value?.value == 1)
    pages.update { $0 = nil }
  }

  @Test("Runs that follow invalidations in both directions do not wait for each other")
  func followersOfEachOther() async throws {
    // The reader reads the source in its first run, and the source the reader in its second.
    let (sourceRuns, readerRuns, reads) = (Counter(), Counter(), EventLog<Void>())
    let (sourceGate, readerGate) = (AsyncGate(), AsyncGate())
    let readerQuery = Monitor<(any QueryRequest<Int, QueryState<Int, any Error>>)?>(nil)
    let other = Query<Int, any Error>(path: ["other"]) { _ in 0 }.neverStale()
    let source = Query<Int, any Error>(path: ["source"]) { context in
      guard sourceRuns.increment() == 2, let reader = readerQuery.value else { return 1 }
      _ = context.value(of: reader)
      reads.append(())
      await sourceGate.wait()
      return 1
    }.neverStale()
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      let run = readerRuns.increment()
      if run == 1 { return try await context.ensure(source) }
      if run == 2 {
        // From here on, the edges of the first run do not count.
        _ = try await context.ensure(other)
        reads.append(())
        await readerGate.wait()
      }
      return 2
    }.neverStale()
    readerQuery.update { $0 = reader }
    try await client.fetch(reader)
    let stores = [client.store(for: source), client.store(for: reader)]
    let subscriptions = stores.map { $0.subscribe { _ in } }
    let oldReader = Task { try await stores[1].run() }
    await reads.wait(for: 1)
    let oldSource = Task { try await stores[0].run() }
    await reads.wait(for: 2)
    // The run that follows each of the runs in flight waits for the one that follows the other.
    client.invalidate(source)
    client.invalidate(reader)
    readerGate.open()
    #expect(try await oldReader.value == 2)
    sourceGate.open()
    #expect(try await oldSource.value == 1)
    for store in stores { await store.settles { !$0.isLoading && !$0.isStale } }
    #expect((sourceRuns.value, readerRuns.value) == (3, 3))
    readerQuery.update { $0 = nil }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A run that has ended is not part of a cycle")
  func endedRun() async throws {
    defer { clear() }
    let later = Monitor<Task<Int, any Error>?>(nil)
    let gate = AsyncGate()
    let store = store(["later"]) {
      if later.value == nil {
        later.update {
          $0 = Task {
            await gate.wait()
            return try await run(["later"])
          }
        }
      }
      return 1
    }
    #expect(try await store.run() == 1)
    gate.open()
    #expect(try await later.value?.value == 1)
  }

  @Test("A request that awaits a task behind one that waits for its own run ends with the cycle")
  func scheduled() async throws {
    let awaited = Monitor<OperationTask<Int, any Error>?>(nil)
    let stores = ["first", "second", "third"].map { name in
      client.store(
        for: Query<Int, any Error>(path: [name]) { _ in
          name == "first" ? try await awaited.value?.runIfNeeded() ?? 0 : 1
        })
    }
    let tasks = stores.map { $0.runTask() }
    tasks[1].schedule(after: tasks[0])
    tasks[2].schedule(after: tasks[1])
    awaited.update { $0 = tasks[2] }
    await #expect(throws: OperationDependencyError.self) { try await tasks[0].runIfNeeded() }
    for task in tasks { task.cancel() }
    awaited.update { $0 = nil }
  }
}
