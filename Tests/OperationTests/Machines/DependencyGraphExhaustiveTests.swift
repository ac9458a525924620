import TestSupport
import Testing

@testable import Operation

/// A run gets an edge that it does not have unless that closes a circle over what is read now: by
/// the runs of a path that are under way, or by its last one if none is. An invalidation passes all that read what it begins
/// with, each once, and after what it reads. Nothing is left of what has ended and left.
@Suite("DependencyGraph, every sequence") struct DependencyGraphExhaustiveTests {
  private enum Step {
    case read(Int, Int), nextRun(Int), end(Int), cancel(Int), leave(Int)
  }

  /// Some of the three paths. Sets of Swift would be most of the time.
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
    var hasClosedCircle = false
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
    private var left: Nodes = []
    private var stepCount = 0

    /// Runs that have ended before the walk begins.
    init(after reads: [(Int, [Int])]) {
      for (path, others) in reads {
        for other in others { _ = try? read(path, other) }
        _ = try? end(path, isCancelled: false)
      }
    }

    private static func set(_ nodes: Nodes) -> Set<OperationPath> { sets[Int(nodes.rawValue)] }

    /// What a path reads now.
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

    /// All that read a path: the last run of each counts until it is replaced.
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
      case .leave(let path):
        graph.remove(Self.paths[path])
        left.add(path)
      }
      forgetLeft()
      try check()
      return true
    }

    private mutating func read(_ path: Int, _ other: Int) throws {
      if runs[path].isEmpty { runs[path].append(Run()) }
      let last = runs[path].count - 1
      let error = graph.note(
        runs[path][last].id, of: Self.paths[path], reads: Self.paths[other])
      let isCircle = reaches(path, from: other) && !runs[path][last].reads.has(other)
      try mustHold((error != nil) == isCircle, isCircle ? "it is a circle" : "it is none")
      guard case .cycle(let circle)? = error else {
        runs[path][last].reads.add(other)
        return
      }
      runs[path][last].hasClosedCircle = true
      let nodes = circle.compactMap(Self.paths.firstIndex)
      let isRoute = zip(nodes, nodes.dropFirst()).allSatisfy { reads($0).has($1) }
      try mustHold(
        nodes.first == other && nodes.last == path && isRoute, "\(circle) is not the circle")
    }

    private mutating func end(_ path: Int, isCancelled: Bool) throws {
      let run = runs[path].isEmpty ? Run() : runs[path].removeFirst()
      let error = graph.end(run.id, of: Self.paths[path], isCancelled: isCancelled)
      try mustHold((error != nil) == run.hasClosedCircle, "a run ends with its circle")
      guard !isCancelled else { return }
      settled[path] = run.reads
      left.drop(path)
    }

    /// What has left and is not read any more counts no more.
    private mutating func forgetLeft() {
      while let path = (0..<3).first(where: { left.has($0) && readers($0).rawValue == 0 }) {
        left.drop(path)
        settled[path] = []
      }
    }

    private mutating func check() throws {
      try mustHold(graph.removedPaths == Self.set(left), "\(left) are read still")
      var isEmpty = left.rawValue == 0
      for path in 0..<3 {
        isEmpty = isEmpty && settled[path].rawValue == 0
        for run in runs[path] {
          isEmpty = isEmpty && run.reads.rawValue == 0 && !run.hasClosedCircle
        }
      }
      try mustHold(graph.isEmpty == isEmpty, "nothing is left of what has gone")
      // One start after the other, because this is most of the time.
      try checkOrder(from: stepCount % 3, [readers(0), readers(1), readers(2)])
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
        // Also what the last run has read: the one under way may come to it.
        let expected = reads(path).with(settled[path]).rawValue & found.rawValue
        try mustHold(read.rawValue == expected, "it says what is read of what comes before")
        order.append(path)
        found.add(path)
      }
      try mustHold(
        found.rawValue == expected.rawValue && order.count == expected.rawValue.nonzeroBitCount,
        "\(order) is not \(expected)")
      // Where a cancelled run has brought an old edge back there may be a circle.
      guard !hasCircle(readers) else { return }
      var earlier: Nodes = []
      for path in order {
        try mustHold(
          readers[path].rawValue & earlier.rawValue == 0,
          "\(order): who reads \(path) comes before it")
        earlier.add(path)
      }
    }

    /// Whether the edges of the last runs and of those under way form a circle together.
    private func hasCircle(_ readers: [Nodes]) -> Bool {
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
    + (0..<3).flatMap { [Step.end($0), .cancel($0), .leave($0)] } + [.nextRun(0)]

  @Test(
    "Circles are found, and invalidations pass all readers in order",
    arguments: [[], [(0, [1, 2]), (1, [2])], [(0, [1]), (2, [0])]])
  func everySequence(before: [(Int, [Int])]) {
    exhaust(
      "DependencyGraph, after \(before.count) runs", events: Self.events, length: 4,
      from: Walk(after: before)
    ) { walk, step in try walk.take(step) }
  }
}
