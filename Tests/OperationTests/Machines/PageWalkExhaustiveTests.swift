import TestSupport
import Testing

@testable import Operation

/// A walk requests the pages of its run, each once: one page of a kind, the picked pages, or as many
/// as the list had, from one to the next, until there is no next page or a page repeats. It returns
/// the fetched pages, in the order of their fetches, and their place in the list. A partial page
/// changes nothing. A walk that starts again with the fetched pages continues after them.
@Suite("PageWalk, every sequence") struct PageWalkExhaustiveTests {
  /// The neighbours of a page, as the server returns them.
  private struct Entry: Sendable, Equatable {
    var before: Int?
    var after: Int?
    var isNew = false
  }

  private typealias Page = PaginatedPage<Int, Entry>
  private typealias Pages = PaginatedPages<Int, Entry>
  private typealias Start = PageStart<Int, Entry>

  private struct Linked: PaginatedRequest {
    typealias PageFailure = any Error

    let initialPageId = 0
    var path: OperationPath { ["linked"] }

    func pageId(
      after page: Page, using paging: PaginatedPaging<Int, Entry>, in context: OperationContext
    ) -> Int? { page.value.after }

    func pageId(
      before page: Page, using paging: PaginatedPaging<Int, Entry>, in context: OperationContext
    ) -> Int? { page.value.before }

    func fetchPage(
      using paging: PaginatedPaging<Int, Entry>, in context: OperationContext,
      with continuation: OperationContinuation<Entry, any Error>
    ) async throws -> Entry { fatalError("the test performs the walk") }
  }

  private enum Refetch: CaseIterable {
    case all, first, last, twice, strangers, nothing

    var pages: PaginatedRefetch<Int, Entry> {
      switch self {
      case .all: .allPages
      case .first: .firstPage
      case .last: .pages { Array($0.ids.suffix(1)) }
      case .twice: .pages { $0.ids.reversed() + $0.ids }
      case .strangers: .pages { [90] + $0.ids.dropFirst() + [91] }
      case .nothing: .pages { _ in [] }
      }
    }

    /// The picked pages; nil if the walk follows the pages, or fetches one.
    func picks(_ ids: [Int]) -> [Int]? {
      switch self {
      case .all, .first: nil
      case .last: Array(ids.suffix(1))
      case .twice: ids.reversed()
      case .strangers: Array(ids.dropFirst())
      case .nothing: []
      }
    }
  }

  private enum Step {
    case start(PaginatedRunKind, [Int], Refetch)
    /// The server returns the requested page. Its next page follows, is far away, is the first one,
    /// is the page itself, or does not exist.
    case answerFollowed, answerFollowedFar, answerByFirst, answerByItself, answerLast
    case yield, retry
  }

  private struct Walk {
    private var walk: PageWalk<Linked>?
    private var start = Start()
    private var refetch = Refetch.all
    private var known: [Page] = []
    private var fetched: [Page] = []

    private var kind: PaginatedRunKind { known.isEmpty ? .initialPage : start.kind }
    private var isWhole: Bool { kind == .allPages || (kind == .refetch && refetch == .all) }
    private var picks: [Int]? { kind == .refetch ? refetch.picks(known.map(\.id)) : nil }

    mutating func take(_ step: Step) throws -> Bool {
      if case .start(let kind, let ids, let refetch) = step {
        guard walk == nil else { return false }
        begin(kind, ids, refetch)
      } else {
        guard let walk, let id = expected.first else { return false }
        switch step {
        case .start: return false
        case .yield: try checkPartial(id, walk)
        case .retry: retry()
        case .answerFollowed: try answer(id, after: id + 1)
        case .answerFollowedFar: try answer(id, after: id + 10)
        case .answerByFirst: try answer(id, after: fetched.first?.id ?? known.first?.id ?? id)
        case .answerByItself: try answer(id, after: id)
        case .answerLast: try answer(id, after: nil)
        }
      }
      try check()
      return true
    }

    private mutating func begin(_ kind: PaginatedRunKind, _ ids: [Int], _ refetch: Refetch) {
      known = ids.map { Page(id: $0, value: Entry(before: $0 - 1, after: $0 + 1)) }
      self.refetch = refetch
      start = Start(kind: kind, pages: Pages(known), refetch: refetch.pages)
      walk = PageWalk(start)
    }

    private mutating func retry() {
      walk = PageWalk(start)
      for page in fetched { walk?.take(page) }
    }

    private mutating func answer(_ id: Int, after next: Int?) throws {
      guard var walk else { return }
      let entry = Entry(before: id - 1, after: next, isNew: true)
      let page = walk.page(id, entry, of: Linked(), in: OperationContext())
      try mustHold(
        page.edges?.before == id - 1 && page.edges?.after == next, "\(id) has its neighbours")
      walk.take(page)
      self.walk = walk
      fetched.append(page)
    }

    /// The pages that the walk still has to request, as far as they are known.
    private var expected: [Int] {
      if let picks { return picks.filter { id in !fetched.contains { $0.id == id } } }
      guard let last = fetched.last else {
        switch kind {
        case .initialPage: return [0]
        case .nextPage: return known.compactMap(\.value.after).suffix(1)
        case .previousPage: return Array(known.compactMap(\.value.before).prefix(1))
        case .allPages, .refetch: return known.prefix(1).map(\.id)
        }
      }
      guard isWhole, fetched.count < known.count, let next = last.value.after,
        !fetched.contains(where: { $0.id == next })
      else { return [] }
      return [next]
    }

    private func check() throws {
      guard let walk else { return }
      let next = walk.nextID(of: Linked(), in: OperationContext())
      try mustHold(next == expected.first, "\(expected) are requested, and not \(next ?? -1)")
      let ids = fetched.map(\.id)
      try mustHold(Set(ids).count == ids.count, "a page is requested twice")
      try mustHold(ids.count <= max(known.count, 1), "more pages are requested than were present")
      try mustHold(Array(walk.result().pages) == fetched, "the result has the fetched pages")
      try mustHold(walk.result().kind == kind, "the result is for the \(kind)")
      try mustHold(walk.result().place == place, "the place is \(place)")
      try checkPaging(of: walk)
    }

    private var place: PagePlace<Int> {
      switch kind {
      case .initialPage: .initial
      case .nextPage: .after(known[known.count - 1].id)
      case .previousPage: .before(known[0].id)
      case .allPages, .refetch: isWhole ? .whole : .present
      }
    }

    /// The request reads the pages that were present, and in a longer run also the fetched ones.
    private func checkPaging(of walk: PageWalk<Linked>) throws {
      let paging = walk.paging(for: 7)
      try mustHold(
        paging.pageId == 7 && paging.kind == kind,
        "the request gets the page and the kind of the run")
      let visible = isWhole || picks != nil ? fetched : []
      let old = known.map { page in visible.first { $0.id == page.id } ?? page }
      let new = visible.filter { page in !known.contains { $0.id == page.id } }
      try mustHold(
        Array(paging.pages) == old + new, "\((old + new).map(\.id)) are passed to the request")
    }

    private func checkPartial(_ id: Int, _ walk: PageWalk<Linked>) throws {
      let page = Page(id: id, value: Entry(isNew: true))
      let result = walk.result(with: page)
      try mustHold(Array(result.pages) == fetched + [page], "the result includes the partial page")
      let place = place == .whole ? .present : place
      try mustHold(result.place == place, "a partial page replaces no other page")
    }
  }

  @Test("A walk requests each page of its run once, and returns the fetched pages")
  func everySequence() {
    let kinds: [PaginatedRunKind] = [.initialPage, .nextPage, .previousPage, .allPages]
    let starts = [[], [3], [0, 1, 2, 5]].flatMap { ids in
      kinds.map { Step.start($0, ids, .first) }
        + Refetch.allCases.map { Step.start(.refetch, ids, $0) }
    }
    let answers: [Step] = [
      .answerFollowed, .answerFollowedFar, .answerByFirst, .answerByItself, .answerLast, .yield,
      .retry,
    ]
    exhaust("PageWalk", events: starts + answers, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
