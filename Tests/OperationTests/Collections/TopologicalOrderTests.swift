import Testing

@testable import Operation

@Suite struct TopologicalOrderTests {
  /// An order of the nodes of a graph, which counts the nodes that it searches.
  private final class Graph {
    var order = TopologicalOrder()
    var edges: [Int: Set<Int>] = [:]
    var searched = 0
    /// Whether the order does not agree with all edges.
    var isPartial = false

    /// Adds an edge unless it closes a cycle, which is returned.
    func add(_ node: Int, after other: Int) -> [Int]? {
      let cycle = order.place(node, after: other, isPartial: isPartial) { node in
        self.searched += 1
        return edges[node, default: []].sorted()
      }
      if cycle == nil { edges[node, default: []].insert(other) }
      return cycle
    }

    func reaches(_ target: Int, from start: Int) -> Bool {
      var found: Set<Int> = []
      var open = [start]
      while let node = open.popLast() {
        if node == target { return true }
        if found.insert(node).inserted { open += edges[node, default: []] }
      }
      return false
    }

    /// An edge that agrees with the order is added without a search.
    func expectOrder() {
      searched = 0
      for (node, others) in edges { for other in others { _ = add(node, after: other) } }
      #expect(searched == 0)
    }
  }

  @Test(
    "An edge is refused exactly if it closes a cycle, and the order agrees with all others",
    arguments: 0..<300)
  func random(seed: UInt64) {
    var generator = SplitMix(seed: seed)
    let graph = Graph()
    let count = Int.random(in: 2...12, using: &generator)
    for _ in 0..<60 {
      let node = Int.random(in: 0..<count, using: &generator)
      let other = Int.random(in: 0..<count, using: &generator)
      if node == other { continue }
      if Int.random(in: 0..<20, using: &generator) == 0 {
        graph.order.remove(node)
        graph.edges[node] = nil
        for key in graph.edges.keys { graph.edges[key]?.remove(node) }
        continue
      }
      let isCycle = graph.reaches(node, from: other)
      let cycle = graph.add(node, after: other)
      #expect((cycle != nil) == isCycle, "seed \(seed)")
      guard let cycle else { continue }
      #expect(cycle.first == other && cycle.last == node, "seed \(seed)")
      let isRoute = zip(cycle, cycle.dropFirst()).allSatisfy {
        graph.edges[$0]?.contains($1) == true
      }
      #expect(isRoute, "seed \(seed)")
    }
    graph.expectOrder()
  }

  @Test("A cycle through edges that the order does not agree with is found")
  func partial() {
    let graph = Graph()
    #expect(graph.add(1, after: 2) == nil)
    graph.edges[2] = [1]
    #expect(graph.add(3, after: 1) == nil)
    graph.edges[2]?.insert(4)
    graph.isPartial = true
    #expect(graph.add(4, after: 3) == nil || graph.reaches(4, from: 3))
    #expect(graph.add(4, after: 1) != nil)
  }

  /// The orders in which the edges between layers are added. Each node reads all nodes of the layer
  /// below.
  enum Building: CaseIterable { case upwards, downwards, depthFirst }

  @Test(
    "An edge of a wide graph costs as much as one of a narrow graph", arguments: Building.allCases)
  func layers(building: Building) {
    for width in [10, 60] {
      let (graph, count) = (Graph(), 10)
      func addEdges(of node: Int, recursively: Bool) {
        let below = (node / width + 1) * width
        guard below < count * width, graph.edges[node] == nil else { return }
        for other in below..<(below + width) {
          #expect(graph.add(node, after: other) == nil)
          if recursively { addEdges(of: other, recursively: true) }
        }
      }
      let nodes = 0..<(count * width)
      switch building {
      case .upwards: for node in nodes.reversed() { addEdges(of: node, recursively: false) }
      case .downwards: for node in nodes { addEdges(of: node, recursively: false) }
      case .depthFirst: for node in nodes { addEdges(of: node, recursively: true) }
      }
      let edgeCount = (count - 1) * width * width
      #expect(graph.searched <= edgeCount, "\(graph.searched) of \(edgeCount) at \(width)")
      graph.expectOrder()
    }
  }

  @Test("Nodes behind a crowded position keep their place")
  func crowdInTheMiddle() {
    let graph = Graph()
    for node in 2...9 { #expect(graph.add(node, after: node - 1) == nil) }
    for node in 10...2_000 {
      #expect(graph.add(4, after: node) == nil)
      if node > 10 { #expect(graph.add(node, after: node - 1) == nil) }
    }
    graph.expectOrder()
    for node in 2...2_000 where node != 10 {
      _ = graph.add(node, after: 1)
      _ = graph.add(9, after: node)
    }
    graph.expectOrder()
    #expect(graph.add(10, after: 9) != nil)
  }

  @Test("Any number of nodes can be inserted at one position")
  func crowd() {
    let graph = Graph()
    for node in 1...20_000 {
      #expect(graph.add(0, after: node) == nil)
      if node > 1 { #expect(graph.add(node, after: node - 1) == nil) }
    }
    #expect(graph.add(1, after: 20_000) != nil)
    graph.expectOrder()
    for node in 0...20_000 { graph.order.remove(node) }
    #expect(graph.order.isEmpty)
  }
}
