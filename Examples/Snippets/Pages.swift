// The code of the guide Pages: the build compiles it, and a test compares it with the guide.

struct Archive: Sendable {
  var letters: @Sendable (_ year: Int) async throws -> [Letter] = { _ in [] }
  var search: @Sendable (_ text: String, _ cursor: String) async throws -> SearchResult = { _, _ in
    SearchResult(letters: [], nextCursor: nil)
  }
}

extension OperationContext {
  var archive: Archive {
    get { self[ArchiveKey.self] }
    set { self[ArchiveKey.self] = newValue }
  }

  private enum ArchiveKey: Key {
    static var defaultValue: Archive { Archive() }
  }
}

// snippet: describe the pages
import Operation

struct Letter: Sendable, Equatable, Identifiable {
  let id: Int
  var text: String
}

struct LettersRequest: SimplePaginatedRequest, Hashable {
  let years: ClosedRange<Int>
  let initialPageId: Int

  func pageId(
    after page: PaginatedPage<Int, [Letter]>, using paging: PaginatedPaging<Int, [Letter]>,
    in context: OperationContext
  ) -> Int? {
    page.id < years.upperBound ? page.id + 1 : nil
  }

  func pageId(
    before page: PaginatedPage<Int, [Letter]>, using paging: PaginatedPaging<Int, [Letter]>,
    in context: OperationContext
  ) -> Int? {
    page.id > years.lowerBound ? page.id - 1 : nil
  }

  func fetchPage(
    using paging: PaginatedPaging<Int, [Letter]>, in context: OperationContext
  ) async throws -> [Letter] {
    try await context.archive.letters(paging.pageId)
  }
}
// end

// snippet: fetch the next the previous and all pages
func readAround(_ store: OperationStore<LettersRequest.State>) async throws {
  try await store.fetchNextPage()
  async let later = store.fetchNextPage()
  async let earlier = store.fetchPreviousPage()
  for page in try await [earlier, later] {
    print(page.map { "\($0.id): \($0.value.count) letters" } ?? "no further year")
  }
  print(store.currentValue.ids, store.hasNextPage, store.hasPreviousPage)
}
// end

// snippet: read all pages
func readAll(_ store: OperationStore<LettersRequest.State>) async throws -> [Letter] {
  while try await store.fetchNextPage() != nil {}
  return store.currentValue.flatMap(\.value)
}
// end

// snippet: cursors
struct SearchResult: Sendable, Equatable {
  let letters: [Letter]
  let nextCursor: String?
}

func lettersAbout(_ text: String) -> Paginated<String, SearchResult> {
  Paginated(
    path: ["letters-about", text], initialPageId: "",
    nextPageId: { page, _ in page.value.nextCursor }
  ) { paging, context in
    try await context.archive.search(text, paging.pageId)
  }
}
// end

// snippet: limit a long list
func recentLetters() -> some PaginatedRequest<Int, [Letter]> {
  LettersRequest(years: 1890...1910, initialPageId: 1900)
    .maxPages(5)
    .refetching(.pages { pages in pages.suffix(2).map(\.id) })
}
// end

// snippet: follow each page
func loggedLetters() -> some PaginatedRequest<Int, [Letter]> {
  LettersRequest(years: 1890...1910, initialPageId: 1900).handlePages { event in
    switch event {
    case .began(let year, _): print("reads", year)
    case .ended(let year, .success(let letters), _): print(year, "has", letters.count, "letters")
    case .ended(let year, .failure(let error), _): print(year, "failed:", error)
    }
  }
}
// end

// snippet: change a cached page
func remove(_ letter: Letter.ID, from store: OperationStore<LettersRequest.State>) {
  store.withExclusiveAccess {
    store.currentValue = store.currentValue.map { page in
      var page = page
      page.value.removeAll { $0.id == letter }
      return page
    }
  }
}
// end
