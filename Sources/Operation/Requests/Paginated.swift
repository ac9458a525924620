/// A paginated request that is not worth a type.
///
/// ```swift
/// let feed = Paginated(
///   path: ["feed"], initialPageId: 0,
///   nextPageId: { page, paging in page.value.isEmpty ? nil : page.id + 1 }
/// ) { paging, context in try await api.posts(page: paging.pageId) }
/// ```
///
/// Two of them with the same types on one path are the same request: a client keeps the closures
/// that it saw first.
public struct Paginated<PageID: Hashable & Sendable, PageValue: Sendable>: PaginatedRequest {
  /// What a fetch of a page fails with.
  public typealias PageFailure = any Error
  /// A page.
  public typealias Page = PaginatedPage<PageID, PageValue>
  /// What a fetch of a page has to know.
  public typealias Paging = PaginatedPaging<PageID, PageValue>

  /// Where a client keeps the store of the request.
  public let path: OperationPath
  /// The identifier of the page that is fetched when there is none.
  public let initialPageId: PageID
  private let nextPageId: @Sendable (Page, Paging) -> PageID?
  private let previousPageId: @Sendable (Page, Paging) -> PageID?
  private let body:
    nonisolated(nonsending) @Sendable (
      Paging, OperationContext, OperationContinuation<PageValue, any Error>
    ) async throws -> PageValue

  /// Creates a request from closures, the last of which tells several values of a page.
  @_disfavoredOverload
  public init(
    path: OperationPath, initialPageId: PageID,
    nextPageId: @escaping @Sendable (Page, Paging) -> PageID?,
    previousPageId: @escaping @Sendable (Page, Paging) -> PageID? = { _, _ in nil },
    _ fetchPage:
      nonisolated(nonsending) @escaping @Sendable (
        Paging, OperationContext, OperationContinuation<PageValue, any Error>
      ) async throws -> PageValue
  ) {
    self.path = path
    self.initialPageId = initialPageId
    self.nextPageId = nextPageId
    self.previousPageId = previousPageId
    body = fetchPage
  }

  /// Creates a request from closures.
  public init(
    path: OperationPath, initialPageId: PageID,
    nextPageId: @escaping @Sendable (Page, Paging) -> PageID?,
    previousPageId: @escaping @Sendable (Page, Paging) -> PageID? = { _, _ in nil },
    _ fetchPage:
      nonisolated(nonsending) @escaping @Sendable (
        Paging, OperationContext
      ) async throws -> PageValue
  ) {
    self.init(
      path: path, initialPageId: initialPageId, nextPageId: nextPageId,
      previousPageId: previousPageId
    ) { paging, context, _ in try await fetchPage(paging, context) }
  }

  /// The identifier of the page after another one.
  public func pageId(
    after page: Page, using paging: Paging, in context: OperationContext
  ) -> PageID? {
    nextPageId(page, paging)
  }

  /// The identifier of the page before another one.
  public func pageId(
    before page: Page, using paging: Paging, in context: OperationContext
  ) -> PageID? {
    previousPageId(page, paging)
  }

  /// Fetches one page.
  nonisolated(nonsending) public func fetchPage(
    using paging: Paging, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, any Error>
  ) async throws -> PageValue {
    try await body(paging, context, continuation)
  }
}
