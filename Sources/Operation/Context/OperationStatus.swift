/// The status of a state: idle, loading, paused, or ended with a result.
public enum OperationStatus<Value, Failure: Error> {
  /// No run has begun.
  case idle
  /// A run is scheduled or in flight.
  case loading
  /// Every run waits for a connection.
  case paused
  /// No run is in flight; this is the latest result.
  case result(Result<Value, Failure>)
}

extension OperationStatus {
  /// Whether no run has begun.
  public var isIdle: Bool { if case .idle = self { true } else { false } }
  /// Whether a run is scheduled or in flight.
  public var isLoading: Bool { if case .loading = self { true } else { false } }
  /// Whether every run waits for a connection.
  public var isPaused: Bool { if case .paused = self { true } else { false } }
  /// Whether the latest result is a value, and no run is in flight.
  public var isSuccess: Bool { if case .result(.success) = self { true } else { false } }
  /// Whether the latest result is a failure, and no run is in flight.
  public var isFailure: Bool { if case .result(.failure) = self { true } else { false } }
  /// Whether there is a result, and no run is in flight.
  public var isFinished: Bool { if case .result = self { true } else { false } }

  /// The latest result; `nil` if there is none or a run is in flight.
  public var result: Result<Value, Failure>? {
    if case .result(let result) = self { result } else { nil }
  }
}

extension OperationStatus: Sendable where Value: Sendable {}
extension OperationStatus: Equatable where Value: Equatable, Failure: Equatable {}
extension OperationStatus: Hashable where Value: Hashable, Failure: Hashable {}
