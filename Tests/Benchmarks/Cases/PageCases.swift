import Operation
import Synchronization

extension Catalogue {
  static let pages: [Benchmark] = [
    Benchmark(
      name: "fetchNextPage", floor: "the fetch case", sizes: [10, 1_000, 10_000], unit: "pages",
      limit: 2.5, growth: .flat
    ) { size in
      Pair(subject: nextPages(after: size), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "fetchPreviousPage", floor: "the fetch case", sizes: [10, 1_000, 10_000],
      unit: "pages", growth: .flat
    ) { size in
      Pair(subject: previousPages(before: size), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "fetchNextPage, observed", floor: "the fetch case", sizes: [10, 1_000, 10_000],
      unit: "pages", growth: .flat
    ) { size in
      Pair(subject: nextPages(after: size, isObserved: true), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "fetchNextPage, state retained", floor: "the fetch case",
      sizes: [10, 1_000, 10_000], unit: "pages", growth: .flat
    ) { size in
      Pair(subject: nextPages(after: size, isRetained: true), floor: Fixtures.fetch())
    },
  ]

  private typealias Store = OperationStore<PaginatedState<Int, Int, any Error>>

  private static func nextPages(
    after size: Int, isObserved: Bool = false, isRetained: Bool = false
  ) -> Work {
    pages(size, isObserved: isObserved, isRetained: isRetained) { try await $0.fetchNextPage() }
  }

  private static func previousPages(before size: Int) -> Work {
    pages(size) { try await $0.fetchPreviousPage() }
  }

  /// Fetches pages of a store that has `size` pages. A subscriber may receive each state, and may
  /// retain it until the next one.
  private static func pages(
    _ size: Int, isObserved: Bool = false, isRetained: Bool = false,
    _ fetch: @escaping @Sendable (Store) async throws -> PaginatedPage<Int, Int>?
  ) -> Work {
    Work { count in
      let client = OperationClient()
      let store = client.store(
        for: Paginated(
          path: ["feed"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
          previousPageId: { page, _ in page.id - 1 }
        ) { paging, _ in paging.pageId })
      let retained = LastState<PaginatedState<Int, Int, any Error>>()
      let subscription =
        !isRetained && !isObserved
        ? nil
        : store.subscribe { event in
          if isRetained, case .stateChanged(let state) = event { retained.set(state) }
        }
      defer { subscription?.cancel() }
      var rest = count
      var cost = 0.0
      while rest > 0 {
        store.currentValue = PaginatedPages((0..<size).map { PaginatedPage(id: $0, value: $0) })
        // Arrays and tables grow with the first page.
        _ = try await fetch(store)
        let fetches = min(rest, max(20, size / 10))
        cost += try await timed {
          for _ in 0..<fetches { blackHole(try await fetch(store)?.id) }
        }
        rest -= fetches
      }
      withExtendedLifetime(client) {}
      return cost
    }
  }
}

/// The last state of a store.
private final class LastState<State: OperationState>: Sendable {
  private let last = Mutex<State?>(nil)

  func set(_ state: State) { last.withLock { $0 = state } }
}
