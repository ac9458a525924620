/// Finds the pages beside one, with no lock held.
struct PageEdgeFinder<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  typealias Pages = PaginatedPages<PageID, PageValue>

  let edges:
    @Sendable (PaginatedPage<PageID, PageValue>, Pages, OperationContext) -> PageEdges<PageID>

  /// Completes the first and the last page of a list, which say what is before and after it; anew,
  /// because somebody may have changed their values. Where a limit drops pages, the others come to
  /// be first or last, and are completed, too.
  func complete(_ pages: inout Pages, in context: OperationContext) {
    let isLimited = context.settings.values.maxPages < .max
    for index in pages.indices where isLimited || index == 0 || index == pages.count - 1 {
      var page = pages[index]
      page.edges = edges(page, pages, context)
      pages[index] = page
    }
  }
}
