import Testing

@testable import Operation

/// Requests that call the stores of their client from within their run.
@Suite("Faults: requests that call back", .timeLimit(.minutes(1))) struct CallingBackTests {
  private let place = Neighbourhood()

  /// A store whose request does `body` with the store itself, the first time that it runs.
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

  @Test("A request that reads and writes its own store: its writes are shown, then its result")
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

  @Test("A request that runs its own store, and waits for that: a failure that names the path")
  func awaitsItself() async throws {
    let store = store { try await $0.run() }
    let error = await #expect(throws: OperationDependencyError.self) { try await store.run() }
    #expect(error == .cycle([["faulty"]]))
    #expect(store.error as? OperationDependencyError == .cycle([["faulty"]]))
    #expect(store.status.isFailure)
    await place.expectPeace(in: store)
    #expect(try await store.run() == 102)
  }

  @Test("Under a timeout, and by a task of its own, too: a failure that names the path, at once")
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

  @Test("A request that runs its own store through the client, and goes on without the value")
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

  @Test("A request that runs its own store without deduplication: two runs, one after the other")
  func runsBesideItself() async throws {
    let calls = Counter()
    let query = Query<Int, any Error>(path: ["faulty"]) { context in
      calls.increment()
      guard calls.value == 1 else { return calls.value }
      // Of the same type on the same path, and run by its own rules.
      let query = Query<Int, any Error>(path: ["faulty"]) { _ in 2 }
      return try await 10 * (context.operationClient?.fetch(query) ?? 0)
    }
    let store = place.client.store(for: query.deduplicated { _, _ in false })
    #expect(try await store.run() == 20)
    #expect(store.valueUpdateCount == 2)
    await place.expectPeace(in: store)
  }

  @Test("A request whose detached task runs its own store, and that does not wait: it joins")
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

  @Test("A page that waits for all pages of its own store: a failure that names the path")
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

  /// Pages whose second fetch does `body` with its own store.
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

  @Test("In a line it leaves its place there as well")
  func pageAwaitsPagesInLine() async throws {
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

  @Test("Who joined the run that it must not wait for gets its result", arguments: [false, true])
  func pageAwaitsPagesOfOthers(isInLine: Bool) async throws {
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
      isInLine
      ? place.client.store(for: pages.neverStale().serialized(in: "scope"))
      : place.client.store(for: pages.neverStale())
    try await store.fetchNextPage()
    await #expect(throws: OperationDependencyError.cycle([["pages"]])) {
      try await store.fetchNextPage()
    }
    await store.settles { !$0.isLoading }
    // So that a run that nobody has started keeps nobody waiting.
    store.cancel()
    try await joined.value?.value
    #expect(store.currentValue.ids == [0])
    try await store.fetchNextPage()
    #expect(store.currentValue.ids == [0, 1])
    await place.expectPeace(in: store)
  }

  @Test("With a failure of its own it is reported, and waits until it is cancelled")
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
    // It waits for ever, and a test leaves nothing: only what it cannot do itself ends it.
    #expect(core?.progress.isEnded == false)
    core?.end(with: .failure(Refused()))
    #expect(await run.value == nil)
  }

  @Test("A serialized call that waits for one of its own scope: a failure, and the line goes on")
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

  @Test("A request that resets, cancels, and clears its own store: its result is dropped")
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

  @Test("A request that resets another store whose run is under way: that one ends, and no other")
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

  @Test("Two requests that reset each other's stores from within their runs: both end cancelled")
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
