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
    Benchmark(
      name: "an edge between layers", floor: "", sizes: [10, 30, 100], unit: "nodes a layer",
      growth: .flat
    ) { width in
      let layers = Array(0..<10)
      let paths = layers.map { layer in (0..<width).map { ["layer", layer, $0] as OperationPath } }
      return Pair(
        subject: Work(count: (layers.count - 1) * width * width) { _ in
          let client = OperationClient()
          return try await timed {
            for index in 0..<width {
              let top = Layered(paths: paths, layer: 0, index: index)
              blackHole(try await client.ensure(top.neverStale()))
            }
          }
        })
    },
    Benchmark(
      name: "invalidation beside removed paths that are read", floor: "",
      sizes: [10, 1_000, 100_000], unit: "paths", growth: .flat
    ) { size in
      let client = OperationClient()
      let read = (0..<size).map { Node(index: $0, path: ["read", $0], source: nil) }
      let sum = client.store(
        for: Query(path: ["sum"]) { context in
          read.reduce(0) { $0 + (context.value(of: $1) ?? 0) }
        })
      blackHole(try await sum.fetch())
      client.clearStores(matching: ["read"])
      let alone = Node(index: 0, path: ["alone"], source: nil)
      _ = client.store(for: alone)
      return Pair(
        subject: .loop(keeping: (client, sum)) { _ in
          client.invalidate(alone)
          client.invalidate(matching: ["alone"])
        })
    },
  ]
}

/// A query of a layer, which reads all queries of the layer below it.
private struct Layered: QueryRequest {
  let paths: [[OperationPath]]
  let layer: Int
  let index: Int

  var path: OperationPath { paths[layer][index] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    var sum = 1
    guard layer + 1 < paths.count else { return sum }
    for index in paths[layer + 1].indices {
      sum &+= try await context.ensure(
        Layered(paths: paths, layer: layer + 1, index: index).neverStale())
    }
    return sum
  }
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
