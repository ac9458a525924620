import Operation
import Synchronization
import Testing

struct FriendsQuery: PaginatedRequest, Hashable {
  typealias PageID = Int
  typealias PageValue = [String]
  let userId: Int
  let initialPageId = 0

  func pageId(
    after page: PaginatedPage<Int, [String]>, using paging: PaginatedPaging<Int, [String]>,
    in context: OperationContext
  ) -> Int? { page.id < 3 ? page.id + 1 : nil }
  func pageId(
    before page: PaginatedPage<Int, [String]>, using paging: PaginatedPaging<Int, [String]>,
    in context: OperationContext
  ) -> Int? { page.id > -2 ? page.id - 1 : nil }
  func fetchPage(
    using paging: PaginatedPaging<Int, [String]>, in context: OperationContext,
    with continuation: OperationContinuation<[String], any Error>
  ) async throws -> [String] { ["\(paging.pageId)"] }
}
func friends(_ id: Int) -> some PaginatedRequest<Int, [String]> { FriendsQuery(userId: id) }

extension PaginatedPages<Int, [String]> {
  func shout() -> Self {
    self.map { page in
      var page = page
      page.value = page.value.map { $0 + "!" }
      return page
    }
  }
}

struct Send: MutationRequest, Hashable {
  typealias Value = Void
  struct Arguments: Sendable { let userId: Int }
  func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<Void, any Error>
  ) async throws {}
}

@Suite struct SmokePages {
  @Test("pages") func pages() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: FriendsQuery(userId: 1).retry(limit: 2).maxPages(6))
    let page = try await store.fetchNextPage()
    #expect(page?.id == 0)
    #expect(try await store.fetchNextPage()?.id == 1)
    async let a = store.fetchNextPage()
    async let b = store.fetchPreviousPage()
    _ = try await (a, b)
    #expect(store.currentValue.ids == [-1, 0, 1, 2])
    #expect(store.hasNextPage && store.nextPageId == 3 && store.previousPageId == -2)
    store.withExclusiveAccess { store.currentValue = store.currentValue.shout() }
    #expect(store.nextPageId == 3)
    #expect(store.currentValue.first?.value == ["-1!"])
    #expect(try await store.fetchAllPages().count == 4)
    #expect(store.currentValue.first?.value == ["-1"])
    #expect(try await store.fetchNextPage()?.id == 3)
    #expect(try await store.fetchNextPage() == nil)
    try await store.fetch()
    #expect(client.store(for: friends(1)).currentValue.count == 5)
  }
  @Test("mutation") func mutation() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: Send())
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    await #expect(throws: MutationError.noArguments) { try await store.fetch() }
    try await store.mutate(with: .init(userId: 3))
    try await store.fetch()
    try await store.retryLatest()
    #expect(store.history.count == 3 && store.history.allSatisfy { $0.arguments.userId == 3 })
    #expect(store.history.count { $0.status.isSuccess } == 3)
    let create = client.store(
      for: Mutation(path: ["create"]) { (title: String, context) in title.count }.serialized(in: 1))
    #expect(try await create.mutate(with: "abc") == 3)
  }
}
