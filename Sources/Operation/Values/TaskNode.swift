import Glibc
import ReactiveStreams
public import Synchronization

/// What a task waits for: another one, and how to wait for it.
@usableFromInline struct TaskDependency: Sendable {
  @usableFromInline let node: TaskNode
  @usableFromInline let wait: nonisolated(nonsending) @Sendable () async -> Void

  @usableFromInline init(
    node: TaskNode, wait: nonisolated(nonsending) @escaping @Sendable () async -> Void
  ) {
    self.node = node
    self.wait = wait
  }
}

/// Several tasks to wait for.
@usableFromInline typealias TaskDependencies = [OperationTaskID: TaskDependency]

/// What one task is for others, whatever it gives: the run that it is, how far it is, who waits for
/// it, and its place in the schedule of all tasks of the process.
///
/// One lock guards the edges of all nodes, because two edges that are made at the same time on two
/// threads may form a cycle together. It is taken only by tasks that wait for others. Another one
/// guards the machine of the task and its driver; continuations are resumed and Swift tasks are
/// cancelled without it. The driver is held until the task has ended, so that a task that lies in a
/// history does not keep its store alive. How far the task is can be read without a lock.
@usableFromInline final class TaskNode: Sendable {
  private static let graph = Mutex(TaskGraph())

  @usableFromInline let id: OperationTaskID
  /// Why the run was started.
  @usableFromInline let cause: OperationRun.Cause
  /// Where the store of the run is; `nil` without one.
  let place: OperationRun.Place?
  @usableFromInline let isRunning = Atomic(false)
  /// Whether the task may have edges; what asks for them begins with a look at this.
  @usableFromInline let isScheduled = Atomic(false)
  /// The Swift task that ran the request last.
  @usableFromInline let runner = Atomic(0)
  @usableFromInline let guarded: Mutex<TaskState>
  @usableFromInline let flags = Atomic<UInt8>(0)

  @usableFromInline init(
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
  @inlinable var isUnderWay: Bool {
    get { isRunning.load(ordering: .sequentiallyConsistent) }
    set {
      if newValue { runner.store(Self.currentTask, ordering: .relaxed) }
      isRunning.store(newValue, ordering: .sequentiallyConsistent)
    }
  }

  /// Whether the current Swift task runs the request of the task, or of one that it waits for: then
  /// it would wait for itself.
  @inlinable var isWaitedForByItself: Bool {
    isRunByCurrentTask || dependencies().contains { $0.node.isRunByCurrentTask }
  }

  @inlinable var isRunByCurrentTask: Bool {
    isUnderWay && runner.load(ordering: .relaxed) == Self.currentTask
  }

  /// The Swift task that calls: its reference, as a number that holds nothing. Its hash would do, and
  /// costs five times as much.
  @usableFromInline static var currentTask: Int {
    withUnsafeCurrentTask { withUnsafeBytes(of: $0) { $0.load(as: Int.self) } }
  }

  /// Adds an edge, unless it would close a cycle, which is reported.
  @usableFromInline func wait(for dependency: TaskDependency) {
    guard Self.graph.withLock({ $0.add(dependency, to: id) }) else {
      return TaskGraph.cycleIssue(id, after: dependency.node.id).report()
    }
    // Behind the edge: a removal that comes between the two leaves the flag for the deinit.
    isScheduled.store(true, ordering: .releasing)
  }

  /// Whether there may be tasks to wait for.
  @inlinable var mayHaveDependencies: Bool { isScheduled.load(ordering: .acquiring) }

  /// Takes the tasks to wait for; the edges stay until the task has ended.
  @inlinable func dependencies() -> [TaskDependency] { mayHaveDependencies ? edges : [] }

  @usableFromInline var edges: [TaskDependency] { Self.graph.withLock { $0.dependencies(of: id) } }

  /// The task has ended: nobody waits for anything through it.
  @inlinable func remove() {
    if mayHaveDependencies { removeEdges() }
  }

  @usableFromInline func removeEdges() {
    guard isScheduled.exchange(false, ordering: .acquiringAndReleasing) else { return }
    let thread = UInt(pthread_self())
    guard Self.graph.withLock({ $0.remove(id, toReleaseOn: thread) }) else { return }
    while let removed = Self.graph.withLock({ $0.nextToRelease(on: thread) }) {
      withExtendedLifetime(removed) {}
    }
  }
}

/// The machine of the schedule: which task waits for which, without a cycle.
struct TaskGraph: Sendable {
  private var edges: [OperationTaskID: [TaskDependency]] = [:]
  /// By how many edges a task is waited for. A task that nobody waits for closes no cycle, so that
  /// a new one is added without a look at the others.
  private var waitCounts: [OperationTaskID: Int] = [:]
  /// Edges that were removed, by the thread that releases them without the lock.
  private var toRelease: [UInt: [[TaskDependency]]] = [:]

  var isEmpty: Bool { edges.isEmpty && waitCounts.isEmpty && toRelease.isEmpty }

  mutating func add(_ dependency: TaskDependency, to id: OperationTaskID) -> Bool {
    let other = dependency.node.id
    guard id != other, waitCounts[id] == nil || !reaches(id, from: other) else { return false }
    edges[id, default: []].append(dependency)
    waitCounts[other, default: 0] += 1
    return true
  }

  func dependencies(of id: OperationTaskID) -> [TaskDependency] {
    edges[id] ?? []
  }

  /// Removes a task's edges and gives them back, to be released without the lock.
  mutating func remove(_ id: OperationTaskID) -> [TaskDependency]? {
    let removed = edges.removeValue(forKey: id)
    for dependency in removed ?? [] {
      let other = dependency.node.id
      waitCounts[other] = waitCounts[other].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
    return removed
  }

  /// Removes a task's edges, to be released on a thread; tells whether it has to begin with that,
  /// because it does not release others already. So the end of a long chain is no deep recursion.
  mutating func remove(_ id: OperationTaskID, toReleaseOn thread: UInt) -> Bool {
    guard let removed = remove(id) else { return false }
    defer { toRelease[thread, default: []].append(removed) }
    return toRelease[thread] == nil
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
    _ id: OperationTaskID, after other: OperationTaskID
  ) -> OperationIssue {
    OperationIssue(
      kind: .scheduleCycle,
      message: """
        Task \(id) cannot be scheduled after task \(other), which waits for it already; \
        both run without this wait.
        """)
  }
}
