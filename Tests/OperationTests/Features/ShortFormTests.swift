import Operation
import Testing

private struct Number: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> Int { 3 }
}

private struct RefusedNumber: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws(Refused) -> Int { throw Refused() }
}

private struct Letters: SimplePaginatedRequest, Hashable {
  let initialPageId = 0

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { page.id < 2 ? page.id + 1 : nil }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext
  ) async throws -> String { "page \(paging.pageId)" }
}

private struct Double: SimpleMutationRequest, Hashable {
  func mutate(with number: Int, in context: OperationContext) async throws -> Int { number * 2 }
}

private struct Forget: SimpleMutationRequest, Hashable {
  func mutate(with number: Int, in context: OperationContext) async throws {}
}

@Suite struct ShortFormTests {
  private let client = OperationClient(defaults: .testing)

  @Test("A query of three lines is fetched, cached, and modified like any other") func query()
    async throws
  {
    #expect(try await client.fetch(Number()) == 3)
    #expect(client.store(for: Number()).currentValue == 3)
    #expect(try await Number().retry(limit: 1).run() == 3)
  }

  @Test("A short query has the type of its failure") func typedFailure() async {
    await #expect(throws: Refused()) { try await client.fetch(RefusedNumber()) }
    let error: Refused? = client.store(for: RefusedNumber()).error
    #expect(error == Refused())
  }

  @Test("Short pages are fetched one after the other") func pages() async throws {
    let store = client.store(for: Letters())
    try await store.fetch()
    try await store.fetchNextPage()
    #expect(store.currentValue.map(\.value) == ["page 0", "page 1"])
  }

  @Test("A short mutation is called with arguments, with and without a value")
  func mutation() async throws {
    #expect(try await client.store(for: Double()).mutate(with: 4) == 8)
    try await client.store(for: Forget()).mutate(with: 4)
    #expect(client.store(for: Forget()).history.map(\.arguments) == [4])
  }
}
