import Glibc
import ReactiveStreams
import Synchronization

/// What a task waits for: another one, and how to wait for it.
struct TaskDependency: Sendable {
  let node: TaskNode
  /// Gives the one that is waited for now, if it may be one that follows the first.
  let successor: (@Sendable () -> TaskNode?)?
  let wait: nonisolated(nonsending) @Sendable () async -> Void

  init(
    node: TaskNode, successor: (@Sendable () -> TaskNode?)? = nil,
    wait: nonisolated(nonsending) @escaping @Sendable () async -> Void
  ) {
    self.node = node
    self.successor = successor
    self.wait = wait
  }

  /// Whether the current Swift task runs the request of the task that is waited for.
  var isRunByCurrentTask: Bool {
    node.isRunByCurrentTask || successor?()?.isRunByCurrentTask == true
  }
}

/// What one task is for others, whatever it gives: the run that it is, how far it is, who waits for
/// it, and its place in the schedule of all tasks of the process.
///
/// One lock guards the edges of all nodes, because two edges that are made at the same time on two
/// threads may form a cycle together. It is taken only by tasks that wait for others. Another one
/// guards the machine of the task and its driver; continuations are resumed and Swift tasks are
/// cancelled without it. The driver is held until the task has ended, so that a task that lies in a
/// history does not keep its store alive. How far the task is can be read without a lock.
final class TaskNode: Sendable {
  private static let graph = Mutex(TaskGraph())

  let id: OperationTaskID
  /// Why the run was started.
  let cause: OperationRun.Cause
  /// Where the store of the run is; `nil` without one.
  let place: OperationRun.Place?
  let isRunning = Atomic(false)
  /// Whether the task may have edges; what asks for them begins with a look at this.
  let isScheduled = Atomic(false)
  /// The Swift task that ran the request last.
  let runner = Atomic(0)
  let guarded: Mutex<TaskState>
  let flags = Atomic<UInt8>(0)

  init(
    id: OperationTaskID = .next(), cause: OperationRun.Cause = .fetch,
    place: OperationRun.Place? = nil, driver: (any TaskDriver)? = nil
  ) {
    self.id = id
    self.cause = cause
    self.place = place
    guarded = Mutex(TaskState(driver: driver))
  }

  deinit {
    remove()
  }

  /// Whether the request of the task is being run.
  var isUnderWay: Bool {
    get { isRunning.load(ordering: .sequentiallyConsistent) }
    set {
      if newValue {
        runner.store(Self.currentTask, ordering: .relaxed)
        isRunning.store(true, ordering: .releasing)
      } else {
        isRunning.store(false, ordering: .sequentiallyConsistent)
      }
    }
  }

  /// Whether the current Swift task runs the request of the task, or of one that it waits for: then
  /// it would wait for itself. A request that is under way waits for none of them any more.
  var isWaitedForByItself: Bool {
    isRunByCurrentTask
      || mayHaveDependencies && !isUnderWay && edges.contains { $0.isRunByCurrentTask }
  }

  var isRunByCurrentTask: Bool {
    isUnderWay && runner.load(ordering: .relaxed) == Self.currentTask
  }

  /// The Swift task that calls: its reference, as a number that holds nothing. Its hash would do, and
  /// costs five times as much.
  static var currentTask: Int {
    withUnsafeCurrentTask { withUnsafeBytes(of: $0) { $0.load(as: Int.self) } }
  }

  /// Whether there may be tasks to wait for.
  var mayHaveDependencies: Bool { isScheduled.load(ordering: .acquiring) }

  /// The tasks to wait for; the edges stay until the task has ended.
  func dependencies() -> [TaskDependency] { mayHaveDependencies ? edges : [] }

  var edges: [TaskDependency] { Self.graph.withLock { $0.dependencies(of: id) } }

  /// The task has ended: nobody waits for anything through it.
  func remove() {
    if mayHaveDependencies { removeEdges() }
  }

  /// Adds edges, but none that would close a cycle: that is reported.
  func wait(for dependencies: [TaskDependency]) {
    if dependencies.isEmpty { return }
    let refused = Self.graph.withLock { $0.add(dependencies, to: id) }
    // Behind the edges: a removal that comes between the two leaves the flag for the deinit.
    isScheduled.store(true, ordering: .releasing)
    for other in refused {
      let issue = TaskGraph.cycleIssue(id, of: place?.path, after: other.node.id)
      if let driver { driver.report(issue) } else { issue.report() }
    }
  }

  func removeEdges() {
    guard isScheduled.exchange(false, ordering: .acquiringAndReleasing) else { return }
    let thread = UInt(pthread_self())
    // Never the last to hold an edge under the lock: what goes away with it is the user's.
    let (edges, mustRelease) = Self.graph.withLock { $0.remove(id, toReleaseOn: thread) }
    _ = consume edges
    guard mustRelease else { return }
    while let removed = Self.graph.withLock({ $0.nextToRelease(on: thread) }) {
      withExtendedLifetime(removed) {}
    }
  }
}

/// The machine of the schedule: which task waits for which, without a cycle.
struct TaskGraph: Sendable {
  private struct Node: Sendable {
    var edges: [TaskDependency] = []
    /// By how many edges the task is waited for.
    var waitCount = 0
  }

  private var nodes: [OperationTaskID: Node] = [:]
  /// Edges that were removed, by the thread that releases them without the lock.
  private var toRelease: [UInt: [[TaskDependency]]] = [:]

  var isEmpty: Bool { nodes.isEmpty && toRelease.isEmpty }

  func dependencies(of id: OperationTaskID) -> [TaskDependency] {
    nodes[id]?.edges ?? []
  }

  /// Adds edges; gives those that would close a cycle, which are not made.
  mutating func add(
    _ dependencies: [TaskDependency], to id: OperationTaskID
  ) -> [TaskDependency] {
    // A task that nobody waits for closes no cycle, so that a new one needs no look at the others.
    let isAwaited = nodes[id].map { $0.waitCount > 0 } ?? false
    let refused = dependencies.filter {
      $0.node.id == id || isAwaited && reaches(id, from: $0.node.id)
    }
    if refused.count == dependencies.count { return refused }
    let made =
      refused.isEmpty
      ? dependencies
      : dependencies.filter { edge in !refused.contains { $0.node === edge.node } }
    if nodes[id, default: Node()].edges.isEmpty {
      nodes[id, default: Node()].edges = made
    } else {
      nodes[id, default: Node()].edges += made
    }
    for other in made { nodes[other.node.id, default: Node()].waitCount += 1 }
    return refused
  }

  /// Takes a task's edges out.
  private mutating func take(_ id: OperationTaskID) -> [TaskDependency] {
    guard let index = nodes.index(forKey: id) else { return [] }
    let edges = nodes.values[index].edges
    nodes.values[index].edges = []
    if nodes.values[index].waitCount == 0 { nodes[id] = nil }
    for other in edges {
      let id = other.node.id
      guard let index = nodes.index(forKey: id) else { continue }
      nodes.values[index].waitCount -= 1
      if nodes.values[index].waitCount == 0, nodes.values[index].edges.isEmpty { nodes[id] = nil }
    }
    return edges
  }

  /// Removes a task's edges. Gives them back where nothing else goes with them. Otherwise they are to
  /// be released on a thread; tells whether it has to begin with that, because it does not release
  /// others already. So the end of a long chain is no deep recursion.
  mutating func remove(
    _ id: OperationTaskID, toReleaseOn thread: UInt
  ) -> (edges: [TaskDependency], mustRelease: Bool) {
    let edges = take(id)
    // What has ended waits for nothing, so that it takes nothing else along.
    if edges.allSatisfy({ $0.node.progress.isEnded }) { return (edges, false) }
    defer { toRelease[thread, default: []].append(edges) }
    return ([], toRelease[thread] == nil)
  }

  mutating func nextToRelease(on thread: UInt) -> [TaskDependency]? {
    let next = toRelease[thread]?.popLast()
    if next == nil { toRelease[thread] = nil }
    return next
  }

  private func reaches(_ target: OperationTaskID, from start: OperationTaskID) -> Bool {
    var visited: Set<OperationTaskID> = []
    var open = [start]
    while let id = open.popLast() {
      if id == target { return true }
      guard visited.insert(id).inserted else { continue }
      open.append(contentsOf: dependencies(of: id).map(\.node.id))
    }
    return false
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
