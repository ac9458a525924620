extension OperationClient {
  /// Runs the request in its store, and waits for the result.
  @discardableResult
  nonisolated(nonsending) public func fetch<Request: StatefulOperationRequest>(
    _ request: Request
  ) async throws(Request.Failure) -> Request.Value where Request.State: ValueInitializedState {
    try await store(for: request).run()
  }

  /// Gives the value that is there, and fetches it if there is none, if it was invalidated, or if
  /// the stale time of the request, where it has one, is over.
  ///
  /// - Throws: What the fetch fails with.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: QueryRequest>(
    _ request: Request
  ) async throws -> Request.FetchValue
  where Request.State == QueryState<Request.FetchValue, Request.FetchFailure> {
    try await store(for: request).ensure(present: { $0 }, fetched: { $0 })
  }

  /// Gives the pages that are there, and fetches them if there are none, if they were invalidated,
  /// or if the stale time of the request, where it has one, is over.
  ///
  /// - Throws: What the fetch fails with.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: PaginatedRequest>(
    _ request: Request
  ) async throws -> PaginatedPages<Request.PageID, Request.PageValue> {
    let store = store(for: request)
    return try await store.ensure(
      present: { $0.isEmpty ? nil : $0 }, fetched: { _ in store.currentValue })
  }

  /// Fetches the value before somebody needs it, unless it is there already, as `ensure(_:)` has
  /// it; a failure is in the state of the store.
  nonisolated(nonsending) public func prefetch<Request: StatefulOperationRequest>(
    _ request: Request
  ) async where Request.State: ValueInitializedState {
    try? await store(for: request).ensure()
  }
}

extension OperationClient {
  /// Runs the queries and the paginated requests below a path, side by side, and waits for all of
  /// them.
  ///
  /// - Throws: What one of them failed with, when all have ended.
  nonisolated(nonsending) public func fetch(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async throws {
    try await each(matching: path, where: filter) { _ = try await $0.run() }
  }

  /// Runs those queries and paginated requests below a path whose values will not do, as
  /// `ensure(_:)` has it, side by side, and waits for all of them.
  ///
  /// - Throws: What one of them failed with, when all have ended.
  nonisolated(nonsending) public func ensure(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async throws {
    try await each(matching: path, where: filter) { try await $0.ensure() }
  }

  /// Runs what `ensure(matching:where:)` runs; failures are in the states of the stores.
  nonisolated(nonsending) public func prefetch(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) async {
    try? await ensure(matching: path, where: filter)
  }

  nonisolated(nonsending) private func each(
    matching path: OperationPath, where filter: OperationStoreFilter,
    _ body: @escaping @Sendable (OpaqueOperationStore) async throws -> Void
  ) async throws {
    let stores = stores(matching: path, where: filter).filter { $0.kind != .mutation }
    let failures = await withTaskGroup(of: (any Error)?.self) { group in
      for store in stores {
        group.addTask {
          do {
            try await body(store)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    if let failure = failures.lazy.compactMap({ $0 }).first { throw failure }
  }
}

extension OperationClient {
  /// Marks the value of a request, and those of all that read it, as out of date, and runs again what
  /// somebody observes of them, as `OperationStore.invalidate()` does.
  public func invalidate<Request: StatefulOperationRequest>(_ request: Request) {
    let path = request.path
    hub.invalidate(store(of: request).map { [$0] } ?? []) { $0 == path }
  }

  /// Marks what is below a path, and all that reads it, as out of date, and runs again what somebody
  /// observes of it: each once, and each after what it reads.
  public func invalidate(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) {
    hub.invalidate(Array(stores(matching: path, where: filter))) {
      filter.isEmpty && path.isPrefix(of: $0)
    }
  }

  /// Cancels the runs of a request for everybody.
  public func cancel<Request: StatefulOperationRequest>(_ request: Request) {
    store(of: request)?.cancel()
  }

  /// Cancels the runs below a path for everybody.
  public func cancel(matching path: OperationPath, where filter: OperationStoreFilter = []) {
    for store in stores(matching: path, where: filter) { store.cancel() }
  }

  /// Takes a request back to its initial state, and cancels its runs.
  public func reset<Request: StatefulOperationRequest>(_ request: Request) {
    store(of: request)?.resetState()
  }

  /// Takes what is below a path back to its initial state, and cancels its runs.
  public func reset(matching path: OperationPath, where filter: OperationStoreFilter = []) {
    for store in stores(matching: path, where: filter) { store.resetState() }
  }

  /// The store of a request, if there is one.
  private func store<Request: StatefulOperationRequest>(
    of request: Request
  ) -> OpaqueOperationStore? {
    let path = request.path
    let type = RequestType(of: request)
    return read { $0.store(at: path, for: type) }
  }
}
