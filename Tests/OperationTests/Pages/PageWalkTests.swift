import Testing

@testable import Operation

/// The plan of a page run, which is a pure value.
@Suite struct PageWalkTests {
  typealias Walk = PageWalk<Numbers>
  typealias Page = PaginatedPage<Int, String>

  private let server = PageServer(-5...5)
  private var request: Numbers { Numbers(server: server) }

  private func walk(
    _ kind: PaginatedRunKind, _ pages: [Int], _ refetch: PaginatedRefetch<Int, String> = .allPages
  ) -> Walk {
    Walk(PageStart(kind: kind, pages: .written(pages), refetch: refetch))
  }

  /// Fetches until the end of the walk.
  private func fetch(_ walk: inout Walk, of request: Numbers) -> [Int] {
    var ids: [Int] = []
    while let id = walk.nextID(of: request, in: OperationContext()), ids.count < 100 {
      ids.append(id)
      walk.take(walk.page(id, "\(id)", of: request, in: OperationContext()))
    }
    return ids
  }

  @Test(
    "A walk fetches the pages of its kind",
    arguments: [
      (.initialPage, [], [0], .initial), (.nextPage, [], [0], .initial),
      (.previousPage, [], [0], .initial), (.allPages, [], [0], .initial),
      (.refetch, [], [0], .initial),
      (.nextPage, [1, 2], [3], .after(2)), (.nextPage, [4, 5], [], .after(5)),
      (.previousPage, [1, 2], [0], .before(1)), (.previousPage, [-5, -4], [], .before(-5)),
      (.allPages, [2, 3, 4], [2, 3, 4], .whole), (.allPages, [4, 5, 6], [4, 5], .whole),
      (.refetch, [2, 3], [2, 3], .whole), (.initialPage, [2], [0], .initial),
    ] as [(PaginatedRunKind, [Int], [Int], PagePlace<Int>)])
  func kinds(
    _ kind: PaginatedRunKind, _ there: [Int], _ fetched: [Int], _ place: PagePlace<Int>
  ) {
    var walk = walk(kind, there)
    #expect(fetch(&walk, of: request) == fetched)
    #expect(walk.result().pages.ids == fetched)
    #expect(walk.result().place == place)
  }

  @Test("A refetch of the first page fetches that page and replaces it alone")
  func firstPage() {
    var walk = walk(.refetch, [3, 4], .firstPage)
    #expect(fetch(&walk, of: request) == [3])
    #expect(walk.result().place == .present)
  }

  @Test("A refetch of picked pages fetches those that exist, each once, in the picked order")
  func pickedPages() {
    var walk = walk(.refetch, [1, 2, 3], .pages { [$0.ids[2], $0.ids[0], 9, $0.ids[2]] })
    #expect(fetch(&walk, of: request) == [3, 1])
    #expect(walk.result().place == .present)
  }

  @Test("A refetch that picks nothing fetches nothing")
  func nothingPicked() {
    var walk = walk(.refetch, [1, 2, 3], .pages { _ in [] })
    #expect(fetch(&walk, of: request) == [])
    #expect(walk.result().pages.isEmpty)
  }

  @Test("The pages of a refetch do not affect a run for all pages")
  func allPagesWhateverTheRefetch() {
    var walk = walk(.allPages, [1, 2, 3], .firstPage)
    #expect(fetch(&walk, of: request) == [1, 2, 3])
  }

  @Test("A walk over all pages ends where an identifier is repeated")
  func circle() {
    let circle = Paginated<Int, String>(
      path: ["circle"], initialPageId: 0, nextPageId: { page, _ in (page.id + 1) % 3 }
    ) { _, _ in "" }
    var walk = PageWalk<Paginated<Int, String>>(
      PageStart(kind: .allPages, pages: .written([0, 1, 2, 7, 8])))
    var ids: [Int] = []
    while let id = walk.nextID(of: circle, in: OperationContext()), ids.count < 100 {
      ids.append(id)
      walk.take(walk.page(id, "", of: circle, in: OperationContext()))
    }
    #expect(ids == [0, 1, 2])
  }

  @Test("A page has the identifiers of those beside it")
  func edges() {
    let page = walk(.nextPage, [4]).page(5, "", of: request, in: OperationContext())
    #expect(page.edges?.before == 4 && page.edges?.after == nil)
  }

  @Test("A request receives the earlier pages, with those that the run has fetched")
  func paging() {
    var walk = walk(.allPages, [1, 2])
    #expect(walk.paging(for: 1).pages.elementValues == ["1w", "2w"])
    walk.take(Page(id: 1, value: "new"))
    #expect(walk.paging(for: 2).pages.elementValues == ["new", "2w"])
    #expect(walk.paging(for: 2).pageId == 2 && walk.paging(for: 2).kind == .allPages)
  }

  @Test("A partial page is part of the yielded result, and not of the final one")
  func partial() {
    var walk = walk(.allPages, [1, 2])
    walk.take(Page(id: 1, value: "new"))
    let partial = walk.result(with: Page(id: 2, value: "half"))
    #expect(partial.pages.elementValues == ["new", "half"])
    #expect(partial.place == .present)
    #expect(walk.result().pages.ids == [1])
  }

  @Test("Progress keeps the pages of the current attempt, and none of an abandoned one")
  func progress() {
    let progress = PageStart<Int, String>()
    let first = progress.begin()
    #expect(first.fetched.isEmpty)
    progress.add(Page(id: 1, value: ""), attempt: first.attempt)
    let second = progress.begin()
    #expect(second.fetched.map(\.id) == [1])
    progress.add(Page(id: 2, value: ""), attempt: first.attempt)
    #expect(progress.begin().fetched.map(\.id) == [1])
  }
}
