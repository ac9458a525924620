extension OperationContext {
  /// Returns the value of another request, and makes the calling request depend on it.
  ///
  /// The value is the cached one. It is fetched first if it is missing, if it was invalidated, if the
  /// last run failed (except under `neverStale()`), or if the stale time of the other request, where
  /// it has one, has passed. It is the confirmed one, without pending optimistic edits.
  ///
  /// From now on an invalidation of the other request invalidates the calling one as well. A request
  /// has the dependencies of its last successful run and of those that have failed since. In a context
  /// without a client, the other request runs without a store, and there is no dependency. A store that was made
  /// without a client has none either.
  ///
  /// ```swift
  /// func fetch(
  ///   in context: OperationContext, with continuation: OperationContinuation<[Project], any Error>
  /// ) async throws -> [Project] {
  ///   let user = try await context.ensure(CurrentUser())
  ///   return try await api.projects(of: user.id)
  /// }
  /// ```
  ///
  /// - Throws: The failure of the other request, `CancellationError`, or ``OperationDependencyError``
  ///   if the other request depends on the calling one. In that case the calling run fails with it,
  ///   even if it catches the error. This error is not retried. Another error that the request throws in
  ///   its place is retried.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: QueryRequest>(
    _ request: Request
  ) async throws -> Request.FetchValue
  where Request.State == QueryState<Request.FetchValue, Request.FetchFailure> {
    guard let (store, rules) = try depend(on: request) else {
      return try await request.run(in: self)
    }
    let value = try await store.ensure(
      by: rules, isForRun: true, present: { $0 }, fetched: { $0 })
    return store.mayReturnOld(by: rules) ? valueForRun(of: store) ?? value : value
  }

  /// Returns the pages of another request, and makes the calling request depend on it, as
  /// `ensure(_:)` does for a query.
  ///
  /// - Throws: The failure of the other request, `CancellationError`, or ``OperationDependencyError``
  ///   if the other request depends on the calling one.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: PaginatedRequest>(
    _ request: Request
  ) async throws -> PaginatedPages<Request.PageID, Request.PageValue> {
    guard let (store, rules) = try depend(on: request) else {
      return try await request.run(in: self).pages
    }
    return try await store.ensure(
      by: rules, isForRun: true, present: \.nonEmpty,
      fetched: { store.confirmedValue.nonEmpty ?? $0.pages })
  }

  /// Returns the confirmed value of another request, without pending optimistic edits and without fetching
  /// it, and makes the calling request depend on it, as `ensure(_:)` does.
  ///
  /// The result is the empty value if the request has no value, or in a context without a client. A
  /// request may read its own value, which is no dependency.
  ///
  /// A cycle of dependencies makes the calling run fail with ``OperationDependencyError`` when it
  /// ends. If the value was invalidated, the calling request is invalidated when a new value is
  /// committed: by a run before its awaiters resume, by a write shortly after it.
  public func value<Request: StatefulOperationRequest>(
    of request: Request
  ) -> Request.State.StateValue where Request.State: ValueInitializedState {
    guard let client = operationClient else { return Request.State.emptyValue }
    let path = request.path
    guard let runNode, path != runNode.storeRun?.origin?.path else {
      return client.store(for: request).confirmedValue
    }
    // Before the look-up, because the client may evict the store right after it.
    _ = client.hub.note(runNode, launch, reads: path)
    let store = client.store(for: request)
    store.noteRead()
    return valueForRun(of: store)
  }

  /// Returns the value of a request that the request of this run depends on. If the value was invalidated, the
  /// request of this run is invalidated when a new value is committed.
  func valueForRun<State>(of store: OperationStore<State>) -> State.StateValue {
    // Before the value is read, so that a value that is committed after that finds the note.
    if let runNode, store.isInvalidated {
      store.hub.note(runNode, launch, readsOutdated: store.path)
    }
    return store.valueForRun
  }

  /// Makes this run's request depend on another one, unless that closes a cycle. Returns the store of the
  /// other request, and the request's rules; `nil` without a client.
  private func depend<Request: StatefulOperationRequest, State: ValueInitializedState>(
    on request: Request
  ) throws(OperationDependencyError) -> (OperationStore<State>, RequestRules<State>?)?
  where Request.State == State {
    let client = operationClient
    if let runNode {
      let path = request.path
      let cycle =
        client.map { $0.hub.note(runNode, launch, reads: path) } ?? runNode.cycle(reading: path)
      if let cycle { throw cycle }
    }
    guard let (store, rules) = client?.storeAndRules(for: request) else { return nil }
    // A store that was created before the note, and inserted after it, does not know of it.
    if runNode != nil { store.noteRead() }
    return (store, rules)
  }
}
