/// The dependencies between the requests of a client: which path reads which.
///
/// A path has two kinds of edges to the paths that it reads: those of its runs in flight, and the
/// *settled* ones, of its last completed run. The *current* ones are those of the runs in flight, or
/// the settled ones while there are none. A run of which nothing is in flight any more, because it
/// was cancelled, has no current edges.
///
/// An edge that would close a cycle of current edges is not added. Settled edges that become current
/// again after a cancelled run may close one. All other current edges agree with a topological order
/// of the nodes, so that an edge costs a search only if it runs against the order.
///
/// Paths that read or are read are nodes, whose edges are by number. A node without edges is removed.
struct DependencyGraph: Sendable {
  /// A path that an invalidation passes.
  struct Step: Sendable {
    let path: OperationPath
    /// The positions of the earlier steps that the path reads.
    var reads: [Int] = []
  }

  private var numbers = PathIndex<Int>()
  private var nodes: [Node] = []
  /// The positions in `nodes` without a node.
  private var freeNumbers: [Int] = []
  private var order = TopologicalOrder()
  /// The nodes with settled edges that closed a cycle when they became current again.
  private var cyclic: Set<Int> = []
  /// The number of edges that were ever added.
  private(set) var edgeCount = 0
  /// The cycle that each run in flight would have closed first.
  private var cycles: [LaunchID: OperationDependencyError] = [:]

  var isEmpty: Bool {
    numbers.count == 0 && order.isEmpty && cyclic.isEmpty && cycles.isEmpty
  }

  /// Some of the paths that are read.
  enum ReadPaths: Sendable {
    case at([OperationPath])
    case below(OperationPath)
  }

  func paths(_ selection: ReadPaths?) -> [OperationPath] {
    let found =
      switch selection {
      case nil: [Int]()
      case .at(let paths): paths.compactMap { numbers[$0] }
      case .below(let prefix): numbers.tree(matching: prefix).values
      }
    return found.lazy.map { nodes[$0] }.filter { !$0.readers.isEmpty }.map(\.path)
  }

  /// Whether a path reads another one or is read.
  func contains(_ path: OperationPath) -> Bool { numbers.contains(path) }

  /// Returns paths that a path reads, and paths that read it, by current and by settled edges, at most
  /// as many of each as a limit.
  func dependencies(
    of path: OperationPath, limit: Int
  ) -> (reads: [OperationPath], readers: [OperationPath]) {
    guard let number = numbers[path] else { return ([], []) }
    func paths(_ numbers: Set<Int>) -> [OperationPath] {
      numbers.prefix(limit).sorted().map { nodes[$0].path }
    }
    let node = nodes[number]
    let reads = node.runs.values.reduce(into: node.settled.reads) { $0.formUnion($1.reads) }
    return (paths(reads), paths(node.readers))
  }

  /// Returns the paths that have been removed from the graph since the last call. Their elements
  /// have deinitialisers of the user, so they are released without the lock that guards the graph.
  mutating func takeDropped() -> some Sendable { numbers.takeDropped() }

  /// Adds an edge from the path of a run to a path that it reads. If that would close a cycle, adds
  /// none and returns the cycle.
  ///
  /// - Parameter version: The version of what the run has read. It is stored if the run has the edge already.
  mutating func note(
    _ run: LaunchID, _ task: TaskNode? = nil, of path: OperationPath,
    reads other: OperationPath, at version: Int? = nil
  ) -> OperationDependencyError? {
    if path == other { return note([path], closedBy: run) }
    let (from, to) = (addNode(path), addNode(other))
    if nodes[from].runs[run]?.reads.contains(to) == true {
      if let version { nodes[from].runs[run]?.versions[to] = version }
      return nil
    }
    if let cycle = place(from, after: to) {
      return note(cycle.map { nodes[$0].path }, closedBy: run)
    }
    if nodes[to].readers.insert(from).inserted { edgeCount += 1 }
    nodes[from].runs[run, default: Edges(task: task)].reads.insert(to)
    return nil
  }

  private mutating func note(
    _ cycle: [OperationPath], closedBy run: LaunchID
  ) -> OperationDependencyError {
    // A later one does not replace it: that would release its paths here.
    if cycles[run] == nil { cycles[run] = .cycle(cycle) }
    return .cycle(cycle)
  }

  /// Makes the order agree with an edge. Returns the cycle that it would close.
  private mutating func place(_ reader: Int, after read: Int) -> [Int]? {
    order.place(reader, after: read, isPartial: !cyclic.isEmpty) { [nodes] in
      nodes[$0].currentReads.joined().sorted()
    }
  }

  /// Notes that a run with an edge may read an out-of-date value.
  mutating func note(
    _ run: LaunchID, of path: OperationPath, readsOutdated other: OperationPath
  ) {
    guard let reader = numbers[path], let read = numbers[other],
      nodes[reader].runs[run]?.reads.contains(read) == true
    else { return }
    nodes[read].outdatedReaders.insert(reader)
  }

  /// The version that the last completed run of a path has read of another one; `nil` if it noted none.
  func version(of other: OperationPath, readBy path: OperationPath) -> Int? {
    numbers[other].flatMap { read in numbers[path].flatMap { nodes[$0].settled.versions[read] } }
  }

  mutating func forgetVersions(readBy path: OperationPath) {
    if let number = numbers[path] { nodes[number].settled.versions = [:] }
  }

  /// Returns, each once, the paths that may have read the last value of a path while it was out of date, and
  /// that still have an edge to it: a settled one, or one of a run in flight that is not cancelled.
  mutating func takeOutdatedReaders(of path: OperationPath) -> [OperationPath] {
    guard let number = numbers[path] else { return [] }
    let readers = nodes[number].outdatedReaders.sorted().filter {
      ([nodes[$0].settled.reads] + nodes[$0].currentReads).contains { $0.contains(number) }
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
    _ run: LaunchID, of path: OperationPath, isCancelled: Bool, isPart: Bool = false
  ) -> OperationDependencyError? {
    if let number = numbers[path] {
      // There is a value of the path again.
      if !isCancelled { nodes[number].isRemoved = false }
      let ended = nodes[number].end(run, isCancelled: isCancelled, isPart: isPart)
      orderSettledEdges(of: number)
      removeEdges(ended, of: number)
    }
    return cycles.isEmpty ? nil : cycles.removeValue(forKey: run)
  }

  /// Removes the settled edges of a path whose store was removed from the client, as soon as nothing but
  /// removed paths reads the path.
  mutating func remove(_ path: OperationPath) {
    guard let number = numbers[path] else { return }
    nodes[number].isRemoved = true
    if !isNeeded(number) { removeEdges(takeSettledEdges(of: number), of: number) }
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
    var reads: [Int: [Int]] = [:]
    for number in readersFirst.reversed() {
      // An unchecked edge of a cycle may lead to an earlier step, which is complete.
      for reader in nodes[number].readers { reads[reader, default: []].append(steps.count) }
      steps.append(Step(path: nodes[number].path, reads: reads[number] ?? []))
    }
    return steps
  }
}

extension DependencyGraph {
  /// What a run in flight or completed runs have read.
  fileprivate struct Edges: Sendable {
    var reads: Set<Int> = []
    /// The versions of what was read, where they were noted.
    var versions: [Int: Int] = [:]
    /// The run in flight.
    var task: TaskNode?
  }

  /// A path with its edges.
  fileprivate struct Node: Sendable {
    let path: OperationPath
    var runs: [LaunchID: Edges] = [:]
    var settled = Edges()
    /// Whether the store on the path was removed from the client. The settled edges are kept as long as
    /// another path needs them.
    var isRemoved = false
    /// The nodes with an edge to this one, current or settled.
    var readers: Set<Int> = []
    /// Those of the readers that may have read the present value while it was out of date.
    var outdatedReaders: Set<Int> = []

    var isEmpty: Bool { runs.isEmpty && settled.reads.isEmpty && readers.isEmpty }

    /// The nodes at the ends of the current edges, in one set for each run.
    var currentReads: [Set<Int>] {
      if runs.isEmpty { return [settled.reads] }
      return runs.values.filter { $0.task?.progress.isCancelled != true }.map { $0.reads }
    }

    func hasEdge(to other: Int) -> Bool {
      settled.reads.contains(other) || runs.values.contains { $0.reads.contains(other) }
    }

    /// Removes a run, and returns the ends of the edges that may have been removed.
    mutating func end(_ run: LaunchID, isCancelled: Bool, isPart: Bool) -> Set<Int> {
      var ended = runs.removeValue(forKey: run) ?? Edges()
      if isCancelled { return ended.reads }
      ended.task = nil
      if !isPart { return exchange(&settled, with: ended).reads }
      settled.reads.formUnion(ended.reads)
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
    // The index keeps the path until it is released without the lock.
    numbers.remove(path)
    order.remove(number)
    cyclic.remove(number)
    nodes[number] = Node(path: [])
    freeNumbers.append(number)
    if numbers.count == 0 { (nodes, freeNumbers) = ([], []) }
  }

  /// Makes the order agree with the settled edges of a node, if they are current.
  private mutating func orderSettledEdges(of number: Int) {
    guard nodes[number].runs.isEmpty else { return }
    cyclic.remove(number)
    let reads = nodes[number].settled.reads
    if reads.reduce(false, { place(number, after: $1) != nil || $0 }) { cyclic.insert(number) }
  }

  /// Whether a path that is not removed, or that has a run in flight, reads the given one: directly, or
  /// through removed paths.
  private func isNeeded(_ number: Int) -> Bool {
    // A removed path that nothing needs has no edges. So without a cycle, any reader is needed itself.
    if cyclic.isEmpty { return !nodes[number].readers.isEmpty }
    var (open, found) = ([number], Set<Int>())
    while let next = open.popLast() {
      for reader in nodes[next].readers where found.insert(reader).inserted {
        if !nodes[reader].isRemoved || !nodes[reader].runs.isEmpty { return true }
        open.append(reader)
      }
    }
    return false
  }

  private mutating func takeSettledEdges(of number: Int) -> Set<Int> {
    cyclic.remove(number)
    return exchange(&nodes[number].settled, with: Edges()).reads
  }

  /// Removes a node from the readers of those to which it has no edge any more. Also removes the
  /// settled edges of removed paths that are not needed any more.
  private mutating func removeEdges(_ ends: Set<Int>, of reader: Int) {
    var open = [(reader, ends)]
    var changed: Set = [reader]
    while let (reader, ends) = open.popLast() {
      for read in ends where !nodes[reader].hasEdge(to: read) {
        changed.insert(read)
        nodes[read].readers.remove(reader)
        nodes[read].outdatedReaders.remove(reader)
        if nodes[read].isRemoved, !isNeeded(read) {
          open.append((read, takeSettledEdges(of: read)))
        }
      }
    }
    // Not before: a node may lose further edges, and `nodes` is emptied with the last one.
    for number in changed { removeIfEmpty(number) }
  }
}
