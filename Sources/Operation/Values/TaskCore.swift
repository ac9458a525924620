import Synchronization

/// Whoever runs tasks: a store.
protocol TaskDriver<Value, Failure>: AnyObject, Sendable {
  associatedtype Value: Sendable
  associatedtype Failure: Error

  /// Somebody starts the task or joins it; he holds a lease from now on.
  func enter(_ task: TaskCore<Value, Failure>, configuration: OperationTaskConfiguration)
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
final class TaskCore<Value: Sendable, Failure: Error>: TaskHandle {
  private typealias Output = Result<Value, Failure>
  private typealias Continuation = UnsafeContinuation<Result<Value, Failure>?, Never>

  let id = OperationTaskID.next()
  let node: TaskNode
  private let machine = Mutex(TaskMachine<Output, Continuation>())
  private let driver: Mutex<(any TaskDriver<Value, Failure>)?>

  init(driver: any TaskDriver<Value, Failure>) {
    self.driver = Mutex(driver)
    node = TaskNode(id: id)
  }

  var progress: TaskProgress { machine.withLock { $0.progress } }
  var isEnded: Bool { machine.withLock { $0.isEnded } }
  var finishedResult: Result<Value, Failure>? { machine.withLock { $0.output } }

  /// Somebody starts the task; tells whether it is the first.
  func start() -> Bool { machine.withLock { $0.start() } }

  func attach(_ task: Task<Void, Never>) {
    if machine.withLock({ $0.attach(task) }) { task.cancel() }
  }

  /// The store has cancelled the run: whoever can be told that, goes.
  func cancelRun() {
    let output = cancellationFailure(as: Failure.self).map(Output.failure)
    let actions = machine.withLock { $0.cancel(with: output) }
    actions.cancelled?.cancel()
    if output == nil { node.remove() } else { release() }
    for waiter in actions.resumed { waiter.resume(returning: output) }
  }

  /// The run has ended.
  func end(with output: Result<Value, Failure>) {
    let waiters = machine.withLock { $0.end(with: output) }
    release()
    for waiter in waiters { waiter.resume(returning: output) }
  }

  private func release() {
    node.remove()
    let old = driver.withLock { $0.take() }
    withExtendedLifetime(old) {}
  }

  func cancel() {
    driver.withLock { $0 }?.cancel(id)
  }

  nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure> {
    driver.withLock { $0 }?.enter(self, configuration: configuration)
    return await result()
  }

  /// Waits for the result; the caller holds a lease already.
  nonisolated(nonsending) func result() async -> Result<Value, Failure> {
    if let cancellation = cancellationFailure(as: Failure.self) {
      return await wait(isCancellable: true, onCancel: leave) ?? .failure(cancellation)
    }
    while true {
      if let output = await wait(isCancellable: false, onCancel: leave) { return output }
    }
  }

  nonisolated(nonsending) func end(
    startingWith configuration: OperationTaskConfiguration
  ) async {
    let progress = progress
    if progress.hasStarted {
      _ = await wait(isCancellable: true) {}
    } else if !progress.isCancelled {
      driver.withLock { $0 }?.enter(self, configuration: configuration)
      _ = await wait(isCancellable: true, onCancel: leave)
    }
  }

  @Sendable
  private func leave() {
    driver.withLock { $0 }?.leave(id)
  }

  nonisolated(nonsending) private func wait(
    isCancellable: Bool, onCancel: @Sendable () -> Void
  ) async -> Result<Value, Failure>? {
    let wait = OperationTaskID.next()
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.wait(wait, waiter: continuation) }) {
        case .suspend: break
        case .resume(let output): continuation.resume(returning: output)
        }
      }
    } onCancel: {
      onCancel()
      guard isCancellable else { return }
      machine.withLock { $0.cancelWait(wait) }?.resume(returning: nil)
    }
  }
}

/// `CancellationError` as a failure of the given type, where that type can be one.
func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  CancellationError() as? Failure
}
