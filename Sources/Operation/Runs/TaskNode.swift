import ReactiveStreams
import Synchronization

/// The object that runs tasks: a store, or a table of shared runs.
protocol TaskDriver: AnyObject, Sendable {
  /// Starts a task or joins it. Returns whether the caller holds a lease from now on.
  ///
  /// A caller that waits only for the end (`joins` is `false`) takes a lease only if it starts the task.
  func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool
  /// Releases the lease of a caller that waited.
  func releaseLease(on id: OperationTaskID)
  /// Cancels the task for all callers.
  func cancel(_ id: OperationTaskID)
  /// Whether other runs may wait for all that this driver starts.
  var isAwaited: Bool { get }
  /// The run that a task of this driver waits for, because the runs of its scope are serialized.
  var serialRun: TaskNode? { get }
  /// A run has made a step, in its context.
  func note(_ step: RunStep, in context: OperationContext)
  /// Performs an action now, or after the lock of the driver if the calling thread holds it.
  func performUnlocked(_ action: @escaping @Sendable () -> Void)
}

/// A driver that hands out no handles of its tasks has them neither started nor cancelled by one.
extension TaskDriver {
  func start(_: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool { false }
  func cancel(_ id: OperationTaskID) {}
  var isAwaited: Bool { false }
  var serialRun: TaskNode? { nil }
  func note(_ step: RunStep, in context: OperationContext) {}
  func performUnlocked(_ action: @escaping @Sendable () -> Void) { action() }
}

/// One task, without the types of its value and failure: its run, its phase, its waiters, and the tasks
/// that come first.
///
/// The lock of `guarded` guards all of these. Continuations are resumed and Swift tasks are cancelled
/// without it. The driver is retained until the task has ended, so that a task in a history
/// does not retain its store. The progress is also stored in `flags`, to be read without a lock.
final class TaskNode: ContextRun {
  // Checked continuations would put the benchmark awaiters of a shared run further over its limit.
  typealias Continuation = UnsafeContinuation<(any TaskOutput)?, Never>

  struct Guarded: Sendable {
    var machine = TaskMachine<any TaskOutput, Continuation>()
    var driver: (any TaskDriver)?
    /// The tasks that come first.
    var dependencies: [TaskDependency] = []
    /// The run whose request has called this one, while the request of this one is called.
    var caller: TaskNode?
    /// What the request of this run awaits.
    var awaited = WaitList<TaskNode>()
  }

  /// How far the call of the request is.
  private enum RequestPhase: UInt8, AtomicRepresentable {
    case notCalled, inProgress, returned
  }

  /// The run whose request the current task works for. Child tasks inherit it. It is set between
  /// ``beginRequest(calledBy:)`` and ``endRequest(launch:)``.
  static var current: TaskNode? { CurrentWork.value as? TaskNode }

  let id = OperationTaskID.next()
  /// The cause of the run.
  let cause: OperationRun.Cause
  /// The store of the run; `nil` without a store.
  let origin: OperationRun.Origin?
  /// The path of a run without a store. The request itself is not retained: it may retain what its runs
  /// have, such as a continuation.
  private let ownPath: OperationPath?
  let guarded: Mutex<Guarded>
  private let flags = Atomic<UInt8>(0)
  private let requestPhase = Atomic(RequestPhase.notCalled)
  private let lastLaunch = Atomic(0)
  private let hasBeenCutOff = Atomic(false)
  /// Whether another run may wait for this one.
  let isAwaited = Atomic(false)
  /// Whether the task may have dependencies. What needs them reads this first.
  let isScheduled = Atomic(false)

  init(
    cause: OperationRun.Cause = .fetch, origin: OperationRun.Origin? = nil,
    driver: (any TaskDriver)? = nil, path: OperationPath? = nil
  ) {
    self.cause = cause
    self.origin = origin
    ownPath = path
    guarded = Mutex(Guarded(driver: driver))
  }

  deinit { removeDependencies() }

  var progress: TaskProgress { TaskProgress(rawValue: flags.load(ordering: .acquiring)) }
  var path: OperationPath? { origin?.path ?? ownPath }
  var driver: (any TaskDriver)? { guarded.withLock { $0.driver } }
  var output: (any TaskOutput)? { progress.isEnded ? guarded.withLock { $0.machine.output } : nil }

  /// Performs a transition, and stores the progress after it.
  private func commit<Output: Sendable>(_ transition: (inout Guarded) -> Output) -> Output {
    guarded.withLock { guarded in
      defer { flags.store(guarded.machine.progress.rawValue, ordering: .releasing) }
      return transition(&guarded)
    }
  }

  /// Starts the task. Returns whether it was scheduled until now.
  func start() -> Bool { commit { $0.machine.start() } }

  func attach(_ task: Task<Void, Never>, launch: Int = 0) {
    let (isCancelled, priority) = guarded.withLock {
      ($0.machine.attach(task, launch: launch), $0.machine.requestedPriority)
    }
    if isCancelled { task.cancel() }
    if let priority { task.escalatePriority(to: TaskPriority(rawValue: priority)) }
  }

  /// A launch replaces the earlier ones. Called under the lock of the store, which has the run: the caller
  /// cancels the replaced Swift task, and releases what it has awaited, without that lock.
  func restart(launch: Int) -> (task: Task<Void, Never>?, awaited: WaitList<TaskNode>) {
    guarded.withLock { guarded in
      let task = guarded.machine.restart(launch: launch)
      lastLaunch.store(guarded.machine.launch, ordering: .releasing)
      return (task, exchange(&guarded.awaited, with: WaitList()))
    }
  }

  func isReplaced(launch: Int) -> Bool { lastLaunch.load(ordering: .acquiring) > launch }

  /// Ends the task.
  func end(with output: any TaskOutput) {
    let (waiters, driver) = commit { ($0.machine.end(with: output), $0.driver.take()) }
    removeDependencies()
    withExtendedLifetime(driver) {}
    waiters.forEach { $0.resume(returning: output) }
  }

  /// Whether a shutdown cancels the run, and not a caller.
  var isCutOff: Bool { hasBeenCutOff.load(ordering: .acquiring) }

  /// Called before the shutdown cancels the run.
  func cutOff() { hasBeenCutOff.store(true, ordering: .releasing) }

  /// Cancels the task after its driver has removed it.
  ///
  /// - Parameter output: The output that waiters receive now; `nil` if they wait for the end.
  func cancelRun(with output: (any TaskOutput)?) {
    let (actions, driver) = commit { guarded in
      (guarded.machine.cancel(with: output), output == nil ? nil : guarded.driver.take())
    }
    actions.cancelled?.cancel()
    removeDependencies()
    withExtendedLifetime(driver) {}
    actions.resumed.forEach { $0.resume(returning: output) }
  }

  /// Raises the priority of the run to that of the calling task, which joins it.
  func escalate() {
    let priority = Task.currentPriority
    guarded.withLock { $0.machine.escalate(to: priority) }?.escalatePriority(to: priority)
  }

  func cancel() { driver?.cancel(id) }

  @Sendable func releaseLease() { driver?.releaseLease(on: id) }

  /// Waits for the end. Returns `nil` if the wait is cancellable and the calling task is cancelled.
  ///
  /// - Parameter onCancel: Called when the calling task is cancelled.
  nonisolated(nonsending) func wait(
    isCancellable: Bool, onCancel: @Sendable () -> Void
  ) async -> (any TaskOutput)? {
    let wait = OperationTaskID.next()
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        if let output = guarded.withLock({ $0.machine.wait(wait, waiter: continuation) }) {
          continuation.resume(returning: output)
        }
        // The handler may have been called before the wait began.
        if isCancellable, Task.isCancelled { cancelWait(wait) }
      }
    } onCancel: {
      onCancel()
      if isCancellable { cancelWait(wait) }
    }
  }

  private func cancelWait(_ id: OperationTaskID) {
    guarded.withLock { $0.machine.cancelWait(id) }?.resume(returning: nil)
  }

  /// Waits for the end of a task that was started; one that was cancelled before is never started.
  nonisolated(nonsending) func waitForEnd() async {
    if !progress.isNeverStarted { _ = await wait(isCancellable: true) {} }
  }
}

// MARK: - Runs that await each other

extension TaskNode {
  /// Whether the request of the task is being called.
  var isInRequest: Bool { requestPhase.load(ordering: .sequentiallyConsistent) == .inProgress }

  /// Whether the request of the task was called, and may have returned.
  var hasCalledRequest: Bool { requestPhase.load(ordering: .sequentiallyConsistent) != .notCalled }

  /// The run of a store that this one works for: itself, or one whose request has called it. `nil` for a run
  /// without a store that no such request has called.
  var storeRun: TaskNode? {
    if origin != nil { return self }
    return sequence(first: self) { node in node.guarded.withLock { $0.caller } }
      .first { $0.origin != nil }
  }

  /// The request of the task is called by a task that works for another run.
  func beginRequest(calledBy caller: TaskNode? = TaskNode.current) {
    if let caller {
      withExtendedLifetime(guarded.withLock { exchange(&$0.caller, with: caller) }) {}
    }
    requestPhase.store(.inProgress, ordering: .releasing)
  }

  /// - Parameter launch: The launch whose request has ended; a later one may be in its request.
  func endRequest(launch: Int = 0) {
    let caller = guarded.withLock { guarded -> TaskNode? in
      guard guarded.machine.launch == launch else { return nil }
      requestPhase.store(.returned, ordering: .sequentiallyConsistent)
      return guarded.caller.take()
    }
    withExtendedLifetime(caller) {}
  }

  /// Returns the cycle that this run closes when it reads a path without a store.
  func cycle(reading path: OperationPath) -> OperationDependencyError? {
    let callers = sequence(first: self) { node in node.guarded.withLock { $0.caller } }
    let readers = callers.filter { $0.isInRequest }
    return readers.firstIndex { $0.path == path }.map { .cycle(through: readers[...$0].reversed()) }
  }

  /// The runs that this one waits for: those that its request awaits, or, before its request is called, the
  /// tasks that come first.
  ///
  /// A run that has ended can occupy its serial scope until its request returns.
  private var awaited: [TaskNode] {
    if isInRequest {
      return guarded.withLock { $0.awaited.elements }.filter { !$0.progress.isEnded }
    }
    let earlier = dependencies.flatMap { [$0.node, $0.successor?()?.node].compactMap(\.self) }
      .filter { !$0.progress.isEnded && !$0.progress.isNeverStarted }
    return driver?.serialRun.map { earlier + [$0] } ?? earlier
  }

  /// Returns the runs from this one to another, of which each waits for the next; `nil` if this one does not
  /// wait for the other.
  func route(to other: TaskNode) -> [TaskNode]? {
    var origins: [OperationTaskID: TaskNode] = [:]
    var open = [self]
    while let node = open.popLast() {
      if node === other {
        return sequence(first: node) { $0 === self ? nil : origins[$0.id] }.reversed()
      }
      for next in node.awaited where next !== self && origins[next.id] == nil {
        origins[next.id] = node
        open.append(next)
      }
    }
    return nil
  }
}

/// A wait of the current run for another one. It is noted first, and then the other run must not wait for
/// the current one: of the waits that form a cycle, the last one that is noted finds all others.
struct RunWait: Sendable {
  private let id: OperationTaskID
  private let awaiter: TaskNode
  /// The cycle that the wait closes, so that it must not begin.
  let cycle: OperationDependencyError?

  /// Notes that the run whose request the current task works for, if there is one, awaits another run.
  init?(for run: TaskNode) {
    guard let awaiter = TaskNode.current, awaiter.isInRequest, !run.progress.isEnded else {
      return nil
    }
    (self.awaiter, id) = (awaiter, .next())
    run.isAwaited.store(true, ordering: .sequentiallyConsistent)
    awaiter.guarded.withLock { [id] in $0.awaited.insert(run, for: id) }
    // Most runs are not awaited, and then there is no cycle to search.
    let isAwaited =
      awaiter.isAwaited.load(ordering: .sequentiallyConsistent)
      || awaiter.driver?.isAwaited ?? false
    cycle = isAwaited ? run.route(to: awaiter).map { .cycle(through: $0) } : nil
  }

  func end() {
    withExtendedLifetime(awaiter.guarded.withLock { $0.awaited.remove(id) }) {}
  }
}

extension OperationDependencyError {
  /// Runs of one store, of which one waits for the other, are one reader.
  fileprivate static func cycle(through runs: [TaskNode]) -> OperationDependencyError {
    .cycle(
      runs.compactMap(\.path).reduce(into: []) { paths, path in
        if path != paths.last { paths.append(path) }
      })
  }
}

extension Task where Failure == Never {
  /// Makes a task. A preference for an executor costs time, also if there is none.
  static func make(
    name: String? = nil, on executor: (any TaskExecutor)?, priority: TaskPriority? = nil,
    _ body: sending @escaping @isolated(any) () async -> Success
  ) -> Task {
    guard let executor else { return Task(name: name, priority: priority, operation: body) }
    return Task(name: name, executorPreference: executor, priority: priority, operation: body)
  }
}

extension Task where Success == Void, Failure == Never {
  /// Starts a task for runs that the current run, if there is one, does not await. It inherits all other
  /// task-local values.
  static func startUnawaited(
    on executor: (any TaskExecutor)?, _ body: @escaping @Sendable @concurrent () async -> Void
  ) {
    CurrentWork.without { _ = make(on: executor, body) }
  }
}
