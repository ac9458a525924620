/// What a state looks like from outside: not begun, under way, waiting, or ended with a result.
public enum OperationStatus<Value, Failure: Error> {
  /// Nothing has happened yet.
  case idle
  /// A run is under way.
  case loading
  /// A run waits for a condition before it goes on.
  case paused
  /// The last thing that happened.
  case result(Result<Value, Failure>)
}

extension OperationStatus {
  /// Whether nothing has happened yet.
  public var isIdle: Bool { if case .idle = self { true } else { false } }
  /// Whether a run is under way.
  public var isLoading: Bool { if case .loading = self { true } else { false } }
  /// Whether a run waits for a condition.
  public var isPaused: Bool { if case .paused = self { true } else { false } }
  /// Whether the last thing that happened was a value.
  public var isSuccess: Bool { if case .result(.success) = self { true } else { false } }
  /// Whether the last thing that happened was a failure.
  public var isFailure: Bool { if case .result(.failure) = self { true } else { false } }
  /// Whether there is a result and nothing is under way.
  public var isFinished: Bool { if case .result = self { true } else { false } }

  /// The result, if there is one and nothing is under way.
  public var result: Result<Value, Failure>? {
    if case .result(let result) = self { result } else { nil }
  }
}

extension OperationStatus: Sendable where Value: Sendable {}
extension OperationStatus: Equatable where Value: Equatable, Failure: Equatable {}
extension OperationStatus: Hashable where Value: Hashable, Failure: Hashable {}
