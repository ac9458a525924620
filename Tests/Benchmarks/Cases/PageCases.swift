import Operation

extension Catalogue {
  static let pages: [Benchmark] = [
    Benchmark(
      name: "fetchNextPage", floor: "the fetch case", sizes: [10, 1_000, 10_000], unit: "pages",
      limit: 2, growth: .flat
    ) { size in
      Pair(subject: nextPages(after: size), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "fetchPreviousPage", floor: "the fetch case", sizes: [10, 1_000, 10_000],
      unit: "pages", growth: .flat
    ) { size in
      Pair(subject: previousPages(before: size), floor: Fixtures.fetch())
    },
  ]

  private typealias Store = OperationStore<PaginatedState<Int, Int, any Error>>

  private static func nextPages(after size: Int) -> Work {
    pages(size) { try await $0.fetchNextPage() }
  }

  private static func previousPages(before size: Int) -> Work {
    pages(size) { try await $0.fetchPreviousPage() }
  }

  /// Fetches pages beside so many that are there.
  private static func pages(
    _ size: Int, _ fetch: @escaping @Sendable (Store) async throws -> PaginatedPage<Int, Int>?
  ) -> Work {
    Work { count in
      let client = OperationClient()
      let store = client.store(
        for: Paginated(
          path: ["feed"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
          previousPageId: { page, _ in page.id - 1 }
        ) { paging, _ in paging.pageId })
      var rest = count
      var cost = 0.0
      while rest > 0 {
        store.currentValue = PaginatedPages((0..<size).map { PaginatedPage(id: $0, value: $0) })
        // Lets arrays and tables grow.
        _ = try await fetch(store)
        let fetches = min(rest, max(20, size / 10))
        cost += try await timed {
          for _ in 0..<fetches { Sink.take(try await fetch(store)?.id) }
        }
        rest -= fetches
      }
      withExtendedLifetime(client) {}
      return cost
    }
  }
}
