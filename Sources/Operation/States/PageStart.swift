import Synchronization

/// What a page run begins with; an object, as the context of the run, its walk and what it tells
/// share it.
final class PageStart<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  let kind: PaginatedRunKind
  let pages: PaginatedPages<PageID, PageValue>
  let refetch: PaginatedRefetch<PageID, PageValue>
  /// What its attempts have fetched; `nil` for a run of one page, which has nothing to go on with.
  let progress: PageProgress<PageID, PageValue>?

  init(
    kind: PaginatedRunKind = .initialPage, pages: PaginatedPages<PageID, PageValue> = [],
    refetch: PaginatedRefetch<PageID, PageValue> = .allPages
  ) {
    self.kind = kind
    self.pages = pages
    self.refetch = refetch
    let isOfMany = !pages.isEmpty && (kind == .allPages || kind == .refetch)
    progress = isOfMany ? PageProgress() : nil
  }
}

/// The pages that the attempts of one run have fetched, so that a retry goes on where one failed.
///
/// An attempt that was given up must not add to what a later one fetches.
final class PageProgress<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  typealias Page = PaginatedPage<PageID, PageValue>

  struct Progress: Sendable {
    var attempt = 0
    var retry = 0
    var pages: [Page]

    init() { pages = [] }
  }

  let progress: Mutex<Progress>

  init() { progress = Mutex(Progress()) }

  /// Begins an attempt, with the pages that are there already. One that was given up before it began,
  /// or that a later retry has overtaken, does not take the place of the present one.
  func begin(
    _ retry: Int = 0, isGivenUp: Bool = false
  ) -> (attempt: Int, pages: [Page]) {
    progress.withLock {
      if isGivenUp || retry < $0.retry { return (-1, $0.pages) }
      $0.retry = retry
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
