/// A paginated request whose failure has become `any Error`.
public struct TransformedPages<Base: PaginatedRequest>: PaginatedRequest {
  /// What tells pages apart.
  public typealias PageID = Base.PageID
  /// What a page holds.
  public typealias PageValue = Base.PageValue
  /// What a fetch of a page fails with.
  public typealias PageFailure = any Error

  let whole: TransformedOperation<Base, Base.Value, any Error>

  /// The path of the request that is changed.
  public var path: OperationPath { whole.base.path }
  /// Tells the request from the one that it changes.
  public var requestType: any Any.Type { whole.base.transformedRequestType }
  /// The retention that the request asks for.
  public var retention: OperationRetention? { whole.base.retention }
  /// The identifier of the first page that is fetched.
  public var initialPageId: PageID { whole.base.initialPageId }

  /// Writes what the request needs into the context.
  public func setup(context: inout OperationContext) { whole.setup(context: &context) }

  /// Writes what the state of the request needs.
  public func setupState(context: inout OperationContext) {
    whole.base.setupState(context: &context)
  }

  /// The identifier of the page after another one.
  public func pageId(
    after page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID? {
    whole.base.pageId(after: page, using: paging, in: context)
  }

  /// The identifier of the page before another one.
  public func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID? {
    whole.base.pageId(before: page, using: paging, in: context)
  }

  /// Fetches the pages that the run is for.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Base.Value, any Error>
  ) async throws -> Base.Value {
    try await whole.run(isolation: isolation, in: context, with: continuation)
  }

  /// Fetches one page of the request that is changed, without its modifiers, which are about whole
  /// runs.
  nonisolated(nonsending) public func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, any Error>
  ) async throws -> PageValue {
    let inner = OperationContinuation<PageValue, Base.PageFailure> { result in
      continuation.yield(with: result.mapError { $0 })
    }
    return try await whole.base.fetchPage(using: paging, in: context, with: inner)
  }
}

extension PaginatedRequest {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration` by the clock of
  /// the context; below a retry, when an attempt does.
  ///
  /// The failure becomes `any Error`. The run is cancelled and left at once, whether it listens or
  /// not.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, one of more than a hundred
  ///   years as these.
  @_disfavoredOverload
  public func timeout(
    after duration: Duration
  ) -> ModifiedOperation<TransformedPages<Self>, TimeoutModifier<TransformedPages<Self>>> {
    TransformedPages(whole: erasingFailure()).timeout(after: duration)
  }
}
