/// The dependencies between the requests of a client: which path reads which.
///
/// A path has two kinds of edges to the paths that it reads: those of its runs in flight, and the
/// *settled* ones, of its last completed run. The *current* ones are those of the runs in flight, or
/// the settled ones while there are none. A run of which nothing is in flight any more, because it
/// was cancelled, has no current edges.
///
/// An edge that would close a cycle of current edges is not added. Settled edges that become current
/// again after a cancelled run are not checked, so they may close one.
///
/// Paths that read or are read are nodes, whose edges are by number. A node without edges is removed.
struct DependencyGraph: Sendable {
  /// A path that an invalidation passes.
  struct Step: Sendable {
    let path: OperationPath
    /// The positions of the earlier steps that the path reads.
    var reads: [Int] = []
  }

  private var numbers: [OperationPath: Int] = [:]
  private var nodes: [Node] = []
  /// The positions in `nodes` without a node.
  private var freeNumbers: [Int] = []
  /// The number of changes that may have added an edge that was not current.
  private(set) var edgeCount = 0
  /// The paths that are read but whose stores were removed from the client. They keep their settled
  /// edges until nothing reads them.
  private(set) var removedPaths: Set<OperationPath> = []
  /// The cycle that each run in flight would have closed first.
  private var cycles: [OperationTaskID: OperationDependencyError] = [:]
  /// Paths that are not in the graph any more. Their elements have deinitialisers of the user, so they
  /// are released without the lock that guards the graph.
  private var dropped: [OperationPath] = []

  var isEmpty: Bool { numbers.isEmpty && cycles.isEmpty && removedPaths.isEmpty }

  var left: Set<OperationPath> { removedPaths }

  /// Returns the paths that have been removed from the graph since the last call.
  mutating func takeDropped() -> [OperationPath] {
    if dropped.isEmpty { return [] }
    defer { dropped = [] }
    return dropped
  }

  /// Adds an edge from the path of a run to a path that it reads. If that would close a cycle, adds
  /// none and returns the cycle.
  mutating func note(
    _ run: OperationTaskID, _ task: TaskNode? = nil, of path: OperationPath,
    reads other: OperationPath
  ) -> OperationDependencyError? {
    let (reader, read) = (numbers[path], numbers[other])
    if let reader, let read, nodes[reader].isChecked(edgeTo: read, of: run, edgeCount: edgeCount) {
      nodes[reader].addEdge(to: read, of: run, task, edgeCount: edgeCount)
      return nil
    }
    if let cycle = path == other ? [path] : route(from: read, to: reader) {
      // A later one does not replace it: that would release its paths here.
      if cycles[run] == nil { cycles[run] = .cycle(cycle) }
      return .cycle(cycle)
    }
    edgeCount += 1
    let (from, to) = (addNode(path), addNode(other))
    nodes[to].readers.insert(from)
    nodes[from].addEdge(to: to, of: run, task, edgeCount: edgeCount)
    return nil
  }

  /// Notes that a run with an edge may read an out-of-date value.
  mutating func note(
    _ run: OperationTaskID, of path: OperationPath, readsOutdated other: OperationPath
  ) {
    guard let reader = numbers[path], let read = numbers[other],
      nodes[reader].runs[run]?.reads.contains(read) == true
    else { return }
    nodes[read].outdatedReaders.insert(reader)
  }

  /// Returns the paths that may have read the last value of a path while it was out of date. Each is
  /// returned once; those that only a cancelled run has read from are not.
  mutating func takeOutdatedReaders(of path: OperationPath) -> [OperationPath] {
    guard let number = numbers[path] else { return [] }
    let readers = nodes[number].outdatedReaders.sorted().filter {
      nodes[$0].settled.contains(number) || nodes[$0].currentReads.contains { $0.contains(number) }
    }
    nodes[number].outdatedReaders = []
    return readers.map { nodes[$0].path }
  }

  /// Removes a run that has ended, and returns the cycle that it would have closed.
  ///
  /// - Parameters:
  ///   - isCancelled: Whether the settled edges remain. Otherwise those of the run replace them.
  ///   - isPart: Whether the run has replaced a part of the value only, so that its edges are added
  ///     to the settled ones.
  @discardableResult
  mutating func end(
    _ run: OperationTaskID, of path: OperationPath, isCancelled: Bool, isPart: Bool = false
  ) -> OperationDependencyError? {
    // There is a value of the path again.
    if !isCancelled { forgetRemoval(of: path) }
    if let number = numbers[path] {
      let ended = nodes[number].end(run, isCancelled: isCancelled, isPart: isPart)
      if isCancelled || isPart, nodes[number].isUnchecked { edgeCount += 1 }
      removeEdges(ended, of: number)
    }
    return cycles.isEmpty ? nil : cycles.removeValue(forKey: run)
  }

  /// Removes the settled edges of a path whose store was removed from the client, as soon as nothing
  /// reads the path.
  mutating func remove(_ path: OperationPath) {
    guard let number = numbers[path] else { return }
    if nodes[number].readers.isEmpty {
      removeEdges(takeSettledEdges(of: number), of: number)
    } else {
      removedPaths.insert(path)
    }
  }

  /// Returns the given paths, which differ, and all that read them, directly or through others: each
  /// once, and after what it reads. The order does not depend on hashes.
  func steps(from starts: [OperationPath]) -> [Step] {
    // Depth first, without recursion: a node is added to the order after all its readers.
    var readersFirst: [Int] = []
    var found: Set<Int> = []
    var open = starts.compactMap { numbers[$0] }.map { (number: $0, isDone: false) }
    while let (number, isDone) = open.popLast() {
      if isDone {
        readersFirst.append(number)
      } else if found.insert(number).inserted {
        open.append((number, true))
        open += nodes[number].readers.sorted().map { ($0, false) }
      }
    }
    var steps = starts.filter { numbers[$0] == nil }.map { Step(path: $0) }
    var positions: [Int: Int] = [:]
    for number in readersFirst.reversed() {
      positions[number] = steps.count
      steps.append(Step(path: nodes[number].path))
    }
    for number in readersFirst.reversed() {
      guard let position = positions[number] else { continue }
      for reader in nodes[number].readers {
        // An unchecked edge of a cycle may lead to a later step.
        guard let later = positions[reader], later > position else { continue }
        steps[later].reads.append(position)
      }
    }
    return steps
  }
}

extension DependencyGraph {
  /// A run in flight that has read something.
  fileprivate struct Run: Sendable {
    var reads: Set<Int> = []
    let task: TaskNode?
    /// The graph's `edgeCount` when the run read something first, if the settled edges were current
    /// and checked until then. While that count is the same, they close no cycle in this run either.
    let edgeCount: Int?
  }

  /// A path with its edges.
  fileprivate struct Node: Sendable {
    let path: OperationPath
    var runs: [OperationTaskID: Run] = [:]
    var settled: Set<Int> = []
    /// The nodes with an edge to this one, current or settled.
    var readers: Set<Int> = []
    /// Those of the readers that may have read the present value while it was out of date.
    var outdatedReaders: Set<Int> = []
    /// A Boolean value that indicates whether the settled edges were not current for a time, so that
    /// edges may have been added that form a cycle with them.
    var isUnchecked = false

    var isEmpty: Bool { runs.isEmpty && settled.isEmpty && readers.isEmpty }

    /// The nodes at the ends of the current edges, in one set for each run.
    var currentReads: [Set<Int>] {
      if runs.isEmpty { return [settled] }
      return runs.values.filter { $0.task?.progress.isCancelled != true }.map { $0.reads }
    }

    func hasEdge(to other: Int) -> Bool {
      settled.contains(other) || runs.values.contains { $0.reads.contains(other) }
    }

    /// Returns a Boolean value that indicates whether an edge of a run is known to close no cycle.
    func isChecked(edgeTo other: Int, of run: OperationTaskID, edgeCount: Int) -> Bool {
      guard let run = runs[run] else {
        return runs.isEmpty && !isUnchecked && settled.contains(other)
      }
      return run.reads.contains(other) || settled.contains(other) && run.edgeCount == edgeCount
    }

    mutating func addEdge(
      to other: Int, of run: OperationTaskID, _ task: TaskNode?, edgeCount: Int
    ) {
      let edgeCount = runs.isEmpty && !isUnchecked ? edgeCount : nil
      runs[run, default: Run(task: task, edgeCount: edgeCount)].reads.insert(other)
    }

    /// Removes a run, and returns the ends of the edges that may have been removed.
    mutating func end(_ run: OperationTaskID, isCancelled: Bool, isPart: Bool) -> Set<Int> {
      let reads = runs.removeValue(forKey: run)?.reads ?? []
      guard isCancelled || isPart else {
        defer { (settled, isUnchecked) = (reads, false) }
        return settled
      }
      if !reads.isEmpty, !settled.isEmpty { isUnchecked = true }
      if isCancelled { return reads }
      settled.formUnion(reads)
      return []
    }
  }

  private mutating func addNode(_ path: OperationPath) -> Int {
    if let number = numbers[path] { return number }
    let number = freeNumbers.popLast() ?? nodes.count
    if number == nodes.count { nodes.append(Node(path: path)) }
    nodes[number] = Node(path: path)
    numbers[path] = number
    return number
  }

  private mutating func removeIfEmpty(_ number: Int) {
    let path = nodes[number].path
    guard nodes[number].isEmpty, numbers[path] == number else { return }
    numbers[path] = nil
    nodes[number] = Node(path: [])
    freeNumbers.append(number)
    dropped.append(path)
    if numbers.isEmpty { (nodes, freeNumbers) = ([], []) }
  }

  private mutating func forgetRemoval(of path: OperationPath) {
    if let removed = removedPaths.remove(path) { dropped.append(removed) }
  }

  private mutating func takeSettledEdges(of number: Int) -> Set<Int> {
    forgetRemoval(of: nodes[number].path)
    nodes[number].isUnchecked = false
    defer { nodes[number].settled = [] }
    return nodes[number].settled
  }

  /// Removes a node from the readers of those to which it has no edge any more. Also removes the
  /// settled edges of removed paths that nothing reads any more.
  private mutating func removeEdges(_ ends: Set<Int>, of reader: Int) {
    var open = [(reader, ends)]
    while let (reader, ends) = open.popLast() {
      for read in ends where !nodes[reader].hasEdge(to: read) {
        nodes[read].readers.remove(reader)
        nodes[read].outdatedReaders.remove(reader)
        if nodes[read].readers.isEmpty, removedPaths.contains(nodes[read].path) {
          open.append((read, takeSettledEdges(of: read)))
        } else {
          removeIfEmpty(read)
        }
      }
      removeIfEmpty(reader)
    }
  }

  /// Returns the paths from a node to another one along current edges, both included, or `nil` if no
  /// edges lead there.
  private func route(from start: Int?, to target: Int?) -> [OperationPath]? {
    guard let start, let target, !nodes[target].readers.isEmpty else { return nil }
    var origins: [Int: Int] = [:]
    var open = [start]
    while let last = open.popLast() {
      if last == target {
        let backwards = sequence(first: last) { $0 == start ? nil : origins[$0] }
        return backwards.map { nodes[$0].path }.reversed()
      }
      for next in nodes[last].currentReads.joined().sorted()
      where next != start && origins[next] == nil {
        origins[next] = last
        open.append(next)
      }
    }
    return nil
  }
}
