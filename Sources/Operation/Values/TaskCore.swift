public import Synchronization

/// Whoever runs tasks: a store.
@usableFromInline protocol TaskDriver<Value, Failure>: AnyObject, Sendable {
  associatedtype Value: Sendable
  associatedtype Failure: Error

  /// Somebody starts the task or joins it; tells whether he holds a lease from now on. Whoever only
  /// wants the task to end holds none on one that was started.
  func enter(
    _ task: TaskCore<Value, Failure>, configuration: OperationTaskConfiguration, onlyToStart: Bool
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
@usableFromInline final class TaskCore<Value: Sendable, Failure: Error>: TaskHandle {
  @usableFromInline typealias Output = Result<Value, Failure>
  @usableFromInline typealias Continuation = UnsafeContinuation<Result<Value, Failure>?, Never>

  @usableFromInline let id: OperationTaskID
  @usableFromInline let node: TaskNode
  @usableFromInline let machine: Mutex<TaskMachine<Output, Continuation>>
  @usableFromInline let driver: Mutex<(any TaskDriver<Value, Failure>)?>

  @inlinable init(driver: any TaskDriver<Value, Failure>) {
    id = .next()
    machine = Mutex(TaskMachine())
    self.driver = Mutex(driver)
    node = TaskNode(id: id)
  }

  @inlinable var progress: TaskProgress { machine.withLock { $0.progress } }
  @inlinable var isEnded: Bool { machine.withLock { $0.isEnded } }
  @inlinable var finishedResult: Result<Value, Failure>? { machine.withLock { $0.output } }

  /// Somebody starts the task; tells whether it is the first.
  @inlinable func start() -> Bool { machine.withLock { $0.start() } }

  @inlinable func attach(_ task: Task<Void, Never>) {
    if machine.withLock({ $0.attach(task) }) { task.cancel() }
  }

  /// The store has cancelled the run: whoever can be told that, goes.
  @inlinable func cancelRun() {
    let output = cancellationFailure(as: Failure.self).map(Output.failure)
    let actions = machine.withLock { $0.cancel(with: output) }
    actions.cancelled?.cancel()
    if output == nil { node.remove() } else { release() }
    for waiter in actions.resumed { waiter.resume(returning: output) }
  }

  /// The run has ended.
  @inlinable func end(with output: Result<Value, Failure>) {
    let waiters = machine.withLock { $0.end(with: output) }
    release()
    for waiter in waiters { waiter.resume(returning: output) }
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
  @inlinable nonisolated(nonsending) func result(
    orStart start: () -> Void = {}
  ) async -> Result<Value, Failure> {
    if let cancellation = cancellationFailure(as: Failure.self) {
      return await wait(isCancellable: true, orStart: start, onCancel: leave)
        ?? .failure(cancellation)
    }
    var start = start
    while true {
      if let output = await wait(isCancellable: false, orStart: start, onCancel: leave) {
        return output
      }
      start = {}
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

  @inlinable nonisolated(nonsending) func wait(
    isCancellable: Bool, orStart start: () -> Void = {}, onCancel: @Sendable () -> Void
  ) async -> Result<Value, Failure>? {
    let wait = OperationTaskID.next()
    return await withTaskCancellationHandler {
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
  }
}

/// `CancellationError` as a failure of the given type, where that type can be one.
@inlinable func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  CancellationError() as? Failure
}
