/// The status of a state: idle, loading, paused, or ended with a result.
public enum OperationStatus<Value, Failure: Error> {
  /// There is no result, and no run is scheduled or in flight.
  case idle
  /// A run is scheduled or in flight.
  case loading
  /// Every run waits for a connection.
  case paused
  /// No run is in flight; this is the latest result.
  case result(Result<Value, Failure>)
}

extension OperationStatus {
  /// A Boolean value that indicates whether there is no result, and no run is scheduled or in flight.
  public var isIdle: Bool { if case .idle = self { true } else { false } }
  /// A Boolean value that indicates whether a run is scheduled or in flight.
  public var isLoading: Bool { if case .loading = self { true } else { false } }
  /// A Boolean value that indicates whether every run waits for a connection.
  public var isPaused: Bool { if case .paused = self { true } else { false } }
  /// A Boolean value that indicates whether the latest result is a value, and no run is in flight.
  public var isSuccess: Bool { if case .result(.success) = self { true } else { false } }
  /// A Boolean value that indicates whether the latest result is a failure, and no run is in
  /// flight.
  public var isFailure: Bool { if case .result(.failure) = self { true } else { false } }
  /// A Boolean value that indicates whether there is a result, and no run is in flight.
  public var isFinished: Bool { if case .result = self { true } else { false } }

  /// The latest result; `nil` if there is none or a run is in flight.
  public var result: Result<Value, Failure>? {
    if case .result(let result) = self { result } else { nil }
  }

  /// Returns the status with the value of a success transformed.
  ///
  /// - Parameter transform: Called at once, and only for a success.
  /// - Throws: What `transform` throws.
  public func map<NewValue, E: Error>(
    _ transform: (Value) throws(E) -> NewValue
  ) throws(E) -> OperationStatus<NewValue, Failure> {
    switch self {
    case .idle: .idle
    case .loading: .loading
    case .paused: .paused
    case .result(.success(let value)): .result(.success(try transform(value)))
    case .result(.failure(let error)): .result(.failure(error))
    }
  }
}

extension OperationStatus: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, with the value or the error of a result, such as `loading` or `success(1)`.
  public var description: String { result.map { describe($0) } ?? name }
  /// The same as ``description``.
  public var debugDescription: String { description }

  /// One word for the status.
  var name: String {
    switch self {
    case .idle: "idle"
    case .loading: "loading"
    case .paused: "paused"
    case .result(.success): "success"
    case .result(.failure): "failure"
    }
  }
}

extension OperationStatus: Sendable where Value: Sendable {}
extension OperationStatus: Equatable where Value: Equatable, Failure: Equatable {}
extension OperationStatus: Hashable where Value: Hashable, Failure: Hashable {}
