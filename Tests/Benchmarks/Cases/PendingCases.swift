import Operation

extension Catalogue {
  static let pending: [Benchmark] = [
    Benchmark(
      name: "cancel a pending call", floor: "", sizes: [100, 1_000, 10_000], unit: "calls",
      growth: .flat
    ) { size in Pair(subject: cancellations(of: size, pendingCall)) },
    Benchmark(
      name: "cancel a serialized call", floor: "", sizes: [100, 1_000, 10_000], unit: "calls",
      growth: .flat
    ) { size in Pair(subject: cancellations(of: size, pendingCall.serialized(in: "scope"))) },
    Benchmark(
      name: "optimistic edit beside others", floor: "", sizes: [10, 100, 1_000], unit: "edits",
      growth: .flat
    ) { size in Pair(subject: edits(beside: size)) },
    Benchmark(
      name: "leaseCount", floor: "", sizes: [100, 1_000, 10_000], unit: "runs", growth: .flat
    ) { size in
      let store = OperationStore.detached(query: Item(path: ["item"]))
      let tasks = (0..<size).map { _ in store.runTask() }
      return Pair(subject: .loop(keeping: tasks) { _ in blackHole(store.leaseCount) })
    },
    Benchmark(
      name: "run in a context of its own", floor: "", sizes: [300, 1_000, 10_000], unit: "runs",
      growth: .flat
    ) { size in
      Pair(
        subject: Work(count: size) { _ in
          let store = OperationStore.detached(query: Item(path: ["item"]).deduplicated())
          let contexts = (0..<size).map { number in
            var context = OperationContext()
            context[NumberKey.self] = number
            return context
          }
          var tasks: [OperationTask<Int, any Error>] = []
          let cost = timed {
            for context in contexts { tasks.append(store.runTask(using: context)) }
          }
          withExtendedLifetime(tasks) {}
          return cost
        })
    },
    Benchmark(
      name: "write of pages", floor: "", sizes: [100, 1_000, 10_000], unit: "pages", growth: .flat
    ) { size in
      let store = OperationStore.detached(
        operation: Paginated<Int, Int>(
          path: ["feed"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
        ) { paging, _ in paging.pageId }, initialState: PaginatedState())
      let pages = PaginatedPages((0..<size).map { PaginatedPage(id: $0, value: $0) })
      return Pair(subject: .loop { _ in store.currentValue = pages })
    },
  ]

  private enum NumberKey: OperationContext.Key {
    static var defaultValue: Int { 0 }
  }

  /// A mutation that ends when it is cancelled.
  private static var pendingCall: Mutation<Int, Int> {
    Mutation(path: ["pending"]) { arguments, _ in
      for await _ in AsyncStream<Int>.makeStream().stream {}
      try Task.checkCancellation()
      return arguments
    }
  }

  private static func nothing() async {}

  /// Begins and confirms an edit while others are pending.
  private static func edits(beside size: Int) -> Work {
    Work(count: 100) { count in
      let (client, store) = Fixtures.store()
      store.currentValue = 0
      let others = (0..<size).map { _ in
        Task {
          await store.optimistically {
            $0? += 1
          } while: {
            for await _ in AsyncStream<Int>.makeStream().stream {}
          }
        }
      }
      while store.currentValue != size { await Task.yield() }
      let cost = await timed {
        for _ in 0..<count {
          await store.optimistically {
            $0? += 1
          } while: {
            await nothing()
          }
        }
      }
      for other in others { other.cancel() }
      for other in others { await other.value }
      withExtendedLifetime(client) {}
      return cost
    }
  }

  /// Cancels calls in an order that is mixed and always the same. An operation is one of them.
  private static func cancellations(
    of size: Int,
    _ request: some MutationRequest<Int, Int> & StatefulOperationRequest<
      Int, MutationState<Int, Int, any Error>
    >
  ) -> Work {
    Work(count: size) { _ in
      let client = OperationClient()
      let store = client.store(for: request)
      let calls = (0..<size).map { index in
        Task { blackHole(try await store.mutate(with: index)) }
      }
      while store.leaseCount < size { await Task.yield() }
      // A prime that divides no size, so that each index occurs once.
      let cost = timed { for index in 0..<size { calls[index * 7_919 % size].cancel() } }
      for call in calls { _ = await call.result }
      withExtendedLifetime(client) {}
      return cost
    }
  }
}
