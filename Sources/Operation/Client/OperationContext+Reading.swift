extension OperationContext {
  /// Gives the value of another request: the one that is there, or a fetched one if there is none,
  /// if it was invalidated, or if the stale time of the request, where it has one, is over.
  ///
  /// The request whose run calls this depends on the other one from now on: an invalidation of the
  /// other one is one of it, too. The edges are those of its last run. Without a client the other
  /// request runs without a store.
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
  /// - Throws: What the other request fails with, or ``OperationDependencyError`` where it depends on
  ///   the calling one; then the calling run fails with that whatever it does. That error is not
  ///   retried; one that is thrown in its place is, like any other.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: QueryRequest>(
    _ request: Request
  ) async throws -> Request.FetchValue
  where Request.State == QueryState<Request.FetchValue, Request.FetchFailure> {
    guard let client = operationClient else { return try await request.run(in: self) }
    if let circle = note(request.path, in: client) { throw circle }
    return try await client.ensure(request)
  }

  /// Gives the pages of another request, as `ensure(_:)` does for a query.
  ///
  /// - Throws: What the other request fails with, or ``OperationDependencyError``.
  @discardableResult
  nonisolated(nonsending) public func ensure<Request: PaginatedRequest>(
    _ request: Request
  ) async throws -> PaginatedPages<Request.PageID, Request.PageValue> {
    guard let client = operationClient else {
      return try await request.run(in: self).pages
    }
    if let circle = note(request.path, in: client) { throw circle }
    return try await client.ensure(request)
  }

  /// Gives the value that another request shows now, without fetching it; its empty value where it
  /// has none, or where there is no client.
  ///
  /// The request whose run calls this depends on the other one, as with `ensure(_:)`. If
  /// that closes a circle, the run fails with ``OperationDependencyError`` when it ends. A
  /// request can read what it showed itself before. Where the value that it gives was invalidated, the
  /// calling request is invalidated when a new one has come: from a run before anybody who waits for
  /// that goes on, from a write shortly after it.
  public func value<Request: StatefulOperationRequest>(
    of request: Request
  ) -> Request.State.StateValue where Request.State: ValueInitializedState {
    guard let client = operationClient else { return Request.State.emptyValue }
    let path = request.path
    guard let runNode, path != runNode.place?.path else {
      return client.store(for: request).currentValue
    }
    // Before the store is asked for, which may leave the client then.
    _ = client.hub.note(runNode, reads: path)
    let store = client.store(for: request)
    // Before the value is read, so that a new one that comes then finds this.
    if store.isInvalidated { client.hub.note(runNode, readsOutdated: path) }
    return store.valueForRun
  }

  /// Notes that the request of this run reads the one on a path; gives the circle that this would
  /// close.
  func note(
    _ path: OperationPath, in client: OperationClient
  ) -> OperationDependencyError? {
    runNode.flatMap { client.hub.note($0, reads: path) }
  }
}
