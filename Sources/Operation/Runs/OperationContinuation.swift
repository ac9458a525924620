/// Where a request tells values before its last one, which it returns.
///
/// A yield is shown at once and may come from any thread while the run lasts. One that comes after
/// the run has ended is reported and changes nothing; one that comes after the run was cancelled is
/// dropped.
public struct OperationContinuation<Value: Sendable, Failure: Error>: Sendable {
  private let onYield: @Sendable (Result<Value, Failure>) -> Void

  /// Creates a continuation that hands each result to `onYield`.
  public init(onYield: @escaping @Sendable (Result<Value, Failure>) -> Void) {
    self.onYield = onYield
  }

  /// Tells a value.
  public func yield(_ value: Value) {
    onYield(.success(value))
  }

  /// Tells a failure that does not end the run.
  public func yield(error: Failure) {
    onYield(.failure(error))
  }

  /// Tells a value or a failure.
  public func yield(with result: Result<Value, Failure>) {
    onYield(result)
  }
}
