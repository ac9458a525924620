/// A paginated request whose failure is turned into `any Error`.
public struct TransformedPages<Base: PaginatedRequest>: PaginatedRequest {
  let base: Base

  /// The path of the request.
  public var path: OperationPath { base.path }
  /// A type that differs from that of the request, whose state is another one.
  public var requestType: any Any.Type { base.transformedRequestType }
  /// The retention of the request.
  public var retention: OperationRetention? { base.retention }
  /// The identifier of the page that is fetched while the state has no page.
  public var initialPageId: Base.PageID { base.initialPageId }

  /// Performs the setup of the request.
  public func setup(context: inout OperationContext) { base.setup(context: &context) }

  /// Performs the setup of the request's state.
  public func setupState(context: inout OperationContext) { base.setupState(context: &context) }

  /// Returns the identifier of the page after another one.
  public func pageId(
    after page: PaginatedPage<Base.PageID, Base.PageValue>,
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext
  ) -> Base.PageID? { base.pageId(after: page, using: paging, in: context) }

  /// Returns the identifier of the page before another one.
  public func pageId(
    before page: PaginatedPage<Base.PageID, Base.PageValue>,
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext
  ) -> Base.PageID? { base.pageId(before: page, using: paging, in: context) }

  /// Fetches the pages of the run.
  ///
  /// - Throws: The failure of the request.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Base.Value, any Error>
  ) async throws -> Base.Value {
    try await base.run(
      isolation: isolation, in: context,
      with: continuation.transforming(value: { $0 }, failure: { $0 }))
  }

  /// Fetches one page without the modifiers of the request, which apply to whole runs.
  ///
  /// - Throws: The failure of the request.
  nonisolated(nonsending) public func fetchPage(
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<Base.PageValue, any Error>
  ) async throws -> Base.PageValue {
    try await base.fetchPage(
      using: paging, in: context,
      with: continuation.transforming(value: { $0 }, failure: { $0 }))
  }
}
