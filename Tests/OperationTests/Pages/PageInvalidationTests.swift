import Operation
import Testing

@Suite struct PageInvalidationTests {
  @Test("One page more does not make pages fresh that were invalidated; all of them again do")
  func pageMore() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
    let request = Paginated(
      path: ["numbers"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
      previousPageId: { page, _ in page.id - 1 }
    ) { paging, _ in paging.pageId }
    let store = client.store(for: request.neverStale())
    try await store.fetch()
    #expect(!store.isStale)
    store.invalidate()
    try await store.fetchNextPage()
    try await store.fetchPreviousPage()
    #expect(store.isStale)
    #expect(store.currentValue.ids == [-1, 0, 1])
    try await store.fetchAllPages()
    #expect(!store.isStale)
  }
}
