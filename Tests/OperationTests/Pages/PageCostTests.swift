import Testing

@testable import Operation

/// What a page costs with many pages there.
@Suite(.serialized) struct PageCostTests {
  /// The time of the fastest of several repetitions, which is the one that was disturbed least.
  private func fastest(
    _ repetitions: Int = 7, _ body: () async throws -> Void
  ) async rethrows -> Duration {
    var best = Duration.seconds(1_000)
    for _ in 0..<repetitions { best = min(best, try await ContinuousClock().measure(body)) }
    return best
  }

  @Test("To append and to look up costs the same at ten thousand pages as at ten")
  func valueCost() async {
    func cost(_ count: Int) async -> Duration {
      var pages = PaginatedPages<Int, String>.written(0..<count)
      var id = count
      return await fastest {
        for _ in 0..<200 {
          pages.append(PaginatedPage(id: id, value: "new"))
          precondition(pages[id: id / 2] != nil && pages.index(id: -1) == nil)
          id += 1
        }
      }
    }
    // Both beyond the size from which on positions are kept.
    let few = await cost(20)
    let many = await cost(10_000)
    #expect(many < few * 5, "\(few) with 20 pages, \(many) with 10,000")
  }

  enum Reader: CaseIterable {
    case none, looks, keeps
  }

  /// So many that one copy of them would cost more than all the rest of a run.
  @Test(
    "A next page costs the same at a hundred thousand pages as at ten, whoever reads them",
    arguments: Reader.allCases)
  func nextPageCost(reader: Reader) async throws {
    func cost(_ count: Int) async throws -> Duration {
      let store = OperationClient(defaults: .quiet()).store(
        for: Paginated<Int, Int>(
          path: ["cost"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
        ) { paging, _ in paging.pageId },
        initialValue: PaginatedPages((0..<count).map { PaginatedPage(id: $0, value: $0) }))
      let kept = Monitor<PaginatedState<Int, Int, any Error>?>(nil)
      let subscription =
        switch reader {
        case .none: OperationSubscription?.none
        case .looks: store.subscribe { _ in }
        case .keeps:
          store.subscribe { event in
            if case .stateChanged(let state) = event { kept.update { $0 = state } }
          }
        }
      defer { subscription?.cancel() }
      for _ in 0..<5 { try await store.fetchNextPage() }
      return try await fastest { for _ in 0..<50 { try await store.fetchNextPage() } }
    }
    let few = try await cost(10)
    let many = try await cost(100_000)
    #expect(many < few * 5, "\(few) with 10 pages, \(many) with 100,000")
  }

  @Test("A next page is put behind those that are there, which stay where they are")
  func nextPageInPlace() async throws {
    let store = try await numbers(PageServer(0...1_000), there: 0...40)
    var moves = 0
    var place: UnsafeRawPointer?
    // Of the last chunk, as those before it do not change.
    for _ in 0..<100 {
      try await store.fetchNextPage()
      let next = store.currentValue.tail.withUnsafeBytes { $0.baseAddress }
      if next != place { moves += 1 }
      place = next
    }
    // A chunk that grows moves each time that its place has become too small: by far not each time.
    #expect(moves < 10)
  }

  @Test("A list that has been long keeps no table for it, and chunks stay as large as they were")
  func givenBack() {
    var pages = PaginatedPages<Int, String>.written(0..<10_000)
    let full = pages
    for id in 0..<200 { pages.insert(PaginatedPage(id: -1 - id, value: "new"), at: 3_000) }
    let size = PaginatedPages<Int, String>.chunkSize
    #expect(pages.rest.content.chunks.allSatisfy { $0.count == size && $0.capacity < 2 * size })
    pages.removeFirst(9_000)
    pages.removeLast(1_190)
    #expect(pages.count == 10 && pages.rest.content.positions.buckets.count == 1)
    #expect(pages.rest.content.chunks.isEmpty)
    pages.removeFirst(10)
    #expect(pages.rest.isNone && full.count == 10_000 && full.index(id: 9_999) == 9_999)
  }

  @Test("A table of positions grows by one bucket at a time, and loses nothing")
  func growingTable() {
    var table = ChunkedDictionary<Int, Int>(minimumCapacity: 0)
    for key in 0..<20_000 {
      let old = table.buckets.count
      table[key] = -key
      #expect(table.buckets.count - old <= 1 && table.buckets.count <= key / 128 + 1)
    }
    #expect(table.count == 20_000 && (0..<20_000).allSatisfy { table[$0] == -$0 })
    #expect(table.buckets.count > 100 && table.buckets.allSatisfy { $0.count < 1_000 })
  }

  @Test("All pages cost the same for each page, however many there are")
  func allPagesCost() async throws {
    func cost(_ count: Int) async throws -> Duration {
      let store = OperationClient(defaults: .quiet()).store(
        for: Paginated<Int, Int>(
          path: ["cost"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
        ) { paging, _ in paging.pageId },
        initialValue: PaginatedPages((0..<count).map { PaginatedPage(id: $0, value: $0) }))
      return try await fastest(3) {
        let pages = try await store.fetchAllPages()
        #expect(pages.count == count)
      } / count
    }
    let few = try await cost(100)
    let many = try await cost(5_000)
    #expect(many < few * 5, "\(few) a page of 100, \(many) a page of 5,000")
  }

  @Test("Many next pages that are asked for at once, each for itself, follow each other")
  func manyAtOnce() async throws {
    func cost(_ count: Int) async throws -> Duration {
      let store = try await numbers(PageServer(0...1_000), there: 0...0, isDeduplicated: false)
      return try await ContinuousClock().measure {
        let tasks = (0..<count).map { _ in store.fetchNextPageTask() }
        #expect(store.activeTasks.count == count)
        let last = try await tasks[count - 1].runIfNeeded()
        #expect(last?.id == count && store.currentValue.ids == Array(0...count))
      }
    }
    // Each waits for all before it, so that a cancelled one lets nobody overtake: a square.
    let few = try await cost(20)
    let many = try await cost(100)
    #expect(many < few * 25 * 8, "\(few) for 20 calls, \(many) for 100")
  }
}
