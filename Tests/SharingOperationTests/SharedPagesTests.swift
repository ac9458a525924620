import Operation
import SharingOperation
import Testing

@Suite struct SharedPagesTests {
  @Test("A wrapper of pages has the methods of the store, with and without a default")
  func pages() async throws {
    let client = OperationClient.quiet()
    let request = Paginated(
      path: ["numbers"], initialPageId: 0,
      nextPageId: { page, _ in page.id < 2 ? page.id + 1 : nil },
      previousPageId: { page, _ in page.id > -1 ? page.id - 1 : nil }
    ) { paging, _ in [paging.pageId] }
    let fallback = PaginatedPages<Int, [Int]>([PaginatedPage(id: 9, value: [9])])
    @SharedQuery(request, client: client) var numbers
    @SharedQuery(request, default: fallback, client: client) var defaulted
    #expect(numbers.isEmpty)
    #expect(defaulted == fallback)
    try await $numbers.fetch()
    try await $numbers.fetchNextPage()
    try await $defaulted.fetchPreviousPage()
    #expect(numbers.ids == [-1, 0, 1])
    #expect(defaulted.ids == [-1, 0, 1])
    #expect($numbers.hasNextPage && $defaulted.hasNextPage)
    #expect($numbers.nextPageId == 2)
    #expect(!$numbers.hasPreviousPage)
    #expect($numbers.store === $defaulted.store)
    let all = try await $numbers.fetchAllPages()
    #expect(all.count == 3)
    #expect(try await $numbers.refetchAllPages() == all)
    #expect($numbers.valueUpdateCount == 5)
    let next = try await $numbers.fetchNextPageTask().runIfNeeded()
    #expect(next?.id == 2)
    let none = try await $defaulted.fetchNextPage()
    #expect(none == nil)
  }

  @Test("A wrapped value is the initial value of pages, and of a mutation")
  func wrappedValue() {
    let client = OperationClient.quiet()
    let request = Paginated(path: ["numbers"], initialPageId: 0, nextPageId: { _, _ in nil }) {
      (_, _) in [0]
    }
    @SharedQuery(request, client: client) var numbers = [PaginatedPage(id: 9, value: [9])]
    #expect(numbers.ids == [9])
    #expect($numbers.valueUpdateCount == 0 && $numbers.initialValue.ids == [9])
    let mutation = Mutation(path: ["length"]) { (text: String, _) in text.count }
    @SharedQuery(mutation, client: client) var length = 3
    #expect(length == 3 && $length.history.isEmpty)
  }

  @Test("A wrapper of a mutation has the methods of the store, with and without a default")
  func mutation() async throws {
    let client = OperationClient(defaults: .testing)
    let request = Mutation(path: ["length"]) { (text: String, _) in text.count }
    @SharedQuery(request, client: client) var length
    @SharedQuery(request, default: 0, client: client) var defaulted
    #expect(length == nil)
    #expect(defaulted == 0)
    await #expect(throws: MutationError.noArguments) { try await $length.retryLatest() }
    await #expect(throws: MutationError.noArguments) { try await $length.fetch() }
    #expect(throws: MutationError.noArguments) { try $length.runTask() }
    try await $length.mutate(with: "three")
    #expect(length == 5 && defaulted == 5)
    try await $defaulted.mutateTask(with: "four").runIfNeeded()
    #expect(try await $defaulted.retryLatest() == 4)
    #expect($length.history.map(\.arguments) == ["three", "four", "four"])
    #expect($defaulted.history.count == 3)
  }
}
