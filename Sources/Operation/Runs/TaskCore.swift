import ReactiveStreams
import Synchronization

/// Whoever runs tasks: a store.
protocol TaskDriver: AnyObject, Sendable {
  /// Somebody starts a task, or joins it; tells whether he holds a lease from now on. Whoever only
  /// wants the task to end holds none on one that was started.
  func enter(
    _ task: TaskNode, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool
  /// Somebody who waited gives his lease back.
  func leave(_ id: OperationTaskID)
  /// The task is cancelled for everybody.
  func cancel(_ id: OperationTaskID)
  /// Reports what went wrong with a task, when no lock of the driver is held.
  func report(_ issue: OperationIssue)
}

extension TaskDriver {
  /// Reports it at once.
  func report(_ issue: OperationIssue) { issue.report() }
}

/// What the lock of a task guards.
struct TaskState: ~Copyable, Sendable {
  typealias Continuation = UnsafeContinuation<ErasedTaskOutput?, Never>

  var machine: TaskMachine<ErasedTaskOutput, Continuation>
  var driver: (any TaskDriver)?

  init(driver: (any TaskDriver)?) {
    machine = TaskMachine()
    self.driver = driver
  }
}

extension TaskNode {
  /// Performs a transition, and notes how far the task is then.
  func commit<Output: Sendable>(
    _ transition: (inout TaskState) -> Output
  ) -> Output {
    guarded.withLock { guarded in
      defer { flags.store(guarded.machine.progress.rawValue, ordering: .releasing) }
      return transition(&guarded)
    }
  }

  var progress: TaskProgress { TaskProgress(rawValue: flags.load(ordering: .acquiring)) }
  var driver: (any TaskDriver)? { guarded.withLock { $0.driver } }

  /// Somebody starts the task; tells whether it is the first.
  func start() -> Bool { commit { $0.machine.start() } }

  func attach(_ task: Task<Void, Never>) {
    if guarded.withLock({ $0.machine.attach(task) }) { task.cancel() }
  }

  /// The run has ended.
  func end(with output: ErasedTaskOutput) {
    let (waiters, driver) = commit { ($0.machine.end(with: output), $0.driver.take()) }
    remove()
    _ = consume driver
    waiters.each { $0.resume(returning: output) }
  }

  /// The store has cancelled the run. Who waits goes with `output`, or, without it, at the end.
  func cancelRun(with output: ErasedTaskOutput?) {
    let (actions, driver) = commit { guarded in
      (guarded.machine.cancel(with: output), output == nil ? nil : guarded.driver.take())
    }
    actions.cancelled?.cancel()
    remove()
    _ = consume driver
    actions.resumed.each { $0.resume(returning: output) }
  }

  func cancel() { driver?.cancel(id) }

  @Sendable func leave() { driver?.leave(id) }

  /// Starts the run if need be, and waits until it is over; holds a lease only if it has to start the
  /// run.
  nonisolated(nonsending) func end(
    startingWith configuration: OperationTaskConfiguration
  ) async {
    let progress = progress
    // Nobody will start what was cancelled before.
    if progress.isCancelled, !progress.hasStarted { return }
    // Whoever waits for one that was started holds nothing.
    let isHeld =
      !progress.hasStarted
      && driver?.enter(self, configuration: configuration, onlyToStart: true) ?? false
    _ = await wait(isCancellable: true) { if isHeld { leave() } }
  }

  /// Waits for the end. If the task is to be started, that is when he waits; `launch` is told whether
  /// nobody else has.
  nonisolated(nonsending) func wait(
    isCancellable: Bool, isToBeStarted: Bool = false, launch: (_ isFirst: Bool) -> Void = { _ in },
    onCancel: @Sendable () -> Void
  ) async -> ErasedTaskOutput? {
    let wait = isToBeStarted ? id : OperationTaskID.next()
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let (step, isFirst) = commit {
          ($0.machine.wait(wait, waiter: continuation), isToBeStarted && $0.machine.start())
        }
        if case .resume(let output) = step { continuation.resume(returning: output) }
        if isToBeStarted { launch(isFirst) }
      }
    } onCancel: {
      onCancel()
      guard isCancellable else { return }
      guarded.withLock { $0.machine.cancelWait(wait) }?.resume(returning: nil)
    }
  }
}

/// A task as one that gives a value of a type, or a failure.
///
/// It is no object of its own: what tasks store is of the same types for all values and failures.
/// Where it is not, the end of each asks the runtime for its types, which costs nearly as much as a
/// bare task.
struct TaskCore<Value: Sendable, Failure: Error>: Sendable, Equatable {
  typealias Output = Result<Value, Failure>

  let node: TaskNode

  init(_ node: TaskNode) {
    self.node = node
  }

  init(
    driver: any TaskDriver, cause: OperationRun.Cause = .fetch, place: OperationRun.Place? = nil
  ) {
    self.init(TaskNode(cause: cause, place: place, driver: driver))
  }

  static func == (lhs: Self, rhs: Self) -> Bool { lhs.node === rhs.node }

  var id: OperationTaskID { node.id }
  var progress: TaskProgress { node.progress }
  var finishedResult: Output? {
    progress.isEnded ? Output(node.guarded.withLock { $0.machine.output }) : nil
  }

  /// The store has cancelled the run: whoever can be told that, goes.
  func cancelRun() {
    node.cancelRun(
      with: cancellationFailure(as: Failure.self).map { Output.failure($0).erased })
  }

  /// The run has ended.
  func end(with output: Output) { node.end(with: output.erased) }

  /// Starts the run if need be, and waits for its result; holds a lease meanwhile.
  nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Output {
    // Not if the caller is that run.
    let path = node.place?.path ?? []
    if node.isWaitedForByItself, let failure = Self.failure(of: .cycle([path]), at: path) {
      return .failure(failure)
    }
    _ = node.driver?.enter(node, configuration: configuration, onlyToStart: false)
    return await result()
  }

  /// A circle as a failure; nil, and a report, where the failure cannot say so.
  static func failure(
    of circle: OperationDependencyError, at path: OperationPath
  ) -> Failure? {
    if let failure = circle as? Failure { return failure }
    OperationIssue(
      kind: .dependencyCycle,
      message: "\(circle), and \(Failure.self) cannot say so as the failure of \(path)."
    ).report()
    return nil
  }

  /// Waits for the result; the caller holds a lease already. If the task is to be started, that is
  /// when he waits; `launch` is told whether nobody else has.
  nonisolated(nonsending) func result(
    isToBeStarted: Bool = false, launch: (_ isFirst: Bool) -> Void = { _ in }
  ) async -> Output {
    let isCancellable = isCancellable(Failure.self)
    while true {
      let output = await node.wait(
        isCancellable: isCancellable, isToBeStarted: isToBeStarted, launch: launch,
        onCancel: node.leave)
      if let output = Output(output) { return output }
      // Only a caller who can be told that he was cancelled goes without a result.
      if let failure = cancellationFailure(as: Failure.self) { return .failure(failure) }
    }
  }
}

/// What a task ended with: a ``TaskValue``, or a ``TaskFailure``.
typealias ErasedTaskOutput = any AnyObject & Sendable

final class TaskValue<Value: Sendable>: Sendable {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}

final class TaskFailure<Failure: Error>: Sendable {
  let failure: Failure

  init(_ failure: Failure) {
    self.failure = failure
  }
}

extension Result where Success: Sendable {
  init?(_ output: ErasedTaskOutput?) {
    switch output {
    case let output as TaskValue<Success>: self = .success(output.value)
    case let output as TaskFailure<Failure>: self = .failure(output.failure)
    default: return nil
    }
  }

  var erased: ErasedTaskOutput {
    switch self {
    case .success(let value): TaskValue(value)
    case .failure(let failure): TaskFailure(failure)
    }
  }
}

/// `CancellationError` as a failure of the given type, where that type can be one. Not inlinable: the
/// size of that error is open, so a place for it would be made by whoever may need one.
func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  isCancellable(type) ? CancellationError() as? Failure : nil
}

/// Whether a failure of the given type can say that a run was cancelled.
func isCancellable<Failure: Error>(_ type: Failure.Type) -> Bool {
  Failure.self == (any Error).self || CancellationError.self is Failure.Type
}
