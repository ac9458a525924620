/// A function that takes the values of a request before its last one, which the request returns.
///
/// A yielded value is displayed at once. It may come from any thread while the run is in flight. A
/// yield after the end of the run is reported and changes nothing; one after a cancellation is
/// dropped.
public struct OperationContinuation<Value: Sendable, Failure: Error>: Sendable {
  private let onYield: @Sendable (Result<Value, Failure>) -> Void

  /// Creates a continuation that passes each result to `onYield`.
  public init(onYield: @escaping @Sendable (Result<Value, Failure>) -> Void) {
    self.onYield = onYield
  }

  /// Yields a value.
  public func yield(_ value: Value) { onYield(.success(value)) }

  /// Yields a failure that does not end the run.
  public func yield(error: Failure) { onYield(.failure(error)) }

  /// Yields a value or a failure.
  public func yield(with result: Result<Value, Failure>) { onYield(result) }
}

extension OperationIssue {
  static func reportLateYield(of value: any Any.Type, at path: OperationPath?) {
    report(
      .lateYield,
      "A run of \(path ?? []), which gives \(value), yielded after it had ended; the value is dropped."
    )
  }
}
