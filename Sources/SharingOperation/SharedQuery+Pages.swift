public import Operation

extension SharedQuery {
  /// Fetches the page after the last page, as `OperationStore.fetchNextPage` does.
  ///
  /// - Throws: The failure of the run, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetchNextPage<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> PaginatedPage<PageID, PageValue>?
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return try await store.run(.nextPage, using: context, by: rules, handler: handler).pages.last
  }

  /// Fetches the page before the first page, as `OperationStore.fetchPreviousPage` does.
  ///
  /// - Throws: The failure of the run, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetchPreviousPage<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> PaginatedPage<PageID, PageValue>?
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return try await store.run(.previousPage, using: context, by: rules, handler: handler).pages
      .first
  }

  /// Fetches all pages again, as `OperationStore.fetchAllPages` does.
  ///
  /// - Throws: The failure of the run, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetchAllPages<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> PaginatedPages<PageID, PageValue>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return try await store.run(.allPages, using: context, by: rules, handler: handler).pages
  }

  /// Fetches all pages again, as ``fetchAllPages(using:handler:)`` does.
  ///
  /// - Throws: The failure of the run, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func refetchAllPages<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> PaginatedPages<PageID, PageValue>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    try await fetchAllPages(using: context, handler: handler)
  }

  /// Returns a scheduled fetch of the next page that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func fetchNextPageTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<PaginatedPage<PageID, PageValue>?, PageFailure>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return store.task(.nextPage, using: context, by: rules).map(\.pages.last)
  }

  /// Returns a scheduled fetch of the previous page that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func fetchPreviousPageTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<PaginatedPage<PageID, PageValue>?, PageFailure>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return store.task(.previousPage, using: context, by: rules).map(\.pages.first)
  }

  /// Returns a scheduled fetch of all pages that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func fetchAllPagesTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<PaginatedPages<PageID, PageValue>, PageFailure>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    let (store, rules) = try backedRules()
    return store.task(.allPages, using: context, by: rules).map(\.pages)
  }
}
