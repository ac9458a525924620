import ReactiveStreams

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
  /// The type of the identifier of a page.
  associatedtype PageID: Hashable & Sendable
  /// The type of the value of a page.
  associatedtype PageValue: Sendable
  /// The type of the error that a fetch of a page throws.
  associatedtype PageFailure: Error
  /// The type of the value that a run returns.
  associatedtype Value = PaginatedResult<PageID, PageValue>
  /// The type of the error that a run throws.
  associatedtype Failure = PageFailure
  /// The state of the store.
  associatedtype State = PaginatedState<PageID, PageValue, PageFailure>

  /// The identifier of the page that is fetched while the state has no page.
  var initialPageId: PageID { get }

  /// Returns the identifier of the page after `page`, or `nil` if `page` is the last one.
  ///
  /// A store calls this on any thread, with no lock held, after each fetched page and for pages
  /// that are written.
  func pageId(
    after page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID?

  /// Returns the identifier of the page before `page`, or `nil`, the default, if `page` is the
  /// first one.
  ///
  /// A store calls this on any thread, with no lock held, after each fetched page and for pages
  /// that are written.
  func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID?

  /// Fetches one page.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameters:
  ///   - paging: The identifier of the page, and the pages of the state.
  ///   - context: The context of the run.
  ///   - continuation: Receives values and failures of the page before its final result.
  /// - Throws: The failure of the page, which is that of the run.
  nonisolated(nonsending) func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, PageFailure>
  ) async throws(PageFailure) -> PageValue
}

extension PaginatedRequest {
  /// Returns `nil`: no page has a page before it.
  public func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID? { nil }

  /// Fetches the pages of the run one after the other; without a store, the initial page.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    let start = context.work as? PageStart<PageID, PageValue> ?? PageStart()
    let (attempt, fetched) = start.begin(
      context.operationRetryIndex, isGivenUp: Task.isCancelled)
    var walk = PageWalk<Self>(start)
    walk.findNewEnd(of: self, in: context)
    for page in fetched { walk.take(page) }
    while let id = walk.nextID(of: self, in: context) {
      if Task.isCancelled, !walk.fetched.isEmpty { try throwCancellation(as: Failure.self) }
      let page = try await fetchPage(id, on: walk, in: context, with: continuation)
      walk.take(page)
      // A cancelled attempt adds no page to those that a retry begins with.
      if !Task.isCancelled { start.add(page, attempt: attempt) }
    }
    start.end(attempt: attempt)
    return walk.result()
  }

  /// Fetches one page of a walk.
  ///
  /// The copy of the walk that the continuation holds is released when this returns. So the
  /// caller's walk is the only owner of its pages when it appends the new one.
  nonisolated(nonsending) private func fetchPage(
    _ id: PageID, on walk: PageWalk<Self>, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> PaginatedPage<PageID, PageValue> {
    let pageContinuation = OperationContinuation<PageValue, PageFailure> { result in
      continuation.yield(
        with: result.map { walk.result(with: walk.page(id, $0, of: self, in: context)) })
    }
    // A run that is cancelled meanwhile has no driver any more.
    let driver = context.runNode?.driver
    driver?.note(.pageBegan(id), in: context)
    defer { driver?.note(.pageEnded(id), in: context) }
    let notify = pageNotifier(in: context)
    notify { .began(id, $0) }
    do throws(Failure) {
      let value = try await fetchPage(
        using: walk.paging(for: id), in: context, with: pageContinuation)
      notify { .ended(id, .success(value), $0) }
      return walk.page(id, value, of: self, in: context)
    } catch {
      notify { .ended(id, .failure(error), $0) }
      throw error
    }
  }

  /// Returns a function that calls the handlers of pages.
  ///
  /// The run in their events has no settings: they hold the handlers, which may keep it.
  private func pageNotifier(
    in context: OperationContext
  ) -> ((OperationRun) -> PaginatedPageEvent<PageID, PageValue>) -> Void {
    let handlers = context.settings.values.pages.handlers.compactMap {
      $0 as? PageHandler<PageID, PageValue>
    }
    if handlers.isEmpty { return { _ in } }
    var context = context
    // Read before the settings are removed, which have the number of retries.
    let attempt = context.attempt
    context.settings = RunSettings()
    context.attempt = attempt
    let run = context.operationRun ?? OperationRun(id: .next(), cause: .fetch, context: context)
    return { event in
      let event = event(run)
      // A task that a handler starts does not work for the run.
      CurrentWork.without { for handler in handlers { handler.handle(event) } }
    }
  }

  /// Writes a function that finds the pages before and after a written page into the context.
  public func setupState(context: inout OperationContext) {
    context.settings.values.pages.edges = PageEdgeFinder<PageID, PageValue> {
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
      before: checked(pageId(before: page, using: paging, in: context), beside: page),
      after: checked(pageId(after: page, using: paging, in: context), beside: page))
  }

  /// Returns the identifier of a page before or after another one. If one of both is not equal to
  /// itself, it could not be found in the state again: that is reported, and the result is `nil`.
  func checked(_ id: PageID?, beside page: PaginatedPage<PageID, PageValue>) -> PageID? {
    guard let id else { return nil }
    if id == id, page.id == page.id { return id }
    OperationIssue.report(
      .unequalIdentity,
      """
      Page \(id) of \(path) cannot stand beside page \(page.id): an identifier of a page has to \
      be equal to itself; there is no such page.
      """)
    return nil
  }
}
