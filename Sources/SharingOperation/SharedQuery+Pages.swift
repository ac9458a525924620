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
    try await backed().fetchNextPage(using: context, handler: handler)
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
    try await backed().fetchPreviousPage(using: context, handler: handler)
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
    try await backed().fetchAllPages(using: context, handler: handler)
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
    try backed().fetchNextPageTask(using: context)
  }

  /// Returns a scheduled fetch of the previous page that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func fetchPreviousPageTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<PaginatedPage<PageID, PageValue>?, PageFailure>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    try backed().fetchPreviousPageTask(using: context)
  }

  /// Returns a scheduled fetch of all pages that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func fetchAllPagesTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<PaginatedPages<PageID, PageValue>, PageFailure>
  where State.StoredState == PaginatedState<PageID, PageValue, PageFailure> {
    try backed().fetchAllPagesTask(using: context)
  }
}
