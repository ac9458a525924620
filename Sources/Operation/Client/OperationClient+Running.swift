extension OperationClient {
  /// Runs a request in its store, and returns the result.
  ///
  /// It starts a run, or joins one in flight if the request is deduplicated.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - isRestarting: Whether a request in flight that the caller joins is cancelled and called again,
  ///     for all its callers. The default is `false`.
  /// - Throws: The failure of the run.
  @discardableResult
  nonisolated(nonsending) public func fetch<Request: StatefulOperationRequest>(
    _ request: Request, restarting isRestarting: Bool = false
  ) async throws(Request.Failure) -> Request.Value where Request.State: ValueInitializedState {
    let (store, rules) = storeAndRules(for: request)
    return try await store.run(.empty, by: rules, isRestarting: isRestarting)
  }

  /// Calls a mutation again in its store, as `OperationStore.retryLatest` does.
  ///
  /// Use `client.store(for: request).mutate(with:)` to call it with arguments.
  ///
  /// - Parameters:
  ///   - request: The mutation.
  ///   - isRestarting: Whether a call that is the same begins again, if the request deduplicates its calls.
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func fetch<Request: MutationRequest>(
    _ request: Request, restarting isRestarting: Bool = false
  ) async throws -> Request.MutateValue {
    let (store, rules) = storeAndRules(for: request)
    return try await store.run(
      .empty, by: rules, input: store.latestInput(), isRestarting: isRestarting)
  }

  /// Returns the cached value of a request, or fetches it if the value is missing or out of date.
  ///
  /// The value is out of date if it was invalidated, if the last run failed (except under
  /// `neverStale()`), or if its stale time has passed. A request without a stale time has no such
  /// limit here.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - policy: What happens if there is a value that is out of date; by default it is fetched again
  ///     first.
  /// - Throws: The failure of the fetch, or `CancellationError`.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: QueryRequest>(
    _ request: Request, whileStale policy: StaleValuePolicy = .fetches
  ) async throws -> Request.FetchValue
  where Request.State == QueryState<Request.FetchValue, Request.FetchFailure> {
    let (store, rules) = storeAndRules(for: request)
    return try await store.ensure(
      by: rules, whileStale: policy, present: { $0 }, fetched: { $0 })
  }

  /// Returns the cached pages of a request, or fetches them if there are none or they are out of
  /// date.
  ///
  /// The pages are out of date if they were invalidated, if the last run failed (except under
  /// `neverStale()`), or if their stale time has passed. A request without a stale time has no such
  /// limit here.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - policy: What happens if there are pages that are out of date; by default they are fetched again
  ///     first.
  /// - Throws: The failure of the fetch, or `CancellationError`.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: PaginatedRequest>(
    _ request: Request, whileStale policy: StaleValuePolicy = .fetches
  ) async throws -> PaginatedPages<Request.PageID, Request.PageValue> {
    let (store, rules) = storeAndRules(for: request)
    return try await store.ensure(
      by: rules, whileStale: policy, present: \.nonEmpty,
      // A handler of the end of the run may have reset the store.
      fetched: { store.currentValue.nonEmpty ?? $0.pages })
  }

  /// Fetches the pages of a request in advance, as `prefetch(_:)` does, and then next pages until there
  /// are as many as `count`, or no further one.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - count: The number of pages. A number below one is reported, and one is used.
  nonisolated(nonsending) public func prefetch<Request: PaginatedRequest>(
    _ request: Request, pages count: Int
  ) async {
    let count = count.checkedLimit(for: "The number of pages of \(request.requestType)")
    let (store, rules) = storeAndRules(for: request)
    try? await store.ensure(by: rules)
    // A number of fetches, because the list need not grow: it may drop pages, and an id may repeat.
    for _ in 0..<max(0, count - store.currentValue.count) {
      guard store.hasNextPage else { return }
      let result = try? await store.run(.nextPage, using: nil, by: rules)
      if result?.pages.isEmpty != false { return }
    }
  }

  /// Fetches the value of a request in advance, if it is missing or out of date by the rules of
  /// `ensure(_:)`.
  ///
  /// Returns when the fetch has ended. A failure is in the state of the store. A mutation is not called.
  nonisolated(nonsending) public func prefetch<Request: StatefulOperationRequest>(
    _ request: Request
  ) async where Request.State: ValueInitializedState {
    if Request.State.kind == .mutation { return }
    let (store, rules) = storeAndRules(for: request)
    try? await store.ensure(by: rules)
  }

  /// Returns the store for a request, and the rules that the request brings to it.
  func storeAndRules<Request: StatefulOperationRequest>(
    for request: Request
  ) -> (OperationStore<Request.State>, RequestRules<Request.State>?)
  where Request.State: ValueInitializedState {
    let store = store(for: request)
    return (store, store.rules(of: request))
  }
}

extension OperationClient {
  /// Runs the queries and paginated requests below a path concurrently, and waits for all of them.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  /// - Throws: The first failure, when all runs have ended.
  nonisolated(nonsending) public func fetch(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async throws {
    try await forEach(matching: path, where: filter) { store, results in
      // What was answered since it was matched is not stale any more.
      if filter.requiresStale {
        try await store.refetch(unlessNewerThan: results)
      } else {
        _ = try await store.erasedRun(using: nil)
      }
    }
  }

  /// Runs the queries and paginated requests below a path whose values are missing or out of date by
  /// the rules of `ensure(_:)`, concurrently, and waits for all of them.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  /// - Throws: The first failure, when all runs have ended.
  nonisolated(nonsending) public func ensure(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async throws {
    try await forEach(matching: path, where: filter) { store, _ in try await store.ensure() }
  }

  /// Runs what `ensure(matching:where:)` runs, and waits for it. Failures are in the states of the
  /// stores.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  nonisolated(nonsending) public func prefetch(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async { try? await ensure(matching: path, where: filter) }

  /// Calls `body` with each matching store, and the number of results that it had before it matched.
  nonisolated(nonsending) private func forEach(
    matching path: OperationPath, where filter: OperationStoreFilter,
    _ body: @escaping @Sendable (any ErasedOperationStore, _ results: Int) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in stores(matching: path) where store.store.kind != .mutation {
        let results = store.store.resultCount
        if filter.accepts(store) { group.addTask { try await body(store.store, results) } }
      }
      // Cancels nothing when one fails, and throws when all have ended.
      try await group.waitForAll()
    }
  }
}

extension OperationClient {
  /// Marks the value of a request, and the values of all requests that depend on it, as out of date.
  ///
  /// Those of them that are observed run again, each once, and each after the requests that it
  /// depends on. It does nothing to a request without a store that no other request depends on.
  public func invalidate<Request: StatefulOperationRequest>(_ request: Request) {
    let store = store(of: request)
    hub.invalidate(read: .at([request.path])) { mark in if let store { mark(store) } }
  }

  /// Marks the values below a path, and the values of all requests that depend on them, as out of
  /// date.
  ///
  /// Those of them that are observed run again, each once, and each after the requests that it
  /// depends on. In exclusive access to one of the stores, they run at its end.
  ///
  /// It costs the stores that it finds, as ``stores(matching:where:)`` does, and those that depend on
  /// them.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  ///   - running: Which of the stores run again; by default, those that are observed.
  public func invalidate(
    matching path: OperationPath, where filter: OperationStoreFilter = [],
    running: InvalidatedStores = .observed
  ) {
    let isEach = filter.isEmpty && running != .all
    // The filter is called for all stores before one of them is marked.
    let stores = isEach ? [] : found(matching: path, where: filter)
    hub.invalidate(
      read: filter.isEmpty ? .below(path) : nil, runsObserved: running != .nothing
    ) { mark in if isEach { forEachStore(matching: path, mark) } else { stores.forEach(mark) } }
    guard running == .all, !hub.isClosed else { return }
    for store in stores
    where store.store.kind != .mutation && store.subscriberCount == 0 && store.store.allowsRun {
      Task.startUnawaited(on: clock.executor) { _ = try? await store.store.ensure() }
    }
  }

  /// Cancels the runs of a request, whatever leases are held on them.
  public func cancel<Request: StatefulOperationRequest>(_ request: Request) {
    store(of: request)?.cancel()
  }

  /// Cancels the runs below a path, whatever leases are held on them. A run that waits for another one of them
  /// does not call its request, where its failure can be a `CancellationError`.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  public func cancel(matching path: OperationPath, where filter: OperationStoreFilter = []) {
    stores(matching: path, where: filter).flatMap { $0.store.removeRuns() }.forEach { $0() }
  }

  /// Resets the store of a request to its initial state, and cancels its runs. It starts no run.
  public func reset<Request: StatefulOperationRequest>(_ request: Request) {
    if store(of: request) == nil { removeSaved(of: request) }
    // One that was created meanwhile may have the value that was removed, or have had one saved.
    store(of: request)?.resetState()
  }

  /// Resets the stores below a path to their initial states, and cancels their runs, as
  /// ``cancel(matching:where:)`` does. It starts no run.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  public func reset(matching path: OperationPath, where filter: OperationStoreFilter = []) {
    if filter.isEmpty { removeSaved(at: path, isPrefix: true) }
    let stores = stores(matching: path, where: filter)
    stores.flatMap { $0.store.beginReset(using: nil) }.forEach { $0() }
  }

  /// Returns the store of a request, or `nil` if there is none.
  func store(of request: some StatefulOperationRequest) -> OpaqueOperationStore? {
    let path = request.path
    let type = RequestType(of: request)
    return read { $0.store(at: path, for: type) }
  }
}
