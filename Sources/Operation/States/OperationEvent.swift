/// What a store tells its subscribers, a run its handler, and a request its `handleEvents`.
public enum OperationEvent<State: OperationState>: Sendable {
  /// The state changed; a new subscriber gets the present state at once.
  case stateChanged(State)
  /// A run was started.
  case runStarted(OperationRun)
  /// A run told a result before its end.
  case yielded(Result<State.OperationValue, State.Failure>, OperationRun)
  /// A run ended; its result is in the state already. A cancelled run ends with
  /// `CancellationError`, where the failure can be that, and otherwise with what its request ends
  /// with; that is not in the state.
  case runEnded(Result<State.OperationValue, State.Failure>, OperationRun)
}

extension OperationEvent {
  /// The state of a ``stateChanged(_:)``.
  public var state: State? {
    if case .stateChanged(let state) = self { state } else { nil }
  }

  /// The run that the event belongs to; `nil` for a change of the state.
  public var run: OperationRun? {
    switch self {
    case .stateChanged: nil
    case .runStarted(let run), .yielded(_, let run), .runEnded(_, let run): run
    }
  }
}
