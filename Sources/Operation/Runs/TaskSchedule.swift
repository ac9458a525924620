import ReactiveStreams

/// The machine of the schedule: the dependencies of all tasks, without a cycle.
struct TaskSchedule: Sendable {
  private struct Node: Sendable {
    var dependencies: [TaskDependency] = []
    /// The number of dependencies on this task.
    var dependentCount = 0

    var isEmpty: Bool { dependencies.isEmpty && dependentCount == 0 }
  }

  private var nodes: [OperationTaskID: Node] = [:]
  /// Each task after those that it waits for.
  private var order = TopologicalOrder<OperationTaskID>()
  /// Removed dependencies, by the thread that releases them without the lock.
  private var toRelease: [UInt: [[TaskDependency]]] = [:]

  var isEmpty: Bool { nodes.isEmpty && order.isEmpty && toRelease.isEmpty }

  func dependencies(of id: OperationTaskID) -> [TaskDependency] { nodes[id]?.dependencies ?? [] }

  /// Adds dependencies. Returns those that would close a cycle, which are not added.
  mutating func add(_ dependencies: [TaskDependency], to id: OperationTaskID) -> [TaskDependency] {
    var added: [TaskDependency] = []
    var refused: [TaskDependency] = []
    for other in dependencies {
      if other.node.id == id || closesCycle(id, after: other.node.id) {
        refused.append(other)
      } else {
        added.append(other)
      }
    }
    if added.isEmpty { return refused }
    nodes[id, default: Node()].dependencies += added
    for other in added { nodes[other.node.id, default: Node()].dependentCount += 1 }
    return refused
  }

  /// Removes the dependencies of a task.
  ///
  /// Returns them if nothing else is released with them. Otherwise they are released on a thread one
  /// list after the other, so that the end of a long chain is no deep recursion; `mustRelease` says
  /// whether the caller begins with that, because the thread does not release others already.
  mutating func remove(
    _ id: OperationTaskID, toReleaseOn thread: UInt
  ) -> (removed: [TaskDependency], mustRelease: Bool) {
    let removed = take(id)
    // A task that has ended has no dependencies.
    if removed.allSatisfy({ $0.node.progress.isEnded }) { return (removed, false) }
    defer { toRelease[thread, default: []].append(removed) }
    return ([], toRelease[thread] == nil)
  }

  mutating func nextToRelease(on thread: UInt) -> [TaskDependency]? {
    let next = toRelease[thread]?.popLast()
    if next == nil { toRelease[thread] = nil }
    return next
  }

  private mutating func take(_ id: OperationTaskID) -> [TaskDependency] {
    guard let removed = nodes[id]?.dependencies else { return [] }
    nodes[id]?.dependencies = []
    removeIfEmpty(id)
    for other in removed {
      nodes[other.node.id]?.dependentCount -= 1
      removeIfEmpty(other.node.id)
    }
    return removed
  }

  private mutating func removeIfEmpty(_ id: OperationTaskID) {
    guard nodes[id]?.isEmpty == true else { return }
    nodes[id] = nil
    order.remove(id)
  }

  private mutating func closesCycle(_ id: OperationTaskID, after other: OperationTaskID) -> Bool {
    let cycle = order.place(id, after: other) { [nodes] in
      nodes[$0]?.dependencies.map(\.node.id) ?? []
    }
    return cycle != nil
  }

  static func cycleIssue(
    _ id: OperationTaskID, of path: OperationPath?, after other: OperationTaskID
  ) -> OperationIssue {
    OperationIssue(
      kind: .scheduleCycle,
      message: """
        Task \(id) of \(path ?? []) cannot be scheduled after task \(other), which waits for it \
        already; both run without this wait.
        """)
  }
}
