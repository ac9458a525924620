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
/// The lock guards the machine; continuations are resumed and Swift tasks are cancelled without
/// it. The driver is held until the task has ended, so that a task that lies in a history does not
/// keep its store alive.
///
/// What the core stores is of the same types for all values and failures: where they are not, the end
/// of each core asks the runtime for its types, which costs nearly as much as a bare task.
@usableFromInline final class TaskCore<Value: Sendable, Failure: Error>: TaskHandle {
  @usableFromInline typealias Continuation = UnsafeContinuation<ErasedTaskOutput?, Never>
  @usableFromInline typealias Output = Result<Value, Failure>

  @usableFromInline let id: OperationTaskID
  @usableFromInline let node: TaskNode
  @usableFromInline let machine: Mutex<TaskMachine<ErasedTaskOutput, Continuation>>
  @usableFromInline let driver: Mutex<(any TaskDriver)?>

  @inlinable init(driver: any TaskDriver) {
    id = .next()
    machine = Mutex(TaskMachine())
    self.driver = Mutex(driver)
    node = TaskNode(id: id)
  }

  @inlinable var progress: TaskProgress { machine.withLock { $0.progress } }
  @inlinable var isEnded: Bool { machine.withLock { $0.isEnded } }
  @inlinable var finishedResult: Result<Value, Failure>? {
    Output(machine.withLock { $0.output })
  }

  /// Somebody starts the task; tells whether it is the first.
  @inlinable func start() -> Bool { machine.withLock { $0.start() } }

  @inlinable func attach(_ task: Task<Void, Never>) {
    if machine.withLock({ $0.attach(task) }) { task.cancel() }
  }

  /// The store has cancelled the run: whoever can be told that, goes.
  @inlinable func cancelRun() {
    let output = cancellationFailure(as: Failure.self).map { Output.failure($0).erased }
    let actions = machine.withLock { $0.cancel(with: output) }
    actions.cancelled?.cancel()
    if output == nil { node.remove() } else { release() }
    actions.resumed.each { $0.resume(returning: output) }
  }

  /// The run has ended.
  @inlinable func end(with output: Result<Value, Failure>) {
    let output = output.erased
    let waiters = machine.withLock { $0.end(with: output) }
    release()
    waiters.each { $0.resume(returning: output) }
  }

  @inlinable func release() {
    node.remove()
    let old = driver.withLock { $0.take() }
    withExtendedLifetime(old) {}
  }

  @inlinable func cancel() {
    driver.withLock { $0 }?.cancel(id)
  }

  @inlinable nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure> {
    _ = driver.withLock { $0 }?.enter(self, configuration: configuration, onlyToStart: false)
    return await result()
  }

  /// Waits for the result; the caller holds a lease already. `start` is called when he waits.
  @inline(__always) @inlinable nonisolated(nonsending) func result(
    orStart start: () -> Void = {}
  ) async -> Result<Value, Failure> {
    let isCancellable = isCancellable(Failure.self)
    while true {
      if let output = await wait(isCancellable: isCancellable, orStart: start, onCancel: leave) {
        return output
      }
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
      driver.withLock { $0 }?.enter(self, configuration: configuration, onlyToStart: true) ?? false
    _ = await wait(isCancellable: true) { if isHeld { leave() } }
  }

  @Sendable
  @inlinable func leave() {
    driver.withLock { $0 }?.leave(id)
  }

  @inline(__always) @inlinable nonisolated(nonsending) func wait(
    isCancellable: Bool, orStart start: () -> Void = {}, onCancel: @Sendable () -> Void
  ) async -> Result<Value, Failure>? {
    let wait = OperationTaskID.next()
    let output = await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.wait(wait, waiter: continuation) }) {
        case .suspend: break
        case .resume(let output): continuation.resume(returning: output)
        }
        start()
      }
    } onCancel: {
      onCancel()
      guard isCancellable else { return }
      machine.withLock { $0.cancelWait(wait) }?.resume(returning: nil)
    }
    return Output(output)
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

/// `CancellationError` as a failure of the given type, where that type can be one.
@inlinable func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  isCancellable(type) ? CancellationError() as? Failure : nil
}

/// Whether a failure of the given type can say that a run was cancelled.
@inlinable func isCancellable<Failure: Error>(_ type: Failure.Type) -> Bool {
  Failure.self == (any Error).self || CancellationError.self is Failure.Type
}
