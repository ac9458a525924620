/// A paginated request that is made of closures, without a type of its own.
///
/// ```swift
/// let feed = Paginated(
///   path: ["feed"], initialPageId: 0,
///   nextPageId: { page, paging in page.value.isEmpty ? nil : page.id + 1 }
/// ) { paging, context in try await api.posts(page: paging.pageId) }
/// ```
///
/// Two of them with the same types on one path are the same request: a client uses the closures
/// with which the store was created.
public struct Paginated<PageID: Hashable & Sendable, PageValue: Sendable>: PaginatedRequest {
  /// A page.
  public typealias Page = PaginatedPage<PageID, PageValue>
  /// The input of a fetch of a page.
  public typealias Paging = PaginatedPaging<PageID, PageValue>

  /// A closure that fetches a page, and can yield versions of it before it returns one.
  public typealias Body =
    nonisolated(nonsending) @Sendable (
      Paging, OperationContext, OperationContinuation<PageValue, any Error>
    ) async throws -> PageValue

  /// The path under which a client holds the store of the request.
  public let path: OperationPath
  /// The identifier of the page that is fetched while the state has no page.
  public let initialPageId: PageID
  private let nextPageId: @Sendable (Page, Paging) -> PageID?
  private let previousPageId: @Sendable (Page, Paging) -> PageID?
  private let body: Body

  /// Creates a request from closures, the last of which can yield values of a page before it
  /// returns the final one.
  @_disfavoredOverload
  public init(
    path: OperationPath, initialPageId: PageID,
    nextPageId: @escaping @Sendable (Page, Paging) -> PageID?,
    previousPageId: @escaping @Sendable (Page, Paging) -> PageID? = { _, _ in nil },
    _ fetchPage: @escaping Body
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

  /// Returns the identifier of the page after another one.
  public func pageId(
    after page: Page, using paging: Paging, in context: OperationContext
  ) -> PageID? { nextPageId(page, paging) }

  /// Returns the identifier of the page before another one.
  public func pageId(
    before page: Page, using paging: Paging, in context: OperationContext
  ) -> PageID? { previousPageId(page, paging) }

  /// Fetches one page.
  ///
  /// - Throws: The error of the closure.
  nonisolated(nonsending) public func fetchPage(
    using paging: Paging, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, any Error>
  ) async throws -> PageValue { try await body(paging, context, continuation) }
}
