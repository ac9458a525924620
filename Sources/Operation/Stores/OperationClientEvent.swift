public import FoundationEssentials

/// Something that happened in a client.
public struct OperationClientEvent: Sendable, CustomStringConvertible {
  /// What happened.
  public enum Occurrence: Sendable {
    /// A store was made.
    case storeAdded
    /// A store left the client.
    case storeRemoved
    /// A run was started.
    case runStarted(Run)
    /// An attempt of a run began: 0 is the first one.
    case attemptBegan(Run, index: Int)
    /// A run gave a value, or an error, before its end.
    case yielded(Run)
    /// A run ended; the duration is missing if nobody listened when it was started.
    case runEnded(Run, Outcome, duration: Duration?)
  }

  /// A run, as events tell of it.
  public struct Run: Sendable, Hashable {
    /// The identifier of the run.
    public let id: OperationRun.ID
    /// Why the run was started.
    public let cause: OperationRun.Cause
  }

  /// How a run ended.
  public enum Outcome: Sendable {
    /// It gave its value.
    case success
    /// It failed.
    case failure(any Error)
    /// It was cancelled, so that its result counts for nothing.
    case cancelled
  }

  /// When it happened.
  public let date: Date
  /// Where the store is.
  public let path: OperationPath
  /// What kind of request the store is for.
  public let kind: OperationKind
  /// What happened.
  public let occurrence: Occurrence

  /// One line, without the date.
  public var description: String { "\(kind.rawValue) \(path): \(occurrence)" }
}

extension OperationClientEvent.Occurrence: CustomStringConvertible {
  /// A few words.
  public var description: String {
    switch self {
    case .storeAdded: "store added"
    case .storeRemoved: "store removed"
    case .runStarted(let run): "run \(run.id) started (\(run.cause.rawValue))"
    case .attemptBegan(let run, let index): "run \(run.id) attempt \(index)"
    case .yielded(let run): "run \(run.id) yielded"
    case .runEnded(let run, let outcome, let duration):
      "run \(run.id) ended\(duration.map { " after \($0.inMilliseconds) ms" } ?? ""): \(outcome)"
    }
  }
}

extension OperationClientEvent.Outcome: CustomStringConvertible {
  /// One word, and the error where there is one.
  public var description: String {
    switch self {
    case .success: "success"
    case .failure(let error): "failure, \(error)"
    case .cancelled: "cancelled"
    }
  }
}

extension Duration {
  fileprivate var inMilliseconds: Int { Int((inSeconds * 1_000).rounded()) }
}
