import Synchronization

/// The input of a run of a paginated request, and the pages that its attempts have fetched, so that a retry resumes
/// at the page that failed. Copies of the run's context share it.
///
/// The lock guards the number of the current attempt and the fetched pages. Invariant: only the current attempt adds
/// pages, so one that a timeout has abandoned cannot interleave its own.
final class PageStart<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  private struct Progress {
    var attempt = 0
    var retry = 0
    var fetched: [PaginatedPage<PageID, PageValue>] = []
  }

  let kind: PaginatedRunKind
  /// The pages that the state has when the run begins.
  let pages: PaginatedPages<PageID, PageValue>
  /// The stamp of the value with these pages.
  let stamp: ValueStamp
  let refetch: PaginatedRefetch<PageID, PageValue>
  private let progress = Mutex(Progress())

  init(
    kind: PaginatedRunKind = .initialPage, pages: PaginatedPages<PageID, PageValue> = [],
    stamp: ValueStamp = .initial, refetch: PaginatedRefetch<PageID, PageValue> = .allPages
  ) {
    self.kind = kind
    self.pages = pages
    self.stamp = stamp
    self.refetch = refetch
  }

  /// Begins an attempt, and returns its number and the pages that earlier attempts have fetched.
  ///
  /// An attempt that is cancelled already, or that belongs to an earlier retry than the current
  /// one, does not become the current attempt: its number is -1.
  func begin(
    _ retry: Int = 0, isGivenUp: Bool = false
  ) -> (attempt: Int, fetched: [PaginatedPage<PageID, PageValue>]) {
    progress.withLock { progress in
      if isGivenUp || retry < progress.retry { return (-1, progress.fetched) }
      progress.retry = retry
      progress.attempt += 1
      return (progress.attempt, progress.fetched)
    }
  }

  /// Adds a page, unless the attempt is not the current one.
  func add(_ page: PaginatedPage<PageID, PageValue>, attempt: Int) {
    progress.withLock { if $0.attempt == attempt { $0.fetched.append(page) } }
  }

  /// Ends an attempt that has fetched all its pages: a later one, after a failure of a modifier, begins anew.
  func end(attempt: Int) {
    let released = progress.withLock {
      $0.attempt == attempt ? exchange(&$0.fetched, with: []) : []
    }
    withExtendedLifetime(released) {}
  }
}
