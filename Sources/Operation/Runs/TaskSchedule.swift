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
  /// Lists of removed dependencies, by the thread that releases them without the lock.
  private var toRelease: [UInt: [[TaskDependency]]] = [:]

  var isEmpty: Bool { nodes.isEmpty && order.isEmpty && toRelease.isEmpty }

  func dependencies(of id: OperationTaskID) -> [TaskDependency] { nodes[id]?.dependencies ?? [] }

  /// Adds a dependency, unless it would close a cycle of dependencies. Returns whether it was added. It is
  /// unconfirmed until other cycles have been searched.
  mutating func add(_ other: TaskDependency, to id: OperationTaskID) -> Bool {
    let otherID = other.node.id
    if otherID == id { return false }
    let cycle = order.place(id, after: otherID) { [nodes] in
      nodes[$0]?.dependencies.map(\.node.id) ?? []
    }
    if cycle != nil { return false }
    nodes[id, default: Node()].dependencies.append(other)
    nodes[otherID, default: Node()].dependentCount += 1
    return true
  }

  /// Confirms an added dependency, or removes it if it closes a cycle. What is removed is released without
  /// the lock.
  mutating func confirm(
    _ other: OperationTaskID, of id: OperationTaskID, closesCycle: Bool
  ) -> TaskDependency? {
    guard
      let index = nodes[id]?.dependencies.lastIndex(where: {
        !$0.isConfirmed && $0.node.id == other
      })
    else { return nil }
    nodes[id]?.dependencies[index].isConfirmed = true
    return closesCycle ? take(id, index..<index + 1).first : nil
  }

  /// Removes the dependencies of a task.
  ///
  /// Returns them if all of these tasks have ended: then their release releases no further dependencies.
  /// Otherwise they are queued for the thread, which releases one list after the other, so that the end of
  /// a long chain is no deep recursion. With `mustRelease` the caller begins with that; without it, an outer
  /// call on the thread is at it already.
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

  private mutating func take(_ id: OperationTaskID, _ range: Range<Int>? = nil) -> [TaskDependency]
  {
    let all = nodes[id]?.dependencies ?? []
    let range = range ?? all.indices
    nodes[id]?.dependencies.removeSubrange(range)
    removeIfEmpty(id)
    for other in all[range] {
      nodes[other.node.id]?.dependentCount -= 1
      removeIfEmpty(other.node.id)
    }
    return Array(all[range])
  }

  private mutating func removeIfEmpty(_ id: OperationTaskID) {
    guard nodes[id]?.isEmpty == true else { return }
    nodes[id] = nil
    order.remove(id)
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
