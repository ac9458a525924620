import ReactiveStreams

/// A task node together with the types of its value and failure.
struct TaskCore<Value: Sendable, Failure: Error>: Sendable, Equatable {
  typealias Output = Result<Value, Failure>

  let node: TaskNode

  init(_ node: TaskNode) { self.node = node }

  static func == (lhs: Self, rhs: Self) -> Bool { lhs.node === rhs.node }

  var id: OperationTaskID { node.id }
  var progress: TaskProgress { node.progress }

  /// Cancels the task after its driver has removed it. Waiters whose failure can be a
  /// `CancellationError` return now.
  func cancelRun() {
    node.cancelRun(with: cancellationFailure(as: Failure.self).map { Output.failure($0).asOutput })
  }

  func end(with output: Output) { node.end(with: output.asOutput) }

  /// Waits for the result of the task; the caller holds a lease already.
  nonisolated(nonsending) func result() async -> Output { await node.result { Output($0) } }

  /// Returns the cycle that a wait for this run closes as a failure, and ends the wait then.
  func failure(of wait: RunWait?) -> Failure? {
    guard let cycle = wait?.cycle,
      let failure = Self.failure(of: cycle, at: node.path ?? [])
    else { return nil }
    wait?.end()
    return failure
  }

  /// Returns a cycle as a failure; `nil`, and a report, if the failure type cannot be one.
  static func failure(of cycle: OperationDependencyError, at path: OperationPath) -> Failure? {
    if let failure = cycle as? Failure { return failure }
    OperationIssue.report(
      .dependencyCycle, "\(cycle), and \(Failure.self) cannot say so as the failure of \(path).")
    return nil
  }
}

extension TaskNode {
  /// Starts the task if needed, and waits for its result. Holds a lease meanwhile.
  nonisolated(nonsending) func result<Value: Sendable, Failure: Error>(
    startingWith configuration: OperationTaskConfiguration,
    as decode: @Sendable (any TaskOutput) -> Result<Value, Failure>?
  ) async -> Result<Value, Failure> {
    let wait = RunWait(for: self)
    if let failure = TaskCore<Value, Failure>(self).failure(of: wait) { return .failure(failure) }
    defer { wait?.end() }
    _ = driver?.start(self, configuration: configuration, joins: true)
    return await result(as: decode)
  }

  /// Waits for the result of the task; the caller holds a lease already.
  nonisolated(nonsending) fileprivate func result<Value: Sendable, Failure: Error>(
    as decode: @Sendable (any TaskOutput) -> Result<Value, Failure>?
  ) async -> Result<Value, Failure> {
    let isCancellable = isCancellable(Failure.self)
    while true {
      let output = await wait(isCancellable: isCancellable, onCancel: releaseLease)
      // The lease of the only caller is released before its wait ends, so the run has ended as cancelled: that
      // is no failure of the run for this caller, and is not transformed.
      let isOver = isCancellable && Task.isCancelled && progress.isCancelled
      if !isOver, let output, let result = decode(output) { return result }
      // Only a caller whose failure can be a cancellation returns without a result.
      if let failure = cancellationFailure(as: Failure.self) { return .failure(failure) }
    }
  }
}

/// The result of a task whose types are not known.
protocol TaskOutput: AnyObject, Sendable {}

/// The result of a task as an object. A cast to its class is cheap; one to `Result` is not.
// With the types of the value and the failure as parameters, each release would look up that of their result,
// and the benchmark fetch would be further over its limit.
private final class TaskResult<Output: Sendable>: TaskOutput {
  let result: Output

  init(_ result: Output) { self.result = result }
}

extension Result where Success: Sendable {
  init?(_ output: any TaskOutput) {
    guard let output = output as? TaskResult<Self> else { return nil }
    self = output.result
  }

  var asOutput: any TaskOutput { TaskResult(self) }
}

private let cancellationError: any Error = CancellationError()

/// Returns a `CancellationError` as a failure of the given type, if that type can be one.
func cancellationFailure<Failure: Error>(as type: Failure.Type) -> Failure? {
  isCancellable(type) ? cancellationError as? Failure : nil
}

/// Throws a `CancellationError`, if a failure of the given type can be one.
func throwCancellation<Failure: Error>(as type: Failure.Type) throws(Failure) {
  if let failure = cancellationFailure(as: type) { throw failure }
}

/// Returns whether a failure of the given type can be a `CancellationError`.
func isCancellable<Failure: Error>(_ type: Failure.Type) -> Bool {
  Failure.self == (any Error).self || CancellationError.self is Failure.Type
}
