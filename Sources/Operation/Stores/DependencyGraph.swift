/// The machine of the dependencies of a client: which request reads which.
///
/// A path has the edges of its runs that are under way, and when none is, those of the last run
/// that ended. Edges are checked before they are made, so the graph never has a cycle.
struct DependencyGraph: Sendable {
  private struct Reads: Sendable {
    var paths: Set<OperationPath>
    /// How many edges there had been when the run first read something, if the edges of the last
    /// run had their place in the graph until then.
    var edgeCount: Int?
  }

  private var active: [OperationTaskID: Reads] = [:]
  private var activeRuns: [OperationPath: [OperationTaskID]] = [:]
  /// The edges of the last run of each path.
  private var settled: [OperationPath: Set<OperationPath>] = [:]
  /// The settled edges and those under way, the other way round.
  private var readers: [OperationPath: Set<OperationPath>] = [:]
  /// The paths whose settled edges came back after a cancelled run, unchecked against what came
  /// meanwhile.
  private var unchecked: Set<OperationPath> = []
  /// How many edges have been made that were not there before.
  private(set) var edgeCount = 0
  /// The paths whose stores have left, and that are still read: what they read stays as long.
  private(set) var left: Set<OperationPath> = []
  /// The runs that have closed a circle, and which.
  private var circles: [OperationTaskID: OperationDependencyError] = [:]

  var isEmpty: Bool {
    active.isEmpty && settled.isEmpty && readers.isEmpty && circles.isEmpty && left.isEmpty
      && unchecked.isEmpty
  }

  /// A run of `path` reads `other`; gives the circle that this would close instead of noting it.
  mutating func note(
    _ run: OperationTaskID, of path: OperationPath, reads other: OperationPath
  ) -> OperationDependencyError? {
    let isKnown = isKnown(run, of: path, reads: other)
    if !isKnown, let circle = route(from: other, to: path) {
      circles[run] = .cycle(circle)
      return .cycle(circle)
    }
    if !isKnown {
      edgeCount += 1
      readers[other, default: []].insert(path)
    }
    if active[run]?.paths.insert(other) != nil { return nil }
    let isUndisturbed = activeRuns[path] == nil && !unchecked.contains(path)
    active[run] = Reads(paths: [other], edgeCount: isUndisturbed ? edgeCount : nil)
    activeRuns[path, default: []].append(run)
    return nil
  }

  /// Whether an edge was part of the graph, which has no circle, and no other has come since.
  private func isKnown(
    _ run: OperationTaskID, of path: OperationPath, reads other: OperationPath
  ) -> Bool {
    if let reads = active[run] {
      if reads.paths.contains(other) { return true }
      guard reads.edgeCount == edgeCount else { return false }
    } else if activeRuns[path] != nil || unchecked.contains(path) {
      return false
    }
    return settled[path]?.contains(other) == true
  }

  /// A run ended; its edges take the place of those of the run before, unless it was cancelled.
  /// Gives the circle that the run has closed.
  @discardableResult
  mutating func end(
    _ run: OperationTaskID, of path: OperationPath, isCancelled: Bool
  ) -> OperationDependencyError? {
    let reads = active.removeValue(forKey: run)?.paths ?? []
    if let runs = activeRuns[path]?.filter({ $0 != run }) {
      activeRuns[path] = runs.isEmpty ? nil : runs
    }
    let last = settled[path] ?? []
    if !isCancelled {
      left.remove(path)
      unchecked.remove(path)
      if reads != last {
        settled[path] = reads.isEmpty ? nil : reads
        forget(last, of: path)
      }
    } else if !reads.isEmpty {
      if !last.isEmpty {
        unchecked.insert(path)
        edgeCount += 1
      }
      forget(reads, of: path)
    }
    return circles.removeValue(forKey: run)
  }

  /// A store left the client: its last run counts no more, unless somebody has read its value.
  mutating func remove(_ path: OperationPath) {
    guard readers[path] == nil else {
      left.insert(path)
      return
    }
    left.remove(path)
    unchecked.remove(path)
    if let last = settled.removeValue(forKey: path) { forget(last, of: path) }
  }

  /// Takes those of the edges out that neither the last run of a path has, nor one under way.
  private mutating func forget(_ gone: Set<OperationPath>, of path: OperationPath) {
    let present = reads(of: path).union(settled[path] ?? [])
    for other in gone where !present.contains(other) {
      readers[other]?.remove(path)
      guard readers[other]?.isEmpty == true else { continue }
      readers[other] = nil
      if left.contains(other) { remove(other) }
    }
  }

  private func reads(of path: OperationPath) -> Set<OperationPath> {
    guard let runs = activeRuns[path] else { return settled[path] ?? [] }
    return runs.reduce(into: []) { $0.formUnion(active[$1]?.paths ?? []) }
  }

  /// The paths from `start` to `target`, both included, along what is read.
  private func route(from start: OperationPath, to target: OperationPath) -> [OperationPath]? {
    // Nothing leads to what nobody reads.
    guard start == target || readers[target] != nil else { return nil }
    var origins: [OperationPath: OperationPath] = [:]
    var open = [start]
    while let last = open.popLast() {
      if last == target {
        let back = sequence(first: last) { $0 == start ? nil : origins[$0] }
        return Array(back).reversed()
      }
      for next in reads(of: last) where next != start && origins[next] == nil {
        origins[next] = last
        open.append(next)
      }
    }
    return nil
  }

  /// A path to invalidate, and what it reads.
  struct Step: Sendable {
    let path: OperationPath
    let reads: Set<OperationPath>
  }

  /// What an invalidation of the given paths passes, in its order.
  func steps(from starts: [OperationPath]) -> [Step] {
    readers(of: starts).map { Step(path: $0, reads: reads(of: $0)) }
  }

  /// The given paths and all that read them, directly or through others, each once, and each after
  /// what it reads.
  func readers(of starts: [OperationPath]) -> [OperationPath] {
    var visited: Set<OperationPath> = []
    var order: [OperationPath] = []
    // Depth first, without recursion: a path is put down when all its readers have been.
    var open: [(path: OperationPath, isDone: Bool)] = starts.reversed().map { ($0, false) }
    while let (path, isDone) = open.popLast() {
      if isDone {
        order.append(path)
      } else if visited.insert(path).inserted {
        open.append((path, true))
        for reader in readers[path] ?? [] where !visited.contains(reader) {
          open.append((reader, false))
        }
      }
    }
    return order.reversed()
  }
}
