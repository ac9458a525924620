import Testing

@testable import Operation

/// Requests that call the stores of their client from within their run.
@Suite("Faults: requests that call back", .timeLimit(.minutes(5))) struct CallingBackTests {
  private let place = Neighbourhood()

  /// A store whose request calls `body` with the store itself in its first run.
  private func store(
    _ path: OperationPath = ["faulty"],
    _ body: @escaping @Sendable (Neighbourhood.Store) async throws -> Int
  ) -> Neighbourhood.Store {
    let calls = Counter()
    return place.client.store(
      for: Query<Int, any Error>(path: path) { context in
        calls.increment()
        let store = context.operationClient?.store(with: path)?.base
        guard calls.value == 1, let store = store as? Neighbourhood.Store else {
          return 100 + calls.value
        }
        return try await body(store)
      })
  }

  @Test("A request may read and write its own store, which displays its writes and then its result")
  func readsAndWrites() async throws {
    let store = store { store in
      #expect(store.isLoading)
      #expect(store.leaseCount == 1)
      store.currentValue = 1
      store.withExclusiveAccess { store.currentValue = (store.currentValue ?? 0) + 1 }
      store.setResult(to: .failure(Failed()))
      #expect(store.currentValue == 2)
      let subscription = store.subscribe { _ in }
      subscription.cancel()
      return 3
    }
    #expect(try await store.run() == 3)
    #expect(store.currentValue == 3)
    #expect(store.valueUpdateCount == 3)
    #expect(store.errorUpdateCount == 1)
    #expect(store.status.isSuccess)
    await place.expectPeace(in: store)
  }

  @Test("A request that runs its own store and awaits it gets a failure that names the path")
  func awaitsItself() async throws {
    let store = store { try await $0.run() }
    let error = await #expect(throws: OperationDependencyError.self) { try await store.run() }
    #expect(error == .cycle([["faulty"]]))
    #expect(store.error as? OperationDependencyError == .cycle([["faulty"]]))
    #expect(store.status.isFailure)
    await place.expectPeace(in: store)
    #expect(try await store.run() == 102)
  }

  @Test("A request that awaits itself under a timeout or by a task gets the failure at once")
  func awaitsItselfOtherwise() async throws {
    for isTimed in [true, false] {
      let path: OperationPath = ["other", isTimed]
      let query = Query<Int, any Error>(path: path) { context in
        let store = context.operationClient?.store(with: path)?.base as? Neighbourhood.Store
        guard let store else { return 0 }
        return isTimed ? try await store.run() : try await store.runTask().runIfNeeded()
      }
      let store = place.client.store(for: query.timeout(after: .seconds(10)))
      await #expect(throws: OperationDependencyError.cycle([path])) { try await store.run() }
      await place.expectPeace(in: store)
    }
  }

  @Test("A request that runs its own store through the client gets the failure, and may continue")
  func ensuresItself() async throws {
    let store = store { store in
      let client = try #require(store.context.operationClient)
      let query = Query<Int, any Error>(path: ["faulty"]) { _ in 0 }
      await #expect(throws: OperationDependencyError.self) { try await client.fetch(query) }
      await #expect(throws: OperationDependencyError.self) { try await client.ensure(query) }
      return 5
    }
    #expect(try await store.run() == 5)
    #expect(store.error == nil)
    await place.expectPeace(in: store)
  }

  @Test("A request that runs its own store without deduplication has two runs in order")
  func runsItselfTwice() async throws {
    let calls = Counter()
    let query = Query<Int, any Error>(path: ["faulty"]) { context in
      calls.increment()
      guard calls.value == 1 else { return calls.value }
      // This query has the same type and path, and its own rules.
      let query = Query<Int, any Error>(path: ["faulty"]) { _ in 2 }
      return try await 10 * (context.operationClient?.fetch(query) ?? 0)
    }
    let store = place.client.store(for: query.deduplicated { _, _ in false })
    #expect(try await store.run() == 20)
    #expect(store.valueUpdateCount == 2)
    await place.expectPeace(in: store)
  }

  @Test("A detached task of a request joins the request's run, if the request does not await it")
  func startsItself() async throws {
    let inner = Recorder<Task<Int, any Error>>()
    let store = store { store in
      inner.append(Task.detached { try await store.run() })
      await store.settles { $0.leaseCount == 2 }
      return 4
    }
    #expect(try await store.run() == 4)
    #expect(try await inner.all[0].value == 4)
    #expect(store.valueUpdateCount == 1)
    await place.expectPeace(in: store)
  }

  @Test("A page that waits for all pages of its own store gets a failure that names the path")
  func pageAwaitsPages() async throws {
    let store = place.client.store(for: pages { _ = try await $0.fetchAllPages() })
    try await store.fetchNextPage()
    await #expect(throws: OperationDependencyError.cycle([["pages"]])) {
      try await store.fetchNextPage()
    }
    #expect(store.currentValue.ids == [0])
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [0, 1])
    await place.expectPeace(in: store)
  }

  /// Pages whose second fetch calls `body` with its own store.
  private func pages(
    _ body:
      @escaping @Sendable (OperationStore<PaginatedState<Int, Int, any Error>>) async throws -> Void
  ) -> Paginated<Int, Int> {
    let calls = Counter()
    return Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, context in
      calls.increment()
      let store = context.operationClient?.store(with: ["pages"])?.base
      let own = store as? OperationStore<PaginatedState<Int, Int, any Error>>
      if calls.value == 2, let own { try await body(own) }
      return paging.pageId
    }
  }

  @Test("A serialized page that waits for all pages of its own store is removed from the queue")
  func pageAwaitsPagesInQueue() async throws {
    let store = place.client.store(
      for: pages { _ = try await $0.fetchAllPages() }.serialized(in: "scope"))
    try await store.fetchNextPage()
    await #expect(throws: OperationDependencyError.cycle([["pages"]])) {
      try await store.fetchNextPage()
    }
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [0, 1])
    await place.expectPeace(in: store)
  }

  @Test(
    "A caller that joined the run for which a page must not wait gets its result",
    arguments: [false, true])
  func pageAwaitsPagesOfOthers(isQueued: Bool) async throws {
    let joined = Monitor<Task<Void, any Error>?>(nil)
    let pages = pages { own in
      let subscription = own.subscribe { event in
        guard case .runStarted = event, joined.value == nil else { return }
        let other = Task.immediate { _ = try await own.fetchAllPages() }
        joined.update { $0 = other }
      }
      defer { subscription.cancel() }
      _ = try await own.fetchAllPages()
    }
    let store =
      isQueued
      ? place.client.store(for: pages.neverStale().serialized(in: "scope"))
      : place.client.store(for: pages.neverStale())
    try await store.fetchNextPage()
    await #expect(throws: OperationDependencyError.cycle([["pages"]])) {
      try await store.fetchNextPage()
    }
    await store.settles { !$0.isLoading }
    // Otherwise a run that was not started may keep a caller waiting.
    store.cancel()
    try await joined.value?.value
    #expect(store.currentValue.ids == [0])
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [0, 1])
    await place.expectPeace(in: store)
  }

  @Test("A request with a typed failure that awaits itself is reported, and waits until cancelled")
  func awaitsItselfWithAnotherFailure() async {
    let own = Monitor<OperationStore<QueryState<Int, Refused>>?>(nil)
    let calls = Counter()
    let query = Query(path: ["typed"], failure: Refused.self) { (_) throws(Refused) -> Int in
      calls.increment()
      if calls.value == 1, let store = own.value { return try await store.run() }
      throw Refused(attempt: calls.value)
    }
    let store = place.client.store(for: query)
    own.update { $0 = store }
    let log = EventLog<OperationIssue>()
    let run = OperationIssue.withHandler({ log.append($0) }) { Task { try? await store.run() } }
    await log.wait(for: 1)
    #expect(log.values.map(\.kind) == [.dependencyCycle])
    #expect(log.values.first?.message.contains("[\"typed\"]") == true)
    #expect(store.status.isLoading)
    let core = store.activeTasks.first?.core
    store.cancel()
    own.update { $0 = nil }
    await store.settles { !$0.isLoading }
    #expect(store.status.isIdle)
    // The run waits forever. The test ends it, so that no object remains.
    #expect(core?.progress.isEnded == false)
    core?.end(with: .failure(Refused()))
    #expect(await run.value == nil)
  }

  @Test("A serialized call that awaits its own scope gets a failure, and the queue continues")
  func serializedItself() async throws {
    let calls = Counter()
    let mutation = Mutation<Int, Int>(path: ["save"]) { number, context in
      calls.increment()
      guard number == 0 else { return number }
      let store = context.operationClient?.store(with: ["save"])?.base
      let own = store as? OperationStore<MutationState<Int, Int, any Error>>
      return try await own?.mutate(with: 1) ?? 0
    }.serialized(in: "scope")
    let store = place.client.store(for: mutation)
    await #expect(throws: OperationDependencyError.cycle([["save"]])) {
      try await store.mutate(with: 0)
    }
    #expect(calls.value == 1)
    #expect(try await store.mutate(with: 2) == 2)
    #expect(store.history.map(\.arguments) == [0, 2])
    await place.expectPeace(in: store)
  }

  @Test("A request that resets or cancels its own store is cancelled; one that clears it is not")
  func resetsItself() async throws {
    for end in ["reset", "cancel", "clear"] {
      let store = store(["faulty", end]) { store in
        store.currentValue = 1
        switch end {
        case "reset": store.resetState()
        case "cancel": store.cancel()
        default: store.context.operationClient?.clearStore(with: store.path)
        }
        return 2
      }
      if end == "clear" {
        #expect(try await store.run() == 2)
        #expect(place.client.store(with: ["faulty", end]) == nil)
      } else {
        await #expect(throws: CancellationError.self) { try await store.run() }
      }
      #expect(store.currentValue == ["reset": nil, "cancel": 1, "clear": 2][end])
      #expect(store.error == nil)
      await place.expectPeace(in: store)
    }
  }

  @Test("A request that resets another store ends the run in flight of that store, and no other")
  func resetsAnother() async throws {
    let remote = Remote<Int>()
    let victim = place.client.store(for: remote.query(["victim"]))
    let bystander = Remote<Int>()
    let other = place.client.store(for: bystander.query(["bystander"]))
    victim.currentValue = 1
    let runs = [victim, other].map { store in Task { try await store.run() } }
    await remote.wait(forCalls: 1)
    await bystander.wait(forCalls: 1)
    let store = store { store in
      store.context.operationClient?.reset(matching: ["victim"])
      return 2
    }
    #expect(try await store.run() == 2)
    await #expect(throws: CancellationError.self) { try await runs[0].value }
    #expect(victim.status.isIdle)
    #expect(victim.currentValue == nil)
    #expect(other.status.isLoading)
    bystander.answer(3)
    #expect(try await runs[1].value == 3)
    for store in [store, victim, other] { await place.expectPeace(in: store) }
  }

  @Test("Two requests that reset each other's stores within their runs are both cancelled")
  func resetEachOther() async {
    let gate = Monitor(0)
    let stores = ["left", "right"].map { side in
      place.client.store(
        for: Query<Int, any Error>(path: ["pair", side]) { context in
          gate.update { $0 += 1 }
          await gate.wait { $0 >= 2 }
          context.operationClient?.reset(matching: ["pair", side == "left" ? "right" : "left"])
          gate.update { $0 += 1 }
          await gate.wait { $0 >= 4 }
          return 1
        })
    }
    await withTaskGroup { group in
      for store in stores {
        group.addTask {
          await #expect(throws: CancellationError.self) { try await store.run() }
        }
      }
    }
    for store in stores {
      #expect(store.status.isIdle)
      await place.expectPeace(in: store)
    }
  }
}
