public import FoundationEssentials

/// An event of a client: a store was added or removed, or a run made progress.
public struct OperationClientEvent: Sendable, CustomStringConvertible {
  /// An occurrence in a client.
  public enum Occurrence: Sendable {
    /// A store was added to the client.
    case storeAdded
    /// A store was removed from the client.
    case storeRemoved
    /// A caller got the cached value, without a run.
    case answeredFromCache
    /// A caller joined a run that another one had started.
    case joined(Run)
    /// A run was started.
    case runStarted(Run)
    /// An attempt of a run began. The index of the first one is 0.
    case attemptBegan(Run, index: Int)
    /// A run begins to fetch a page. The page is its identifier as text.
    case pageBegan(Run, page: String)
    /// A run has fetched a page, or has failed to. A subscriber that came meanwhile is not notified of the beginning.
    case pageEnded(Run, page: String)
    /// A run yielded a value or a failure before its end.
    case yielded(Run)
    /// A run ended. The duration is `nil` if the events had no subscriber when the run was started.
    case runEnded(Run, Outcome, duration: Duration?)
  }

  /// The run of an event.
  public struct Run: Sendable, Hashable {
    /// The identifier of the run.
    public let id: OperationRun.ID
    /// The cause of the run.
    public let cause: OperationRun.Cause
  }

  /// The outcome of a run.
  public enum Outcome: Sendable {
    /// The run returned a value.
    case success
    /// The run failed.
    case failure(any Error)
    /// The run was cancelled, so its result was dropped.
    case cancelled
  }

  /// The date of the event, by the clock of the client or of the request.
  public let date: Date
  /// The path of the store.
  public let path: OperationPath
  /// The kind of request that the store is for.
  public let kind: OperationKind
  /// The occurrence.
  public let occurrence: Occurrence
  /// A Boolean value that indicates whether a store was removed because it was not used for long
  /// enough, or to free memory.
  public var isEviction = false

  /// A line with the kind, the path and the occurrence, without the date.
  public var description: String { "\(kind.rawValue) \(path): \(occurrence)" }
}

extension OperationClientEvent.Occurrence: CustomStringConvertible {
  /// A few words that describe the occurrence.
  public var description: String {
    switch self {
    case .storeAdded: "store added"
    case .storeRemoved: "store removed"
    case .answeredFromCache: "answered from the cache"
    case .joined(let run): "run \(run.id) joined"
    case .runStarted(let run): "run \(run.id) started (\(run.cause.rawValue))"
    case .attemptBegan(let run, let index): "run \(run.id) attempt \(index)"
    case .pageBegan(let run, let page): "run \(run.id) page \(page)"
    case .pageEnded(let run, let page): "run \(run.id) page \(page) ended"
    case .yielded(let run): "run \(run.id) yielded"
    case .runEnded(let run, let outcome, let duration):
      "run \(run.id) ended\(duration.map { " after \($0.inMilliseconds) ms" } ?? ""): \(outcome)"
    }
  }
}

extension OperationClientEvent.Outcome: CustomStringConvertible {
  /// One word, followed by the error of a failure.
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
