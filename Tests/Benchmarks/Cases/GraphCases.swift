import Operation

extension Catalogue {
  static let graphs: [Benchmark] = [
    Benchmark(
      name: "invalidation along a chain", floor: "the same runs, in sequence",
      sizes: [10, 100, 1_000],
      unit: "dependents", limit: 1.6, growth: .linear
    ) { size in
      let chain = try await Graph(size) { $0 > 0 ? $0 - 1 : nil }
      return Pair(
        subject: .each { await chain.invalidateRoot() },
        floor: .each { try await chain.runInSequence() })
    },
    Benchmark(
      name: "invalidation along a fan", floor: "the same runs, in parallel",
      sizes: [10, 100, 1_000],
      unit: "dependents", limit: 1.6, growth: .linear
    ) { size in
      let fan = try await Graph(size) { $0 > 0 ? 0 : nil }
      return Pair(
        subject: .each { await fan.invalidateRoot() },
        floor: .each { try await fan.runInParallel() })
    },
    Benchmark(
      name: "invalidation of one dependency", floor: "the same without dependents",
      sizes: [10, 1_000, 10_000], unit: "dependencies", growth: .flat
    ) { size in
      let client = OperationClient()
      let read = (0..<size).map { Node(index: $0, path: ["read", $0], source: nil) }
      for node in read { client.store(for: node).currentValue = node.index }
      let alone = client.store(for: Node(index: 0, path: ["alone"], source: nil))
      let sum = client.store(
        for: Query(path: ["sum"]) { context in
          read.reduce(0) { $0 + (context.value(of: $1) ?? 0) }
        })
      blackHole(try await sum.fetch())
      let one = client.store(for: read[0])
      return Pair(
        subject: .loop(keeping: (client, sum)) { _ in one.invalidate() },
        floor: .loop { _ in alone.invalidate() })
    },
  ]
}

/// A query that may depend on another one.
private struct Node: QueryRequest {
  let index: Int
  let path: OperationPath
  let source: OperationPath?

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    guard let source else { return index }
    return try await context.ensure(Node(index: 0, path: source, source: nil)) + 1
  }
}

/// Observed stores of queries that depend on each other.
private final class Graph: Sendable {
  private let client = OperationClient()
  private let root: OperationPath
  private let stores: [OperationStore<QueryState<Int, any Error>>]
  private let subscriptions: [OperationSubscription]
  private let ends = Countdown()

  /// Creates a root and `count` other nodes. `source` returns the index of the node that a node
  /// depends on.
  init(_ count: Int, source: (Int) -> Int?) async throws {
    let paths = (0...count).map { ["node", $0] as OperationPath }
    root = paths[0]
    var stores: [OperationStore<QueryState<Int, any Error>>] = []
    for index in 0...count {
      let node = Node(index: index, path: paths[index], source: source(index).map { paths[$0] })
      stores.append(client.store(for: node.neverStale()))
      try await stores[index].fetch()
    }
    self.stores = stores
    subscriptions = stores.map { [ends] store in
      store.subscribe { if case .runEnded = $0 { ends.countDown() } }
    }
  }

  /// Invalidates the root, and waits until all nodes have run again.
  func invalidateRoot() async -> Double {
    ends.set(stores.count)
    return await timed {
      client.invalidate(Node(index: 0, path: root, source: nil))
      await ends.wait()
    }
  }

  func runInSequence() async throws -> Double {
    ends.set(stores.count)
    return try await timed {
      for store in stores { blackHole(try await store.fetch()) }
      await ends.wait()
    }
  }

  func runInParallel() async throws -> Double {
    ends.set(stores.count)
    return try await timed {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for store in stores { group.addTask { try await store.fetch() } }
        for try await value in group { blackHole(value) }
      }
      await ends.wait()
    }
  }
}
