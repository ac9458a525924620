public import Synchronization

/// Whoever runs tasks: a store.
@usableFromInline protocol TaskDriver: AnyObject, Sendable {
  /// Somebody starts the task, whose core this is, or joins it; tells whether he holds a lease from
  /// now on. Whoever only wants the task to end holds none on one that was started.
  func enter(
    _ core: any TaskHandle, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool
  /// Somebody who waited gives his lease back.
  func leave(_ id: OperationTaskID)
  /// The task is cancelled for everybody.
  func cancel(_ id: OperationTaskID)
}

/// The shell of one task's machine.
///
/// The lock guards the machine and the driver; continuations are resumed and Swift tasks are cancelled
/// without it. The driver is held until the task has ended, so that a task that lies in a history does
/// not keep its store alive. How far the task is can be read without the lock.
///
/// What the core stores is of the same types for all values and failures: where they are not, the end
/// of each core asks the runtime for its types, which costs nearly as much as a bare task.
@usableFromInline final class TaskCore<Value: Sendable, Failure: Error>: TaskHandle {
  @usableFromInline typealias Output = Result<Value, Failure>

  @usableFromInline let id: OperationTaskID
  @usableFromInline let node: TaskNode
  @usableFromInline let guarded: Mutex<TaskCoreState>
  @usableFromInline let flags = Atomic<UInt8>(0)

  @inlinable init(
    driver: any TaskDriver, cause: OperationRun.Cause = .fetch, place: OperationRun.Place? = nil
  ) {
    id = .next()
    guarded = Mutex(TaskCoreState(driver: driver))
    node = TaskNode(id: id, cause: cause, place: place)
  }

  /// Performs a transition, and notes how far the task is then.
  @inlinable func commit<Output: Sendable>(
    _ transition: (inout TaskCoreState) -> Output
  ) -> Output {
    guarded.withLock { guarded in
      defer { flags.store(guarded.machine.progress.rawValue, ordering: .releasing) }
      return transition(&guarded)
    }
  }

  @inlinable var progress: TaskProgress { TaskProgress(rawValue: flags.load(ordering: .acquiring)) }
  @inlinable var finishedResult: Result<Value, Failure>? {
    progress.isEnded ? Output(guarded.withLock { $0.machine.output }) : nil
  }
  @inlinable var driver: (any TaskDriver)? { guarded.withLock { $0.driver } }

  /// Somebody starts the task; tells whether it is the first.
  @inlinable func start() -> Bool { commit { $0.machine.start() } }

  @inlinable func attach(_ task: Task<Void, Never>) {
    if guarded.withLock({ $0.machine.attach(task) }) { task.cancel() }
  }

  /// The store has cancelled the run: whoever can be told that, goes.
  @inlinable func cancelRun() {
    let output = cancellationFailure(as: Failure.self).map { Output.failure($0).erased }
    let (actions, driver) = commit { guarded in
      (guarded.machine.cancel(with: output), output == nil ? nil : guarded.driver.take())
    }
    actions.cancelled?.cancel()
    node.remove()
    _ = consume driver
    actions.resumed.each { $0.resume(returning: output) }
  }

  /// The run has ended.
  @inlinable func end(with output: Result<Value, Failure>) {
    let output = output.erased
    let (waiters, driver) = commit { ($0.machine.end(with: output), $0.driver.take()) }
    node.remove()
    _ = consume driver
    waiters.each { $0.resume(returning: output) }
  }

  @inlinable func cancel() {
    driver?.cancel(id)
  }

  @inlinable nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure> {
    _ = driver?.enter(self, configuration: configuration, onlyToStart: false)
    return await result()
  }

  /// Waits for the result; the caller holds a lease already. If the task is to be started, that is
  /// when he waits; `launch` is told whether nobody else has.
  @inline(__always) @inlinable nonisolated(nonsending) func result(
    isToBeStarted: Bool = false, launch: (_ isFirst: Bool) -> Void = { _ in }
  ) async -> Result<Value, Failure> {
    let isCancellable = isCancellable(Failure.self)
    while true {
      let output = await wait(
        isCancellable: isCancellable, isToBeStarted: isToBeStarted, launch: launch, onCancel: leave)
      if let output { return output }
      // Only a caller who can be told that he was cancelled goes without a result.
      if let failure = cancellationFailure(as: Failure.self) { return .failure(failure) }
    }
  }

  @inlinable nonisolated(nonsending) func end(
    startingWith configuration: OperationTaskConfiguration
  ) async {
    let progress = progress
    // Nobody will start what was cancelled before.
    if progress.isCancelled, !progress.hasStarted { return }
    let isHeld =
      driver?.enter(self, configuration: configuration, onlyToStart: true) ?? false
    _ = await wait(isCancellable: true) { if isHeld { leave() } }
  }

  @Sendable
  @inlinable func leave() {
    driver?.leave(id)
  }

  @inline(__always) @inlinable nonisolated(nonsending) func wait(
    isCancellable: Bool, isToBeStarted: Bool = false, launch: (_ isFirst: Bool) -> Void = { _ in },
    onCancel: @Sendable () -> Void
  ) async -> Result<Value, Failure>? {
    let wait = OperationTaskID.next()
    let output = await withTaskCancellationHandler {
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
    return Output(output)
  }
}

/// What the lock of a task's shell guards.
@usableFromInline struct TaskCoreState: ~Copyable, Sendable {
  @usableFromInline typealias Continuation = UnsafeContinuation<ErasedTaskOutput?, Never>

  @usableFromInline var machine: TaskMachine<ErasedTaskOutput, Continuation>
  @usableFromInline var driver: (any TaskDriver)?

  @inlinable init(driver: any TaskDriver) {
    machine = TaskMachine()
    self.driver = driver
  }
}

/// What a task ended with: a ``TaskValue``, or a ``TaskFailure``.
@usableFromInline typealias ErasedTaskOutput = any AnyObject & Sendable

@usableFromInline final class TaskValue<Value: Sendable>: Sendable {
  @usableFromInline let value: Value

  @inlinable init(_ value: Value) {
    self.value = value
  }
}

@usableFromInline final class TaskFailure<Failure: Error>: Sendable {
  @usableFromInline let failure: Failure

  @inlinable init(_ failure: Failure) {
    self.failure = failure
  }
}

extension Result where Success: Sendable {
  @inlinable init?(_ output: ErasedTaskOutput?) {
    switch output {
    case let output as TaskValue<Success>: self = .success(output.value)
    case let output as TaskFailure<Failure>: self = .failure(output.failure)
    default: return nil
    }
  }

  @inlinable var erased: ErasedTaskOutput {
    switch self {
    case .success(let value): TaskValue(value)
    case .failure(let failure): TaskFailure(failure)
    }
  }
}

/// `CancellationError` as a failure of the given type, where that type can be one. Not inlinable: the
/// size of that error is open, so a place for it would be made by whoever may need one.
@inline(never) @usableFromInline
func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  isCancellable(type) ? CancellationError() as? Failure : nil
}

/// Whether a failure of the given type can say that a run was cancelled.
@inlinable func isCancellable<Failure: Error>(_ type: Failure.Type) -> Bool {
  Failure.self == (any Error).self || CancellationError.self is Failure.Type
}
