/// The machine of the dependencies of a client: which request reads which.
///
/// A path has the edges of its runs that are under way, and when none is, those of the last run
/// that ended. Edges are checked before they are made, so that none closes a cycle; only those of the
/// last run, which are there again after a cancelled one, are not checked anew.
///
/// The paths that read, or are read, are numbered, and edges lead from number to number: a walk
/// looks no path up.
struct DependencyGraph: Sendable {
  private typealias Numbers = SmallSet<Int>

  /// A run that is under way and has read something.
  private struct Run: Sendable {
    var reads = Numbers()
    /// The task of the run: one that was cancelled closes no circle with those that come later.
    let node: TaskNode?
    /// How many edges there had been when the run first read something, if the edges of the last
    /// run had their place in the graph until then.
    let edgeCount: Int?
  }

  /// What there is to know of a path.
  private struct Node: Sendable {
    let path: OperationPath
    var runs = SmallDictionary<OperationTaskID, Run>()
    /// The edges of the last run.
    var settled = Numbers()
    /// The settled edges that lead here and those under way, the other way round.
    var readers = Numbers()
    /// Those of the readers that may have read the value while it was out of date.
    var outdatedReaders = Numbers()
    /// Whether the settled edges came back after a cancelled run, unchecked against what came
    /// meanwhile.
    var isUnchecked = false
    /// The last walk that has come here, and how many nodes were put down in it when this one had
    /// been; zero before.
    var visit = (walk: 0, rank: 0)

    init(_ path: OperationPath) {
      self.path = path
    }

    var isEmpty: Bool { runs.isEmpty && settled.isEmpty && readers.isEmpty }

    /// What the path reads now.
    var reads: Numbers { reads { _ in true } }

    private func reads(_ isMeant: (Run) -> Bool) -> Numbers {
      if runs.isEmpty { return settled }
      var reads = Numbers()
      runs.forEach { _, run in
        guard isMeant(run) else { return }
        if reads.isEmpty { reads = run.reads } else { reads.formUnion(run.reads) }
      }
      return reads
    }

    /// What the path waits for now, or may: what a cancelled run reads, nobody waits for.
    var liveReads: Numbers { reads { $0.node?.progress.isCancelled != true } }

    /// Whether the last run has an edge, or one under way.
    func holds(_ other: Int) -> Bool { settled.contains(other) || reads.contains(other) }

    func reads(_ other: Int, in run: OperationTaskID) -> Bool {
      runs[run]?.reads.contains(other) == true
    }

    /// A run reads what it may read without another look: the edge was part of the graph, closed no
    /// circle there, and no other has come since. Tells whether that is so.
    mutating func noteKnown(
      _ run: OperationTaskID, _ task: TaskNode?, reads other: Int, at edgeCount: Int
    ) -> Bool {
      let isSettled = settled.contains(other)
      if runs.isEmpty, isSettled, !isUnchecked {
        note(run, task, reads: other, at: edgeCount)
        return true
      }
      let isKnown = runs.update(run) { run in
        if run.reads.contains(other) { return true }
        guard isSettled, run.edgeCount == edgeCount else { return false }
        run.reads.insert(other)
        return true
      }
      return isKnown ?? false
    }

    mutating func note(
      _ run: OperationTaskID, _ task: TaskNode?, reads other: Int, at edgeCount: Int
    ) {
      let isUndisturbed = runs.isEmpty && !isUnchecked
      runs.update(run, default: Run(node: task, edgeCount: isUndisturbed ? edgeCount : nil)) {
        $0.reads.insert(other)
      }
    }

    /// A run ended; gives the edges that may be gone with it.
    mutating func end(_ run: OperationTaskID, isCancelled: Bool, isPart: Bool) -> Numbers {
      let reads = runs.remove(run)?.value.reads ?? Numbers()
      if isCancelled || isPart {
        if !reads.isEmpty, !settled.isEmpty { isUnchecked = true }
        if isCancelled { return reads }
        settled.formUnion(reads)
        return Numbers()
      }
      isUnchecked = false
      if reads == settled { return Numbers() }
      defer { settled = reads }
      return settled
    }
  }

  private var numbers: [OperationPath.Key: Int] = [:]
  private var nodes: [Node] = []
  /// The numbers that no path has.
  private var free: [Int] = []
  /// How many edges have been made that were not there before.
  private(set) var edgeCount = 0
  private var walkCount = 0
  /// The paths whose stores have left, and that are still read: what they read stays as long.
  private(set) var left: Set<OperationPath> = []
  /// The runs that have closed a circle, and which.
  private var circles: [OperationTaskID: OperationDependencyError] = [:]
  /// The paths that the graph knows no more, to be released without the lock: their elements are the
  /// user's.
  private var dropped: [OperationPath] = []

  var isEmpty: Bool { numbers.isEmpty && circles.isEmpty && left.isEmpty }

  private func number(of path: OperationPath) -> Int? { numbers[OperationPath.Key(path)] }

  private mutating func makeNumber(of path: OperationPath) -> Int {
    if let present = number(of: path) { return present }
    let number = free.popLast() ?? nodes.count
    if number == nodes.count { nodes.append(Node(path)) } else { nodes[number] = Node(path) }
    numbers[OperationPath.Key(path)] = number
    return number
  }

  private mutating func dropIfEmpty(_ number: Int) {
    let path = nodes[number].path
    guard nodes[number].isEmpty, numbers[OperationPath.Key(path)] == number else { return }
    numbers[OperationPath.Key(path)] = nil
    nodes[number] = Self.vacant
    free.append(number)
    dropped.append(path)
    if numbers.isEmpty { (nodes, free) = ([], []) }
  }

  private static let vacant = Node([])

  private mutating func noteStays(_ path: OperationPath) {
    if let old = left.remove(path) { dropped.append(old) }
  }

  /// Gives the paths that the graph knows no more.
  mutating func takeDropped() -> [OperationPath] {
    if dropped.isEmpty { return [] }
    defer { dropped = [] }
    return dropped
  }

  /// A run of `path` reads `other`; gives the circle that this would close instead of noting it.
  mutating func note(
    _ run: OperationTaskID, _ task: TaskNode? = nil, of path: OperationPath,
    reads other: OperationPath
  ) -> OperationDependencyError? {
    let (reader, read) = (number(of: path), number(of: other))
    if let reader, let read, nodes[reader].noteKnown(run, task, reads: read, at: edgeCount) {
      return nil
    }
    if let circle = path == other ? [path] : route(from: read, to: reader) {
      // The first one stays: another would release its paths here.
      if circles[run] == nil { circles[run] = .cycle(circle) }
      return .cycle(circle)
    }
    edgeCount += 1
    let from = makeNumber(of: path)
    let to = makeNumber(of: other)
    nodes[to].readers.insert(from)
    nodes[from].note(run, task, reads: to, at: edgeCount)
    return nil
  }

  /// A run that has an edge may read what is out of date.
  mutating func note(
    _ run: OperationTaskID, of path: OperationPath, readsOutdated other: OperationPath
  ) {
    guard let from = number(of: path), let to = number(of: other),
      nodes[from].reads(to, in: run)
    else { return }
    nodes[to].outdatedReaders.insert(from)
  }

  /// A new value has come: gives those once that may have read the one before it while that was out
  /// of date.
  mutating func takeOutdatedReaders(of path: OperationPath) -> [OperationPath] {
    guard let number = number(of: path) else { return [] }
    var readers: [OperationPath] = []
    nodes[number].outdatedReaders.forEach { reader in
      // Nothing is shown of a run that was cancelled.
      let node = nodes[reader]
      guard node.settled.contains(number) || node.liveReads.contains(number) else { return }
      readers.append(node.path)
    }
    nodes[number].outdatedReaders = Numbers()
    return readers
  }

  /// A run ended; its edges take the place of those of the run before, unless it was cancelled, or
  /// come beside them, if the value stays that this was made of, or a part of it. Gives the circle
  /// that the run has closed.
  @discardableResult
  mutating func end(
    _ run: OperationTaskID, of path: OperationPath, isCancelled: Bool, isPart: Bool = false
  ) -> OperationDependencyError? {
    if !isCancelled, !left.isEmpty { noteStays(path) }
    if let number = number(of: path) {
      let gone = nodes[number].end(run, isCancelled: isCancelled, isPart: isPart)
      // The settled edges came back.
      if isCancelled || isPart, nodes[number].isUnchecked { edgeCount += 1 }
      if !gone.isEmpty { forget(gone, of: number) }
    }
    return circles.isEmpty ? nil : circles.removeValue(forKey: run)
  }

  /// A store left the client: its last run counts no more, unless somebody has read its value.
  mutating func remove(_ path: OperationPath) {
    guard let number = number(of: path) else {
      return noteStays(path)
    }
    if nodes[number].readers.isEmpty {
      forget(takeSettled(number), of: number)
    } else {
      left.insert(path)
    }
  }

  /// Takes out what the last run of a path has left, whose store has left, too.
  private mutating func takeSettled(_ number: Int) -> Numbers {
    noteStays(nodes[number].path)
    nodes[number].isUnchecked = false
    defer { nodes[number].settled = Numbers() }
    return nodes[number].settled
  }

  /// Takes those of the edges out that neither the last run of a path has, nor one under way, and
  /// those of what is not read any more and has left.
  private mutating func forget(_ gone: Numbers, of number: Int) {
    var open = [(number, gone)]
    while let (number, gone) = open.popLast() {
      gone.forEach { other in
        if nodes[number].holds(other) { return }
        nodes[other].readers.remove(number)
        nodes[other].outdatedReaders.remove(number)
        if nodes[other].readers.isEmpty, left.contains(nodes[other].path) {
          open.append((other, takeSettled(other)))
        } else {
          dropIfEmpty(other)
        }
      }
      dropIfEmpty(number)
    }
  }

  /// The paths from `start` to `target`, both included, along what is read.
  private func route(from start: Int?, to target: Int?) -> [OperationPath]? {
    // Nothing leads to what nobody reads.
    guard let start, let target, !nodes[target].readers.isEmpty else { return nil }
    var origins: [Int: Int] = [:]
    var open = [start]
    while let last = open.popLast() {
      if last == target {
        let back = sequence(first: last) { $0 == start ? nil : origins[$0] }
        return back.map { nodes[$0].path }.reversed()
      }
      nodes[last].liveReads.forEach { next in
        guard next != start, origins[next] == nil else { return }
        origins[next] = last
        open.append(next)
      }
    }
    return nil
  }

  /// A path that an invalidation passes.
  struct Step: Sendable {
    let path: OperationPath
    /// The positions of what it reads, among the steps before it.
    var reads: [Int] = []
  }

  /// What an invalidation of the given paths, which differ, passes: them and all that read them,
  /// directly or through others, each once, and each after what it reads.
  mutating func steps(from starts: [OperationPath]) -> [Step] {
    walkCount += 1
    var steps: [Step] = []
    var order: [Int] = []
    // Depth first, without recursion: a node is put down when all its readers have been.
    var open: [(number: Int, isDone: Bool)] = []
    for path in starts {
      if let number = number(of: path) {
        open.append((number, false))
      } else {
        steps.append(Step(path: path))
      }
    }
    while let (number, isDone) = open.popLast() {
      if isDone {
        order.append(number)
        nodes[number].visit.rank = order.count
      } else if nodes[number].visit.walk != walkCount {
        nodes[number].visit = (walkCount, 0)
        open.append((number, true))
        nodes[number].readers.forEach { open.append(($0, false)) }
      }
    }
    let last = steps.count + order.count
    steps.reserveCapacity(last)
    for number in order.reversed() { steps.append(Step(path: nodes[number].path)) }
    // From what is read to its readers: those may read much that the invalidation does not pass.
    for (index, number) in order.enumerated().reversed() {
      nodes[number].readers.forEach { reader in
        let rank = nodes[reader].visit.rank
        // Where a cancelled run has brought an edge back, what is read may come later.
        if rank < index + 1 { steps[last - rank].reads.append(last - (index + 1)) }
      }
    }
    return steps
  }
}
