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

  private struct Run {
    let id = OperationTaskID.next()
    var reads: Set<Int> = []
    var hasClosedCircle = false
  }

  private struct Walk {
    private static let paths: [OperationPath] = [["a"], ["b"], ["c"]]
    private var graph = DependencyGraph()
    private var runs: [[Run]] = [[], [], []]
    private var settled: [Set<Int>] = [[], [], []]
    private var left: Set<Int> = []
    private var stepCount = 0

    /// Runs that have ended before the walk begins.
    init(after reads: [(Int, [Int])]) {
      for (path, others) in reads {
        for other in others { _ = try? read(path, other) }
        _ = try? end(path, isCancelled: false)
      }
    }

    /// What a path reads now.
    private func reads(_ path: Int) -> Set<Int> {
      let active = runs[path].filter { !$0.reads.isEmpty }
      return active.isEmpty ? settled[path] : active.reduce([]) { $0.union($1.reads) }
    }

    private func reaches(_ target: Int, from start: Int, _ seen: Set<Int> = []) -> Bool {
      if start == target { return true }
      return reads(start).subtracting(seen).contains {
        reaches(target, from: $0, seen.union([start]))
      }
    }

    /// All that read a path: the last run of each counts until it is replaced.
    private func readers(_ path: Int) -> [Int] {
      (0..<3).filter { reader in
        settled[reader].contains(path) || runs[reader].contains { $0.reads.contains(path) }
      }
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
        left.insert(path)
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
      let isCircle = reaches(path, from: other) && !runs[path][last].reads.contains(other)
      try mustHold((error != nil) == isCircle, isCircle ? "it is a circle" : "it is none")
      guard case .cycle(let circle)? = error else {
        runs[path][last].reads.insert(other)
        return
      }
      runs[path][last].hasClosedCircle = true
      let nodes = circle.compactMap(Self.paths.firstIndex)
      let isRoute = zip(nodes, nodes.dropFirst()).allSatisfy { reads($0).contains($1) }
      try mustHold(
        nodes.first == other && nodes.last == path && isRoute, "\(circle) is not the circle")
    }

    private mutating func end(_ path: Int, isCancelled: Bool) throws {
      let run = runs[path].isEmpty ? Run() : runs[path].removeFirst()
      let error = graph.end(run.id, of: Self.paths[path], isCancelled: isCancelled)
      try mustHold((error != nil) == run.hasClosedCircle, "a run ends with its circle")
      guard !isCancelled else { return }
      settled[path] = run.reads
      left.remove(path)
    }

    /// What has left and is not read any more counts no more.
    private mutating func forgetLeft() {
      while let path = left.first(where: { readers($0).isEmpty }) {
        left.remove(path)
        settled[path] = []
      }
    }

    private func check() throws {
      try mustHold(graph.left == Set(left.map { Self.paths[$0] }), "\(left) are read still")
      let isEmpty =
        left.isEmpty && settled.allSatisfy(\.isEmpty)
        && runs.joined().allSatisfy { $0.reads.isEmpty && !$0.hasClosedCircle }
      try mustHold(graph.isEmpty == isEmpty, "nothing is left of what has gone")
      // One start after the other, because this is most of the time.
      try checkOrder(from: stepCount % 3)
    }

    private func checkOrder(from start: Int) throws {
      var expected: Set<Int> = [start]
      while true {
        let more = expected.union(expected.flatMap(readers))
        if more == expected { break }
        expected = more
      }
      let steps = graph.steps(from: [Self.paths[start]])
      let order = steps.compactMap { Self.paths.firstIndex(of: $0.path) }
      try mustHold(
        order.count == expected.count && Set(order) == expected, "\(order) is not \(expected)")
      for (step, path) in zip(steps, order) {
        try mustHold(step.reads == Set(reads(path).map { Self.paths[$0] }), "it says what is read")
      }
      // Where a cancelled run has brought an old edge back there may be a circle.
      guard !hasCircle else { return }
      for (position, path) in order.enumerated() {
        let isEarly = order[position...].dropFirst().contains { readers($0).contains(path) }
        try mustHold(!isEarly, "\(order): \(path) comes before what it reads")
      }
    }

    /// Whether the edges of the last runs and of those under way form a circle together.
    private var hasCircle: Bool {
      var rest = Set(0..<3)
      while let free = rest.first(where: { rest.isDisjoint(with: readers($0)) }) {
        rest.remove(free)
      }
      return !rest.isEmpty
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
