/// One run of a request: which it is, why it was started, and in which context it runs.
public struct OperationRun: Sendable, Identifiable {
  /// Tells runs of one process apart; later runs have greater identifiers.
  public typealias ID = OperationTaskID

  /// Why a run was started.
  public enum Cause: String, Sendable, Hashable, Codable {
    /// The store was stale when somebody subscribed.
    case subscriber
    /// Somebody asked for it.
    case fetch
    /// A condition that the request names became true.
    case rerun
    /// The value was invalidated while it was observed.
    case invalidation
    /// A request that this one reads was invalidated.
    case dependency
    /// It was time to ask again.
    case poll
  }

  /// Where a run is: on which path, and among which stores.
  struct Place: Sendable {
    let path: OperationPath
    let hub: ObjectIdentifier
  }

  /// The identifier of the run, which is that of its task.
  public let id: ID
  /// Why the run was started.
  public let cause: Cause
  /// The context of the run.
  public let context: OperationContext
}

extension OperationRun {
  init(task: OperationTask<some Sendable, some Error>) {
    self.init(id: task.id, cause: task.node.cause, context: task.context)
  }
}

extension OperationContext {
  /// The run that this context belongs to; `nil` outside of a run.
  public var operationRun: OperationRun? {
    runNode.map { OperationRun(id: $0.id, cause: $0.cause, context: self) }
  }
}
