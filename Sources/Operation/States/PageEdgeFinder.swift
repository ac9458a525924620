/// Finds the pages beside one, with no lock held.
struct PageEdgeFinder<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  typealias Pages = PaginatedPages<PageID, PageValue>

  let edges:
    @Sendable (PaginatedPage<PageID, PageValue>, Pages, OperationContext) -> PageEdges<PageID>

  /// Completes the first and the last page of a list, which say what is before and after it.
  func complete(_ pages: inout Pages, in context: OperationContext) {
    for page in [pages.first, pages.last] {
      guard var page, pages[id: page.id]?.edges == nil else { continue }
      page.edges = edges(page, pages, context)
      pages.append(page)
    }
  }
}
