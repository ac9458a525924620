/// Which pages a run fetches, one after the other, and what it has fetched.
///
/// The one plan for all kinds of page runs: a value that is asked for the next identifier, and told
/// of the page that came.
struct PageWalk<Request: PaginatedRequest>: Sendable {
  typealias ID = Request.PageID
  typealias Page = PaginatedPage<Request.PageID, Request.PageValue>
  typealias Pages = PaginatedPages<Request.PageID, Request.PageValue>
  typealias Paging = PaginatedPaging<Request.PageID, Request.PageValue>

  let kind: PaginatedRunKind
  /// The pages that were there when the run began.
  let known: Pages
  let refetch: PaginatedRefetch<Request.PageID, Request.PageValue>
  private(set) var fetched = Pages()

  init(_ start: PageStart<Request.PageID, Request.PageValue>) {
    kind = start.kind
    known = start.pages
    refetch = start.refetch
  }

  /// The pages that a request may look at.
  private var pages: Pages {
    var pages = known
    pages.append(contentsOf: fetched)
    return pages
  }

  func paging(for id: ID) -> Paging {
    Paging(pageId: id, pages: pages, kind: kind)
  }

  /// The identifier of the next page to fetch; nil at the end.
  func nextID(of request: Request, in context: OperationContext) -> ID? {
    if let last = fetched.last { return nextID(after: last, of: request, in: context) }
    switch kind {
    case .initialPage: return request.initialPageId
    case .nextPage:
      return known.last.flatMap {
        request.pageId(after: $0, using: paging(for: $0.id), in: context)
      }
    case .previousPage:
      return known.first.flatMap {
        request.pageId(before: $0, using: paging(for: $0.id), in: context)
      }
    case .allPages: return known.first?.id ?? request.initialPageId
    case .refetch:
      if case .pages(let pick) = refetch { return pick(known).first }
      return known.first?.id ?? request.initialPageId
    }
  }

  private func nextID(after last: Page, of request: Request, in context: OperationContext) -> ID? {
    switch (kind, refetch) {
    case (.allPages, _), (.refetch, .allPages):
      guard fetched.count < known.count else { return nil }
      let next = request.pageId(after: last, using: paging(for: last.id), in: context)
      return next.flatMap { fetched.index(id: $0) == nil ? $0 : nil }
    case (.refetch, .pages(let pick)):
      return pick(known).first { fetched.index(id: $0) == nil }
    case (.refetch, .firstPage), (.initialPage, _), (.nextPage, _), (.previousPage, _):
      return nil
    }
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
  }

  /// What the run gives, at its end or with a page that is still in the making.
  func result(
    with partial: Page? = nil
  ) -> PaginatedResult<Request.PageID, Request.PageValue> {
    var pages = fetched
    if let partial { pages.append(partial) }
    let isAll = kind == .allPages || (kind == .refetch && refetch.isAllPages)
    return PaginatedResult(kind: kind, pages: pages, isWhole: isAll && partial == nil)
  }
}
