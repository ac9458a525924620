/// The pages that a run fetches, one after the other, and those that it has fetched.
///
/// It is a plain value for all kinds of page runs: it returns the identifier of the next page, and
/// takes in each fetched page.
struct PageWalk<Request: PaginatedRequest>: Sendable {
  typealias ID = Request.PageID
  typealias Page = PaginatedPage<Request.PageID, Request.PageValue>
  typealias Pages = PaginatedPages<Request.PageID, Request.PageValue>
  typealias Paging = PaginatedPaging<Request.PageID, Request.PageValue>

  let start: PageStart<Request.PageID, Request.PageValue>
  private(set) var fetched = Pages()
  /// What the fetched pages are among those at the start. A run of the whole value fetches as many as there
  /// were, of which each leads to the next one.
  private var place = PagePlace<ID>.initial
  /// The pages that the request picked. The first one has not been fetched. `nil` if it picks none.
  private var picks: ArraySlice<ID>?
  /// The pages that the request sees: those at the start, of which a run of several pages replaces
  /// the ones that it has fetched.
  private var visible: Pages
  /// The page that the limit makes the first or the last one, with its neighbours, if a write has left it
  /// without.
  private var newEnd: Page?

  init(_ start: PageStart<Request.PageID, Request.PageValue>) {
    self.start = start
    visible = start.pages
    guard let first = known.first, let last = known.last else { return }
    switch (kind, start.refetch) {
    case (.initialPage, _): break
    case (.nextPage, _): place = .after(last.id)
    case (.previousPage, _): place = .before(first.id)
    case (.allPages, _), (.refetch, .allPages): place = .whole
    case (.refetch, .firstPage): place = .present
    case (.refetch, .pages(let pick)):
      place = .present
      // Each once, and none that does not exist.
      picks = Pages(pick(known).compactMap { known[id: $0] }).ids[...]
    }
  }

  /// Finds the neighbours of the page that becomes the first or the last one when the run has fetched another
  /// page, if they are not known.
  mutating func findNewEnd(of request: Request, in context: OperationContext) {
    let excess = known.count + 1 - context.settings.values.pages.limit
    guard !fetchesSeveral, 0 < excess, excess < known.count else { return }
    let page = known[kind == .nextPage ? excess : known.count - 1 - excess]
    if page.edges == nil { newEnd = self.page(page.id, page.value, of: request, in: context) }
  }

  /// What the run is for: the initial page, as long as there is no page.
  var kind: PaginatedRunKind { known.isEmpty ? .initialPage : start.kind }
  /// The pages that there were when the run began.
  private var known: Pages { start.pages }
  private var fetchesSeveral: Bool { picks != nil || place == .whole }

  /// Returns what the request is called with for a page.
  func paging(for id: ID) -> Paging { Paging(pageId: id, pages: visible, kind: kind) }

  /// Returns the identifier of the next page to fetch; `nil` at the end.
  func nextID(of request: Request, in context: OperationContext) -> ID? {
    if let picks { return picks.first }
    func nextID(after page: Page) -> ID? {
      let id = request.pageId(after: page, using: paging(for: page.id), in: context)
      return request.checked(id, beside: page)
    }
    if let last = fetched.last {
      guard place == .whole, fetched.count < known.count else { return nil }
      return nextID(after: last).flatMap { fetched.index(id: $0) == nil ? $0 : nil }
    }
    guard let first = known.first, let last = known.last else { return request.initialPageId }
    switch kind {
    case .initialPage: return request.initialPageId
    case .nextPage: return nextID(after: last)
    case .previousPage:
      let id = request.pageId(before: first, using: paging(for: first.id), in: context)
      return request.checked(id, beside: first)
    case .allPages, .refetch: return first.id
    }
  }

  /// Returns a page with the identifiers of those beside it.
  func page(
    _ id: ID, _ value: Request.PageValue, of request: Request, in context: OperationContext
  ) -> Page {
    var page = Page(id: id, value: value)
    page.edges = request.edges(of: page, using: paging(for: id), in: context)
    return page
  }

  /// Takes in a fetched page.
  mutating func take(_ page: Page) {
    fetched.append(page)
    picks = picks?.drop { fetched.index(id: $0) != nil }
    // Nothing reads the visible pages again in a run that fetches no further page.
    if fetchesSeveral { visible.append(page) }
  }

  /// Returns the result of the run.
  ///
  /// - Parameter partial: A page that is not completely fetched; then the result replaces that page
  ///   and the fetched ones, whatever else the run is for.
  func result(with partial: Page? = nil) -> PaginatedResult<Request.PageID, Request.PageValue> {
    var pages = fetched
    if let partial { pages.append(partial) }
    let place = partial != nil && place == .whole ? .present : place
    return PaginatedResult(
      kind: kind, pages: pages, place: place, newEnd: newEnd.map { ($0, start.stamp) })
  }
}
