/// Which pages a run fetches, one after the other, and what it has fetched.
///
/// The one plan for all kinds of page runs: a value that is asked for the next identifier, and told
/// of the page that came.
struct PageWalk<Request: PaginatedRequest>: Sendable {
  typealias ID = Request.PageID
  typealias Page = PaginatedPage<Request.PageID, Request.PageValue>
  typealias Pages = PaginatedPages<Request.PageID, Request.PageValue>
  typealias Paging = PaginatedPaging<Request.PageID, Request.PageValue>

  let start: PageStart<Request.PageID, Request.PageValue>
  var fetched = Pages()
  /// What there is of a run of several pages.
  var course = Boxed<Course>.none

  /// The course of a run of several pages.
  struct Course: Sendable {
    /// What the request picked, without what has been fetched; `nil` if the run goes from page to
    /// page, as far as pages were there.
    var picks: ArraySlice<ID>?
    /// The pages that a request may look at.
    var pages: Pages

    mutating func take(_ page: Page) {
      pages.append(page)
      if picks?.first == page.id {
        picks?.removeFirst()
      } else {
        picks?.removeAll { $0 == page.id }
      }
    }
  }

  init(_ start: PageStart<Request.PageID, Request.PageValue>) {
    self.start = start
    if kind == .allPages || (kind == .refetch && start.refetch.isAllPages) {
      course = .some(Course(picks: nil, pages: known))
    } else if kind == .refetch, case .pages(let pick) = start.refetch {
      let ids = Pages(pick(known).compactMap { start.pages[id: $0] }).ids
      course = .some(Course(picks: ids[...], pages: known))
    }
  }

  var kind: PaginatedRunKind { known.isEmpty ? .initialPage : start.kind }
  /// The pages that were there when the run began.
  var known: Pages { start.pages }
  /// Whether the run goes from page to page, as far as pages were there.
  var isAll: Bool { !course.isNone && course.content.picks == nil }

  func paging(for id: ID) -> Paging {
    Paging(pageId: id, pages: course.isNone ? known : course.content.pages, kind: kind)
  }

  /// The identifier of the next page to fetch; nil at the end.
  func nextID(of request: Request, in context: OperationContext) -> ID? {
    if !course.isNone, let picks = course.content.picks { return picks.first }
    if let last = fetched.last { return nextID(after: last, of: request, in: context) }
    guard let first = known.first, let last = known.last else { return request.initialPageId }
    switch kind {
    case .initialPage:
      return request.initialPageId
    case .nextPage:
      return request.pageId(after: last, using: paging(for: last.id), in: context)
        .flatMap { request.checked($0, beside: last) }
    case .previousPage:
      return request.pageId(before: first, using: paging(for: first.id), in: context)
        .flatMap { request.checked($0, beside: first) }
    case .allPages, .refetch:
      return first.id
    }
  }

  func nextID(after last: Page, of request: Request, in context: OperationContext) -> ID? {
    guard isAll, fetched.count < known.count else { return nil }
    let next = request.pageId(after: last, using: paging(for: last.id), in: context)
    return next.flatMap { request.checked($0, beside: last) }
      .flatMap { fetched.index(id: $0) == nil ? $0 : nil }
  }

  /// A page with the identifiers of those beside it.
  func page(
    _ id: ID, _ value: Request.PageValue, of request: Request, in context: OperationContext
  ) -> Page {
    var page = Page(id: id, value: value)
    page.edges = request.edges(of: page, using: paging(for: id), in: context)
    return page
  }

  mutating func take(_ page: Page) {
    fetched.append(page)
    // Nobody looks any more after a run's only page, and the pages that are there stay uncopied.
    if !course.isNone { course.content.take(page) }
  }

  /// What the run gives, at its end or with a page that is still in the making.
  func result(
    with partial: Page? = nil
  ) -> PaginatedResult<Request.PageID, Request.PageValue> {
    var pages = fetched
    if let partial { pages.append(partial) }
    let place = partial != nil && place == .whole ? .present : place
    return PaginatedResult(kind: kind, pages: pages, place: place)
  }

  var place: PagePlace<ID> {
    guard let first = known.first, let last = known.last else { return .initial }
    switch kind {
    case .initialPage: return .initial
    case .nextPage: return .after(last.id)
    case .previousPage: return .before(first.id)
    case .allPages, .refetch: return isAll ? .whole : .present
    }
  }
}
