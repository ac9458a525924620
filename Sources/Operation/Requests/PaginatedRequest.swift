/// A request that fetches a list page by page.
///
/// ```swift
/// struct FeedRequest: PaginatedRequest, Hashable {
///   let initialPageId = 0
///
///   func pageId(
///     after page: PaginatedPage<Int, [Post]>, using paging: PaginatedPaging<Int, [Post]>,
///     in context: OperationContext
///   ) -> Int? {
///     page.value.isEmpty ? nil : page.id + 1
///   }
///
///   func fetchPage(
///     using paging: PaginatedPaging<Int, [Post]>, in context: OperationContext,
///     with continuation: OperationContinuation<[Post], any Error>
///   ) async throws -> [Post] {
///     try await api.posts(page: paging.pageId)
///   }
/// }
/// ```
public protocol PaginatedRequest<PageID, PageValue>: StatefulOperationRequest
where
  Value == PaginatedResult<PageID, PageValue>,
  Failure == PageFailure,
  State == PaginatedState<PageID, PageValue, PageFailure>
{
  /// What tells pages apart.
  associatedtype PageID: Hashable & Sendable
  /// What a page holds.
  associatedtype PageValue: Sendable
  /// What a fetch of a page fails with.
  associatedtype PageFailure: Error
  /// What a run gives.
  associatedtype Value = PaginatedResult<PageID, PageValue>
  /// What a run fails with.
  associatedtype Failure = PageFailure
  /// The state of the store.
  associatedtype State = PaginatedState<PageID, PageValue, PageFailure>

  /// The identifier of the page that is fetched when there is none.
  var initialPageId: PageID { get }

  /// The identifier of the page after `page`; `nil` where there is none.
  ///
  /// Called with no lock held, and on no actor.
  func pageId(
    after page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>,
    in context: OperationContext
  ) -> PageID?

  /// The identifier of the page before `page`; `nil`, the default, where there is none.
  ///
  /// Called with no lock held, and on no actor.
  func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>,
    in context: OperationContext
  ) -> PageID?

  /// Fetches one page.
  ///
  /// A store calls this on no actor; a run without a store, on the caller's.
  ///
  /// - Parameters:
  ///   - paging: The page that is asked for, and those that are there.
  ///   - context: The context of the run.
  ///   - continuation: Takes values of the page before the last one.
  nonisolated(nonsending) func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>,
    in context: OperationContext,
    with continuation: OperationContinuation<PageValue, PageFailure>
  ) async throws(PageFailure) -> PageValue
}

extension PaginatedRequest {
  /// No page is before another one.
  public func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>,
    in context: OperationContext
  ) -> PageID? {
    nil
  }

  /// Fetches the pages that the run is for, one after the other; without a store, the initial one.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    let start = context.work as? PageStart<PageID, PageValue> ?? PageStart()
    let (attempt, pages) =
      start.progress?.begin(context.operationRetryIndex, isGivenUp: Task.isCancelled) ?? (0, [])
    var walk = PageWalk<Self>(start)
    for page in pages { walk.take(page) }
    while let id = walk.nextID(of: self, in: context) {
      if Task.isCancelled, !walk.fetched.isEmpty,
        let cancellation = cancellationFailure(as: Failure.self)
      {
        throw cancellation
      }
      let page = try await fetchPage(id, on: walk, in: context, with: continuation)
      walk.take(page)
      // What was given up must not add to what a retry begins with.
      if let progress = start.progress, !Task.isCancelled {
        guard progress.add(page, attempt: attempt) else { break }
      }
    }
    return walk.result()
  }

  /// Fetches one page of a walk; a function of its own, so that nothing of it shares the walk's
  /// pages when the walk takes the page in.
  nonisolated(nonsending) func fetchPage(
    _ id: PageID, on walk: PageWalk<Self>, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> PaginatedPage<PageID, PageValue> {
    let told = OperationContinuation<PageValue, PageFailure> { result in
      continuation.yield(
        with: result.map { walk.result(with: walk.page(id, $0, of: self, in: context)) })
    }
    let value = try await fetchPage(using: walk.paging(for: id), in: context, with: told)
    return walk.page(id, value, of: self, in: context)
  }

  /// Tells the state how to find the pages beside one that somebody wrote.
  public func setupState(context: inout OperationContext) {
    context.settings.values.pageEdges = PageEdgeFinder<PageID, PageValue> {
      [self] page, pages, context in
      let paging = PaginatedPaging(pageId: page.id, pages: pages, kind: .refetch)
      return edges(of: page, using: paging, in: context)
    }
  }

  func edges(
    of page: PaginatedPage<PageID, PageValue>, using paging: PaginatedPaging<PageID, PageValue>,
    in context: OperationContext
  ) -> PageEdges<PageID> {
    PageEdges(
      before: pageId(before: page, using: paging, in: context)
        .flatMap { checked($0, beside: page) },
      after: pageId(after: page, using: paging, in: context)
        .flatMap { checked($0, beside: page) })
  }

  /// The identifier of a page beside another one; nil, which is reported, where one of both is not
  /// equal to itself: nobody would find the place of the page.
  func checked(_ id: PageID, beside page: PaginatedPage<PageID, PageValue>) -> PageID? {
    if id == id, page.id == page.id { return id }
    OperationIssue(
      kind: .unequalIdentity,
      message: """
        Page \(id) of \(path) cannot stand beside page \(page.id): an identifier of a page has to be \
        equal to itself; there is no such page.
        """
    ).report()
    return nil
  }
}
