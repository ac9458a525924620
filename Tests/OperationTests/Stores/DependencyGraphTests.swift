import Testing

@testable import Operation

@Suite struct DependencyGraphTests {
  private static func path(_ number: Int) -> OperationPath { ["node", number] }

  /// Performs a run of `path` that reads the others and ends.
  private static func run(_ path: Int, reads others: [Int], in graph: inout DependencyGraph) {
    let id = LaunchID(run: .next())
    for other in others {
      #expect(graph.note(id, of: Self.path(path), reads: Self.path(other)) == nil)
    }
    graph.end(id, of: Self.path(path), isCancelled: false)
  }

  @Test("The readers in a diamond are returned once, each after the paths that it reads")
  func diamond() {
    var graph = DependencyGraph()
    Self.run(2, reads: [1], in: &graph)
    Self.run(3, reads: [1], in: &graph)
    Self.run(4, reads: [2, 3], in: &graph)
    let order = graph.steps(from: [Self.path(1)]).map(\.path)
    #expect(order.count == 4)
    #expect(order.first == Self.path(1))
    #expect(order.last == Self.path(4))
  }

  @Test("The edges are those of the last run that was not cancelled") func lastRun() {
    var graph = DependencyGraph()
    Self.run(2, reads: [1], in: &graph)
    Self.run(2, reads: [3], in: &graph)
    #expect(graph.steps(from: [Self.path(1)]).map(\.path) == [Self.path(1)])
    let cancelled = LaunchID(run: .next())
    #expect(graph.note(cancelled, of: Self.path(2), reads: Self.path(1)) == nil)
    #expect(graph.steps(from: [Self.path(1)]).map(\.path).count == 2)
    graph.end(cancelled, of: Self.path(2), isCancelled: true)
    #expect(graph.steps(from: [Self.path(1)]).map(\.path).count == 1)
    #expect(graph.steps(from: [Self.path(3)]).map(\.path).count == 2)
    Self.run(2, reads: [], in: &graph)
    #expect(graph.isEmpty)
  }

  @Test("A launch has neither the edges nor the cycle of an earlier one") func launches() {
    var graph = DependencyGraph()
    Self.run(1, reads: [2], in: &graph)
    let first = LaunchID(run: .next())
    let second = LaunchID(run: first.run, launch: 1)
    #expect(graph.note(first, of: Self.path(2), reads: Self.path(4)) == nil)
    #expect(graph.note(first, of: Self.path(2), reads: Self.path(1)) != nil)
    #expect(graph.note(second, of: Self.path(2), reads: Self.path(3)) == nil)
    #expect(graph.end(first, of: Self.path(2), isCancelled: true) != nil)
    #expect(graph.end(second, of: Self.path(2), isCancelled: false) == nil)
    #expect(graph.steps(from: [Self.path(4)]).count == 1)
    #expect(graph.steps(from: [Self.path(3)]).count == 3)
  }

  // Several times, because edges are visited in the order of their hashes.
  @Test("Nothing is left of removed paths that have read each other", arguments: 0..<20)
  func removedCycles(attempt: Int) {
    var graph = DependencyGraph()
    Self.run(1, reads: [2, 3], in: &graph)
    Self.run(3, reads: [2], in: &graph)
    // While these runs are in flight, the edges of the last ones do not count.
    let runs = [1, 3].map { (path: Self.path($0), id: LaunchID(run: .next())) }
    for run in runs { #expect(graph.note(run.id, of: run.path, reads: Self.path(4)) == nil) }
    Self.run(2, reads: [1], in: &graph)
    for run in runs { graph.end(run.id, of: run.path, isCancelled: true) }
    for path in [3, 1, 2] { graph.remove(Self.path(path)) }
    #expect(graph.isEmpty)
  }

  @Test("The versions at the edges are those of the last run that was not cancelled")
  func versions() {
    var graph = DependencyGraph()
    func run(at version: Int?, isCancelled: Bool = false) -> Int? {
      let id = LaunchID(run: .next())
      #expect(graph.note(id, of: Self.path(2), reads: Self.path(1)) == nil)
      #expect(graph.note(id, of: Self.path(2), reads: Self.path(1), at: version) == nil)
      graph.end(id, of: Self.path(2), isCancelled: isCancelled)
      return graph.version(of: Self.path(1), readBy: Self.path(2))
    }
    #expect(run(at: 1) == 1)
    #expect(run(at: 2, isCancelled: true) == 1)
    #expect(run(at: 3) == 3)
    #expect(run(at: nil) == nil)
    #expect(run(at: 4) == 4)
    graph.remove(Self.path(2))
    #expect(graph.version(of: Self.path(1), readBy: Self.path(2)) == nil)
    #expect(graph.isEmpty)
  }

  @Test("An edge that closes a cycle is not added, and the cycle is returned", arguments: 1...5)
  func cycle(length: Int) {
    var graph = DependencyGraph()
    let runs = (0..<length).map { _ in LaunchID(run: .next()) }
    for node in 0..<(length - 1) {
      #expect(graph.note(runs[node], of: Self.path(node), reads: Self.path(node + 1)) == nil)
    }
    let error = graph.note(runs[length - 1], of: Self.path(length - 1), reads: Self.path(0))
    #expect(error == .cycle((0..<length).map(Self.path)))
    for node in 0..<length { graph.end(runs[node], of: Self.path(node), isCancelled: false) }
    for node in 0..<length { graph.remove(Self.path(node)) }
    #expect(graph.isEmpty)
  }

  @Test("An edge that is current again after a cancelled run is checked") func returnedEdge() {
    var graph = DependencyGraph()
    Self.run(1, reads: [2], in: &graph)
    let cancelled = LaunchID(run: .next())
    #expect(graph.note(cancelled, of: Self.path(1), reads: Self.path(3)) == nil)
    let other = LaunchID(run: .next())
    #expect(graph.note(other, of: Self.path(2), reads: Self.path(1)) == nil)
    graph.end(cancelled, of: Self.path(1), isCancelled: true)
    let next = LaunchID(run: .next())
    #expect(graph.note(next, of: Self.path(1), reads: Self.path(2)) != nil)
  }

  @Test("A cycle through an edge that is current again after a cancelled run is found")
  func cycleThroughReturnedEdge() {
    var graph = DependencyGraph()
    Self.run(1, reads: [2], in: &graph)
    let (cancelled, other) = (LaunchID(run: .next()), LaunchID(run: .next()))
    #expect(graph.note(cancelled, of: Self.path(1), reads: Self.path(3)) == nil)
    #expect(graph.note(other, of: Self.path(2), reads: Self.path(1)) == nil)
    #expect(graph.note(other, of: Self.path(2), reads: Self.path(4)) == nil)
    graph.end(cancelled, of: Self.path(1), isCancelled: true)
    // The settled edge from 1 to 2 closes a cycle, and is current nevertheless.
    let last = LaunchID(run: .next())
    #expect(graph.note(last, of: Self.path(4), reads: Self.path(1)) != nil)
    #expect(graph.note(last, of: Self.path(4), reads: Self.path(5)) == nil)
    Self.run(1, reads: [], in: &graph)
    #expect(graph.note(last, of: Self.path(4), reads: Self.path(1)) == nil)
  }

  @Test("Paths are found by themselves and by a prefix as long as they are read, also removed ones")
  func readPaths() {
    var graph = DependencyGraph()
    Self.run(1, reads: [0, 2], in: &graph)
    for number in [0, 1, 2] { graph.remove(Self.path(number)) }
    #expect(graph.isEmpty)
    Self.run(1, reads: [0, 2], in: &graph)
    graph.remove(Self.path(0))
    graph.remove(Self.path(2))
    #expect(Set(graph.paths(.below([]))) == [Self.path(0), Self.path(2)])
    #expect(Set(graph.paths(.below(["node"]))) == [Self.path(0), Self.path(2)])
    #expect(graph.paths(.below(["other"])) == [])
    #expect(graph.paths(.at([Self.path(1), Self.path(2)])) == [Self.path(2)])
    #expect(graph.paths(nil) == [])
    Self.run(1, reads: [2], in: &graph)
    #expect(Set(graph.paths(.below([]))) == [Self.path(2)])
  }

  @Test("A settled edge is checked again when another one was added since the run began")
  func edgeBetween() {
    var graph = DependencyGraph()
    Self.run(1, reads: [2, 3], in: &graph)
    let run = LaunchID(run: .next())
    #expect(graph.note(run, of: Self.path(1), reads: Self.path(2)) == nil)
    let other = LaunchID(run: .next())
    #expect(graph.note(other, of: Self.path(3), reads: Self.path(1)) == nil)
    #expect(graph.note(run, of: Self.path(1), reads: Self.path(3)) != nil)
  }

  @Test("Readers that do not read each other are in the order in which they were added")
  func stableOrder() {
    var graph = DependencyGraph()
    for reader in 1...20 { Self.run(reader, reads: [0], in: &graph) }
    #expect(graph.steps(from: [Self.path(0)]).map(\.path) == (0...20).map(Self.path))
  }

  @Test(
    "In random graphs every reader is returned once, after the paths that it reads",
    arguments: 0..<200)
  func randomGraphs(seed: UInt64) {
    var generator = SplitMix(seed: seed)
    var graph = DependencyGraph()
    let count = Int.random(in: 1...12, using: &generator)
    var edges: [Int: Set<Int>] = [:]
    for node in 0..<count {
      let others = (0..<node).filter { _ in Bool.random(using: &generator) }
      edges[node] = Set(others)
      Self.run(node, reads: others, in: &graph)
    }
    let starts = (0..<count).filter { _ in Bool.random(using: &generator) }
    var expected = Set(starts)
    for node in 0..<count where !expected.isDisjoint(with: edges[node] ?? []) {
      expected.insert(node)
    }
    let order = graph.steps(from: starts.map(Self.path)).map(\.path)
    let nodes = order.compactMap { path in (0..<count).first { Self.path($0) == path } }
    #expect(Set(nodes) == expected, "seed \(seed)")
    #expect(nodes.count == expected.count, "seed \(seed)")
    for (position, node) in nodes.enumerated() {
      let late = edges[node, default: []].intersection(nodes[position...])
      #expect(late.isEmpty, "seed \(seed): \(node) comes before \(late)")
    }
    for node in 0..<count { graph.remove(Self.path(node)) }
    #expect(graph.isEmpty, "seed \(seed)")
  }
}
