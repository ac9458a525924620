/// What a store does after its state has been reset.
public struct ResetEffect: Sendable {
  let cancellations: [@Sendable () -> Void]

  /// Creates an effect that cancels tasks.
  public init<Value, Failure>(
    tasksToCancel: some Sequence<OperationTask<Value, Failure>>
  ) {
    cancellations = tasksToCancel.map { task in { task.cancel() } }
  }

  /// Creates an effect that cancels nothing.
  public init() {
    cancellations = []
  }
}
