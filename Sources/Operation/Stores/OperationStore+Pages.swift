extension OperationStore {
  /// Fetches the page after the last page of the state, or the initial page if there is none.
  ///
  /// - Returns: The page; `nil` if there is no further page.
  /// - Throws: The failure of the run.
  @discardableResult
  nonisolated(nonsending) public func fetchNextPage<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(PageFailure) -> PaginatedPage<PageID, PageValue>?
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    try await run(.nextPage, using: context, handler: handler).pages.last
  }

  /// Fetches the page before the first page of the state, or the initial page if there is none.
  ///
  /// - Returns: The page; `nil` if there is no page before.
  /// - Throws: The failure of the run.
  @discardableResult
  nonisolated(nonsending) public func fetchPreviousPage<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(PageFailure) -> PaginatedPage<PageID, PageValue>?
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    try await run(.previousPage, using: context, handler: handler).pages.first
  }

  /// Fetches as many pages as the state has, beginning with its first one, or the initial page if
  /// there is none.
  ///
  /// It ends earlier where there is no next page, or where an identifier repeats. All pages are
  /// displayed at once, at the end. A retry continues with the page that failed.
  ///
  /// - Returns: The pages.
  /// - Throws: The failure of the run.
  @discardableResult
  nonisolated(nonsending) public func fetchAllPages<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(PageFailure) -> PaginatedPages<PageID, PageValue>
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    try await run(.allPages, using: context, handler: handler).pages
  }

  /// Fetches all pages again, as ``fetchAllPages(using:handler:)`` does.
  @discardableResult
  nonisolated(nonsending) public func refetchAllPages<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(PageFailure) -> PaginatedPages<PageID, PageValue>
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    try await fetchAllPages(using: context, handler: handler)
  }

  /// Schedules a fetch of the next page, without starting it.
  public func fetchNextPageTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) -> OperationTask<PaginatedPage<PageID, PageValue>?, PageFailure>
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    task(.nextPage, using: context).map(\.pages.last)
  }

  /// Schedules a fetch of the previous page, without starting it.
  public func fetchPreviousPageTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) -> OperationTask<PaginatedPage<PageID, PageValue>?, PageFailure>
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    task(.previousPage, using: context).map(\.pages.first)
  }

  /// Schedules a fetch of all pages, without starting it.
  public func fetchAllPagesTask<PageID, PageValue, PageFailure>(
    using context: OperationContext? = nil
  ) -> OperationTask<PaginatedPages<PageID, PageValue>, PageFailure>
  where State == PaginatedState<PageID, PageValue, PageFailure> {
    task(.allPages, using: context).map(\.pages)
  }

  nonisolated(nonsending) package func run(
    _ kind: PaginatedRunKind, using context: OperationContext?,
    by rules: RequestRules<State>? = nil, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(box(context), by: rules, input: PageRunInput(kind), handler: handler)
  }

  package func task(
    _ kind: PaginatedRunKind, using context: OperationContext?,
    by rules: RequestRules<State>? = nil
  ) -> OperationTask<State.OperationValue, State.Failure> {
    runTask(box(context), by: rules, input: PageRunInput(kind))
  }
}
