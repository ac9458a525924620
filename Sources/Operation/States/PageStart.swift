import Synchronization

/// The input of a run of a paginated request. Copies of the run's context share it.
final class PageStart<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  let kind: PaginatedRunKind
  /// The pages that the state has when the run begins.
  let pages: PaginatedPages<PageID, PageValue>
  /// The stamp of the value with these pages.
  let stamp: ValueStamp
  let refetch: PaginatedRefetch<PageID, PageValue>
  /// The pages that the attempts of the run have fetched; `nil` for a run of one page, of which a
  /// retry has nothing to reuse.
  let progress: PageProgress<PageID, PageValue>?

  init(
    kind: PaginatedRunKind = .initialPage, pages: PaginatedPages<PageID, PageValue> = [],
    stamp: ValueStamp = .initial, refetch: PaginatedRefetch<PageID, PageValue> = .allPages
  ) {
    self.kind = kind
    self.pages = pages
    self.stamp = stamp
    self.refetch = refetch
    let fetchesSeveral = !pages.isEmpty && (kind == .allPages || kind == .refetch)
    progress = fetchesSeveral ? PageProgress() : nil
  }
}

/// The pages that the attempts of one run have fetched, so that a retry resumes at the page that
/// failed.
///
/// The lock guards the number of the current attempt and the pages. Invariant: only the current
/// attempt adds pages, so one that a timeout has abandoned cannot interleave its own.
final class PageProgress<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  private struct State {
    var attempt = 0
    var retry = 0
    var pages: [PaginatedPage<PageID, PageValue>] = []
  }

  private let state = Mutex(State())

  /// Begins an attempt, and returns its number and the pages that earlier attempts have fetched.
  ///
  /// An attempt that is cancelled already, or that belongs to an earlier retry than the current
  /// one, does not become the current attempt: its number is -1.
  func begin(
    _ retry: Int = 0, isGivenUp: Bool = false
  ) -> (attempt: Int, pages: [PaginatedPage<PageID, PageValue>]) {
    state.withLock { state in
      if isGivenUp || retry < state.retry { return (-1, state.pages) }
      state.retry = retry
      state.attempt += 1
      return (state.attempt, state.pages)
    }
  }

  /// Adds a page, unless the attempt is not the current one.
  func add(_ page: PaginatedPage<PageID, PageValue>, attempt: Int) {
    state.withLock { if $0.attempt == attempt { $0.pages.append(page) } }
  }

  /// Ends an attempt that has fetched all its pages: a later one, after a failure of a modifier, begins anew.
  func end(attempt: Int) {
    let released = state.withLock {
      $0.attempt == attempt ? exchange(&$0.pages, with: []) : []
    }
    withExtendedLifetime(released) {}
  }
}
