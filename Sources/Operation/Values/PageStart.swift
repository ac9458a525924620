import Synchronization

/// What a page run begins with.
struct PageStart<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  var kind = PaginatedRunKind.initialPage
  var pages = PaginatedPages<PageID, PageValue>()
  var refetch = PaginatedRefetch<PageID, PageValue>.allPages
  var progress = PageProgress<PageID, PageValue>()
}

/// The pages that the attempts of one run have fetched, so that a retry goes on where one failed.
///
/// An attempt that was given up must not add to what a later one fetches.
final class PageProgress<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  typealias Page = PaginatedPage<PageID, PageValue>

  private struct Progress: Sendable {
    var attempt = 0
    var pages: [Page] = []
  }

  private let progress = Mutex(Progress())

  /// Begins an attempt, with the pages that are there already.
  func begin() -> (attempt: Int, pages: [Page]) {
    progress.withLock {
      $0.attempt += 1
      return ($0.attempt, $0.pages)
    }
  }

  /// Adds a page; tells whether the attempt is still the present one.
  func add(_ page: Page, attempt: Int) -> Bool {
    progress.withLock {
      guard $0.attempt == attempt else { return false }
      $0.pages.append(page)
      return true
    }
  }
}

extension PaginatedRefetch {
  var isAllPages: Bool { if case .allPages = self { true } else { false } }
}
