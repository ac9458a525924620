import TestSupport
import Testing

@testable import Operation

/// A run gets a new edge unless the edge closes a cycle of current reads. The current reads of a path
/// are those of its runs in flight, or those of its last run if none is in flight. An invalidation
/// passes all direct and indirect readers of its path, each once, and each after what it reads.
/// Nothing is left of a path that has ended its runs and is removed.
@Suite("DependencyGraph, every sequence") struct DependencyGraphExhaustiveTests {
  private enum Step {
    case read(Int, Int), nextRun(Int), end(Int), cancel(Int), remove(Int)
  }

  /// Some of the three paths. Swift sets would take most of the time.
  private struct Nodes: OptionSet, CustomStringConvertible {
    static let all = Nodes(rawValue: 7)
    let rawValue: UInt8

    init(rawValue: UInt8) { self.rawValue = rawValue }
    init(_ path: Int) { rawValue = 1 << UInt8(path) }

    var description: String { "\((0..<3).filter(has))" }
    func has(_ path: Int) -> Bool { rawValue & (1 << UInt8(path)) != 0 }
    func with(_ others: Nodes) -> Nodes { Nodes(rawValue: rawValue | others.rawValue) }
    mutating func add(_ path: Int) { self = with(Nodes(path)) }
    mutating func drop(_ path: Int) { self = Nodes(rawValue: rawValue & ~(1 << UInt8(path))) }
  }

  private struct Run {
    let id = LaunchID(run: .next())
    var reads: Nodes = []
    var hasClosedCycle = false
  }

  private struct Walk {
    private static let paths: [OperationPath] = [["a"], ["b"], ["c"]]
    /// The sets of paths, by the bits of the nodes.
    private static let sets = (0..<8).map { bits in
      Set((0..<3).filter { bits & (1 << $0) != 0 }.map { paths[$0] })
    }
    private var graph = DependencyGraph()
    private var runs: [[Run]] = [[], [], []]
    private var settled: [Nodes] = [[], [], []]
    private var removed: Nodes = []
    private var stepCount = 0

    /// The steps before the walk begins.
    init(after steps: [Step]) throws {
      for step in steps { try mustHold(take(step), "\(step) is possible") }
    }

    private static func set(_ nodes: Nodes) -> Set<OperationPath> { sets[Int(nodes.rawValue)] }

    /// The current reads of a path.
    private func reads(_ path: Int) -> Nodes {
      var active: Nodes = []
      for run in runs[path] { active = active.with(run.reads) }
      return active.rawValue == 0 ? settled[path] : active
    }

    private func reaches(_ target: Int, from start: Int) -> Bool {
      var reached = Nodes(start)
      while true {
        var more = reached
        for path in 0..<3 where reached.has(path) { more = more.with(reads(path)) }
        if more.rawValue == reached.rawValue { return reached.has(target) }
        reached = more
      }
    }

    /// The readers of a path. The last run of each path counts until it is replaced.
    private func readers(_ path: Int) -> Nodes {
      var readers: Nodes = []
      for reader in 0..<3 {
        var edges = settled[reader]
        for run in runs[reader] { edges = edges.with(run.reads) }
        if edges.has(path) { readers.add(reader) }
      }
      return readers
    }

    mutating func take(_ step: Step) throws -> Bool {
      stepCount += 1
      switch step {
      case .read(let path, let other): try read(path, other)
      case .nextRun(let path):
        guard runs[path].count == 1 else { return false }
        runs[path].append(Run())
      case .end(let path): try end(path, isCancelled: false)
      case .cancel(let path):
        guard !runs[path].isEmpty else { return false }
        try end(path, isCancelled: true)
      case .remove(let path):
        graph.remove(Self.paths[path])
        removed.add(path)
      }
      forgetRemoved()
      try check()
      return true
    }

    private mutating func read(_ path: Int, _ other: Int) throws {
      if runs[path].isEmpty { runs[path].append(Run()) }
      let last = runs[path].count - 1
      let error = graph.note(
        runs[path][last].id, of: Self.paths[path], reads: Self.paths[other])
      let isCycle = reaches(path, from: other) && !runs[path][last].reads.has(other)
      try mustHold(
        (error != nil) == isCycle, isCycle ? "the edge closes a cycle" : "the edge closes no cycle")
      guard case .cycle(let cycle)? = error else {
        runs[path][last].reads.add(other)
        return
      }
      runs[path][last].hasClosedCycle = true
      let nodes = cycle.compactMap(Self.paths.firstIndex)
      let isRoute = zip(nodes, nodes.dropFirst()).allSatisfy { reads($0).has($1) }
      try mustHold(
        nodes.first == other && nodes.last == path && isRoute, "\(cycle) is not the cycle")
    }

    private mutating func end(_ path: Int, isCancelled: Bool) throws {
      let run = runs[path].isEmpty ? Run() : runs[path].removeFirst()
      let error = graph.end(run.id, of: Self.paths[path], isCancelled: isCancelled)
      try mustHold(
        (error != nil) == run.hasClosedCycle, "a run that closed a cycle ends with the error")
      if isCancelled {
        // The hub removes the path again, because there is no store on it.
        if removed.has(path) { graph.remove(Self.paths[path]) }
        return
      }
      settled[path] = run.reads
      removed.drop(path)
    }

    /// Drops the reads of removed paths that are not needed.
    private mutating func forgetRemoved() {
      while let path = (0..<3).first(where: { removed.has($0) && !isNeeded($0) }) {
        removed.drop(path)
        settled[path] = []
      }
    }

    /// Whether a path that is not removed, or whose run in flight has read something, reads a path, directly
    /// or through others.
    private func isNeeded(_ path: Int) -> Bool {
      var found = readers(path)
      while true {
        let isNeeded = (0..<3).contains { reader in
          let isRunning = runs[reader].contains { $0.reads.rawValue != 0 }
          return found.has(reader) && (!removed.has(reader) || isRunning)
        }
        if isNeeded { return true }
        var more = found
        for reader in 0..<3 where found.has(reader) { more = more.with(readers(reader)) }
        if more.rawValue == found.rawValue { return false }
        found = more
      }
    }

    private mutating func check() throws {
      let readers = [readers(0), readers(1), readers(2)]
      var read: Nodes = []
      for path in 0..<3 where readers[path].rawValue != 0 { read.add(path) }
      try mustHold(Set(graph.paths(.below([]))) == Self.set(read), "\(read) are read")
      var isEmpty = removed.rawValue == 0
      for path in 0..<3 {
        isEmpty = isEmpty && settled[path].rawValue == 0
        for run in runs[path] {
          isEmpty = isEmpty && run.reads.rawValue == 0 && !run.hasClosedCycle
        }
      }
      try mustHold(graph.isEmpty == isEmpty, "nothing is left of what was removed")
      // One start per step, because this check takes most of the time.
      try checkOrder(from: stepCount % 3, readers)
    }

    private mutating func checkOrder(from start: Int, _ readers: [Nodes]) throws {
      var expected = Nodes(start)
      while true {
        var more = expected
        for path in 0..<3 where expected.has(path) { more = more.with(readers[path]) }
        if more.rawValue == expected.rawValue { break }
        expected = more
      }
      let steps = graph.steps(from: [Self.paths[start]])
      var order: [Int] = []
      var found: Nodes = []
      for step in steps {
        guard let path = Self.paths.firstIndex(of: step.path) else { continue }
        var read: Nodes = []
        for other in step.reads { read.add(order[other]) }
        // Includes the reads of the last run: the run in flight may repeat them.
        let expected = reads(path).with(settled[path]).rawValue & found.rawValue
        try mustHold(read.rawValue == expected, "a step lists its reads among the earlier steps")
        order.append(path)
        found.add(path)
      }
      try mustHold(
        found.rawValue == expected.rawValue && order.count == expected.rawValue.nonzeroBitCount,
        "\(order) is not \(expected)")
      // A cancelled run may bring an old edge back, and so close a cycle.
      guard !hasCycle(readers) else { return }
      var earlier: Nodes = []
      for path in order {
        try mustHold(
          readers[path].rawValue & earlier.rawValue == 0,
          "\(order): a reader of \(path) comes before it")
        earlier.add(path)
      }
    }

    /// Whether the edges of the last runs and of the runs in flight form a cycle.
    private func hasCycle(_ readers: [Nodes]) -> Bool {
      var rest = Nodes.all
      while let free = (0..<3).first(where: {
        rest.has($0) && rest.rawValue & readers[$0].rawValue == 0
      }) {
        rest.drop(free)
      }
      return rest.rawValue != 0
    }
  }

  private static let events =
    [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (0, 0)].map { Step.read($0.0, $0.1) }
    + (0..<3).flatMap { [Step.end($0), .cancel($0), .remove($0)] } + [.nextRun(0)]

  @Test(
    "Cycles are found, and invalidations pass all readers in order",
    arguments: [
      [], [.read(0, 1), .read(0, 2), .end(0), .read(1, 2), .end(1)],
      [.read(0, 1), .end(0), .read(2, 0), .end(2)],
      // The last runs of two paths have read each other.
      [.read(0, 1), .end(0), .read(0, 2), .read(1, 0), .end(1), .cancel(0)],
    ] as [[Step]])
  private func everySequence(before: [Step]) throws {
    exhaust(
      "DependencyGraph, after \(before.count) steps", events: Self.events, length: 4,
      from: try Walk(after: before)
    ) { walk, step in try walk.take(step) }
  }
}
