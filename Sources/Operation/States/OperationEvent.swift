/// An event of a store or of a run.
///
/// Subscribers of a store, the handler of a run, and the closure of `handleEvents` receive these.
public indirect enum OperationEvent<State: OperationState>: Sendable {
  // Indirect: an event is one word, which is copied for each subscriber and stream.

  /// The state changed. A new subscriber receives the current state at once.
  case stateChanged(State)
  /// A run started.
  case runStarted(OperationRun)
  /// A run yielded a value or a failure before its final result.
  case yielded(Result<State.OperationValue, State.Failure>, OperationRun)
  /// A run ended. In a store its result is in the state already.
  ///
  /// A cancelled run ends with `CancellationError` where `Failure` can be that, and otherwise with
  /// the result of its request. Neither is in the state.
  case runEnded(Result<State.OperationValue, State.Failure>, OperationRun)
}

extension OperationEvent {
  /// The state of a ``stateChanged(_:)`` event; `nil` for an event of a run.
  public var state: State? { if case .stateChanged(let state) = self { state } else { nil } }

  /// The run that the event belongs to; `nil` for a ``stateChanged(_:)`` event.
  public var run: OperationRun? {
    switch self {
    case .stateChanged: nil
    case .runStarted(let run), .yielded(_, let run), .runEnded(_, let run): run
    }
  }
}

extension OperationEvent: CustomStringConvertible, CustomDebugStringConvertible {
  /// The event with its state, result and run.
  public var description: String {
    switch self {
    case .stateChanged(let state): describe(as: "stateChanged", describe(state))
    case .runStarted(let run): describe(as: "runStarted", run.description)
    case .yielded(let result, let run): describe(as: "yielded", describe(result), run.description)
    case .runEnded(let result, let run): describe(as: "runEnded", describe(result), run.description)
    }
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
