import TestSupport
import Testing

@testable import Operation

/// The cost of a page when the state has many.
@Suite(.serialized) struct PageCostTests {
  /// The time of the fastest of several repetitions, which is the one that was disturbed least.
  private func fastest(
    _ repetitions: Int = 7, _ body: () async throws -> Void
  ) async rethrows -> Duration {
    var best = Duration.seconds(1_000)
    for _ in 0..<repetitions { best = min(best, try await ContinuousClock().measure(body)) }
    return best
  }

  @Test("An append and a lookup cost the same at ten thousand pages as at ten")
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
    // Both are long arrays.
    let few = await cost(20)
    let many = await cost(10_000)
    #expect(many < few * 5, "\(few) with 20 pages, \(many) with 10,000")
  }

  enum Reader: CaseIterable {
    case none, receives, retains
  }

  /// With so many pages, one copy of them costs more than the rest of a run.
  @Test(
    "A next page costs the same at a hundred thousand pages as at ten, with any reader",
    arguments: Reader.allCases)
  func nextPageCost(reader: Reader) async throws {
    typealias Pages = PaginatedState<Int, Int, any Error>
    let kept = Monitor<Pages?>(nil)
    var subscriptions: [OperationSubscription] = []
    let stores = [10, 100_000].map { count in
      let store = OperationClient(defaults: .quiet()).store(
        for: Paginated<Int, Int>(
          path: ["cost"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
        ) { paging, _ in paging.pageId },
        initialValue: PaginatedPages((0..<count).map { PaginatedPage(id: $0, value: $0) }))
      switch reader {
      case .none: break
      case .receives: subscriptions.append(store.subscribe { _ in })
      case .retains:
        subscriptions.append(
          store.subscribe { event in
            if case .stateChanged(let state) = event { kept.update { $0 = state } }
          })
      }
      return store
    }
    defer { for subscription in subscriptions { subscription.cancel() } }
    for store in stores { for _ in 0..<5 { try await store.fetchNextPage() } }
    var best = [Duration.seconds(1_000), .seconds(1_000)]
    // In turn, so that other tests disturb both alike.
    for _ in 0..<7 {
      for (index, store) in stores.enumerated() {
        let time = try await fastest(1) { for _ in 0..<50 { try await store.fetchNextPage() } }
        best[index] = min(best[index], time)
      }
    }
    let (few, many) = (best[0], best[1])
    #expect(many < few * 5, "\(few) with 10 pages, \(many) with 100,000")
  }

  @Test("A state stores a next page without moving the others in memory")
  func nextPageInPlace() {
    var state = PaginatedState<Int, String, any Error>(initialValue: .written(0...40))
    let task = OperationTask<PaginatedResult<Int, String>, any Error>.idle(
      noting: Tape(), in: OperationContext())
    func address(_ state: inout PaginatedState<Int, String, any Error>) -> UnsafeRawPointer? {
      var address: UnsafeRawPointer?
      state.facts.value.update(at: 40) { page in
        withUnsafePointer(to: &page) { address = UnsafeRawPointer($0) }
      }
      return address
    }
    let first = address(&state)
    for id in 41...140 {
      let page = PaginatedPage(id: id, value: "new")
      state.update(
        with: .success(
          PaginatedResult(kind: .nextPage, pages: [page], place: .after(id - 1))), for: task)
    }
    #expect(state.currentValue.ids == Array(0...140))
    #expect(address(&state) == first)
  }

  @Test("A fetch of all pages has the same cost for each page, for any number of pages")
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

  @Test("Many next pages that are requested at once, without deduplication, follow each other")
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
    // Each run waits for all runs before it, so that a cancelled run lets no other run overtake.
    // The cost grows with the square of the count.
    let few = try await cost(20)
    let many = try await cost(100)
    #expect(many < few * 25 * 8, "\(few) for 20 calls, \(many) for 100")
  }
}
