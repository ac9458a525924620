import ReactiveStreams
import Synchronization

/// A task to wait for, and how to wait for it.
struct TaskDependency: Sendable {
  let node: TaskNode
  /// Returns the task that is waited for now, if another one may follow the first.
  var successor: (@Sendable () -> TaskDependency?)?
  /// Whether a search has found no cycle through it.
  var isConfirmed = false
  /// Starts the task for the waiter, with the given priority if it has none of its own. Returns whether the waiter
  /// holds a lease on it from then on.
  var start: @Sendable (TaskPriority?) -> Bool = { _ in false }
  /// Whether the waiter holds a lease on the task, which is released when the dependency is removed.
  var isHeld = false
  let wait: nonisolated(nonsending) @Sendable () async -> Void

  fileprivate func releaseLease() { if isHeld { node.releaseLease() } }

  /// Waits for the task, and for those that follow it, up to one that waits for the waiter itself. The search for
  /// a cycle when the dependency was added could not find that one, which began later.
  nonisolated(nonsending) fileprivate func wait(by waiter: TaskNode) async {
    await wait()
    while !Task.isCancelled, let next = successor?() {
      if next.node.route(to: waiter) != nil { return waiter.removeDependency(on: node) }
      await next.wait()
    }
  }
}

extension TaskNode {
  private var mayHaveDependencies: Bool { isScheduled.load(ordering: .sequentiallyConsistent) }

  /// The tasks to wait for, also those that are not confirmed. They are removed after the wait.
  var dependencies: [TaskDependency] {
    mayHaveDependencies ? guarded.withLock { $0.dependencies } : []
  }

  /// The tasks that this one waits for if it begins now. One that is added meanwhile is not confirmed.
  var confirmedDependencies: [TaskDependency] { dependencies.filter(\.isConfirmed) }

  /// Starts the tasks that this one waits for, and returns them. What one of them waits for is started before it,
  /// so that the outbox has the calls in the order in which they are made.
  ///
  /// - Parameter priority: That of this task.
  func startDependencies(_ priority: TaskPriority? = nil) -> [TaskDependency] {
    let own = confirmedDependencies
    // No recursion, which would be deep in a long chain. A task is last when what it waits for was started.
    var open = own.reversed().map { (waiter: self, task: $0, isLast: false) }
    while let (waiter, task, isLast) = open.popLast() {
      if task.node.progress.hasBegun { continue }
      if isLast {
        waiter.start(task, priority)
      } else {
        open.append((waiter, task, true))
        open += task.node.confirmedDependencies.reversed().map { (task.node, $0, false) }
      }
    }
    return own
  }

  private func start(_ dependency: TaskDependency, _ priority: TaskPriority?) {
    guard dependency.start(priority) else { return }
    let isPresent = guarded.withLock { guarded in
      let index = guarded.dependencies.lastIndex { $0.node === dependency.node && $0.isConfirmed }
      if let index { guarded.dependencies[index].isHeld = true }
      return index != nil
    }
    // This task may have been cancelled meanwhile.
    if !isPresent { dependency.node.releaseLease() }
  }

  /// Waits until the given dependencies have ended, and then removes all of them. A successor that begins
  /// later is not waited for and may await this task, so no cycle must be found through it.
  nonisolated(nonsending) func waitForDependencies(_ dependencies: [TaskDependency]) async {
    defer { removeDependencies() }
    if dependencies.count == 1 { return await dependencies[0].wait(by: self) }
    await withTaskGroup(of: Void.self) { group in
      for dependency in dependencies { group.addTask { await dependency.wait(by: self) } }
    }
  }

  /// Makes the task wait for another one, unless that would close a cycle, which is reported.
  ///
  /// As with a ``RunWait``, the dependency is added first, and then a cycle is searched: of those that form a
  /// cycle, the last one that is added finds all others.
  func addDependency(on other: TaskDependency) {
    other.node.isAwaited.store(true, ordering: .sequentiallyConsistent)
    let isAdded = guarded.withLock { guarded in
      // Nothing would remove it: two tasks could retain each other.
      if guarded.machine.progress.isEnded || guarded.machine.progress.isCancelled { return false }
      guarded.dependencies.append(other)
      isScheduled.store(true, ordering: .sequentiallyConsistent)
      return true
    }
    guard isAdded else { return }
    // Most tasks are not awaited when they are scheduled, and then there is no cycle to search.
    if !isAwaited.load(ordering: .sequentiallyConsistent) {
      return confirm(other.node)
    }
    // The search takes locks of stores. A state does this under that of its store.
    let search = { @Sendable [self] in
      if other.node.route(to: self) == nil { return confirm(other.node) }
      removeDependency(on: other.node)
      OperationIssue.report(
        .scheduleCycle,
        """
        Task \(id) of \(origin?.path ?? []) cannot be scheduled after task \(other.node.id), which waits \
        for it already; both run without this wait.
        """)
    }
    if let driver { driver.performUnlocked(search) } else { search() }
  }

  private func confirm(_ other: TaskNode) {
    guarded.withLock { guarded in
      let index = guarded.dependencies.lastIndex { !$0.isConfirmed && $0.node === other }
      if let index { guarded.dependencies[index].isConfirmed = true }
    }
  }

  /// Removes the last dependency that was added for a task.
  fileprivate func removeDependency(on other: TaskNode) {
    let removed = guarded.withLock { guarded in
      let index = guarded.dependencies.lastIndex { $0.node === other }
      return index.map { guarded.dependencies.remove(at: $0) }
    }
    removed?.releaseLease()
  }

  func removeDependencies() {
    guard mayHaveDependencies, isScheduled.exchange(false, ordering: .acquiringAndReleasing) else {
      return
    }
    Self.release(guarded.withLock { exchange(&$0.dependencies, with: []) })
  }

  /// The dependencies that a thread releases, one list after the other.
  private static let released = Mutex<[ThreadID: [[TaskDependency]]]>([:])

  /// Releases removed dependencies without a lock, because closures of users may go with them.
  ///
  /// What a dependency releases in turn is released by the outermost call on the thread, so that the end of a
  /// long chain is no deep recursion.
  private static func release(_ dependencies: consuming [TaskDependency]) {
    // A task that has ended has no dependencies.
    if dependencies.allSatisfy({ $0.node.progress.isEnded }) { return }
    let thread = ThreadID.current
    let isOutermost = released.withLock { [dependencies = consume dependencies] lists in
      let isOutermost = lists[thread] == nil
      lists[thread, default: []].append(dependencies)
      return isOutermost
    }
    guard isOutermost else { return }
    while let next = released.withLock({ $0[thread]?.popLast() }) {
      for dependency in next { dependency.releaseLease() }
    }
    released.withLock { $0[thread] = nil }
  }
}
