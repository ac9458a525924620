public import FoundationEssentials

/// One run of a request: its identifier, its cause, and its context.
public struct OperationRun: Sendable, Identifiable {
  /// An identifier that is unique within the process. Later runs have greater identifiers.
  public typealias ID = OperationTaskID

  /// The cause of a run.
  public enum Cause: String, Sendable, Hashable, Codable {
    /// The store was stale when its first subscriber came.
    case subscriber
    /// A caller requested the run.
    case fetch
    /// A condition of the request became true.
    case rerun
    /// The value was invalidated while the store was observed.
    case invalidation
    /// A request that this one reads was invalidated.
    case dependency
    /// The polling interval was over.
    case poll
  }

  /// The store of a run: its path, and the hub of its client.
  struct Origin: Sendable {
    let path: OperationPath
    let hub: ObjectIdentifier
  }

  /// The identifier of the run, which is that of its task.
  public let id: ID
  /// The cause of the run.
  public let cause: Cause
  /// The context of the run.
  public let context: OperationContext
}

extension OperationRun {
  /// Returns the arguments of the call, in a run of a mutation with arguments of exactly this type;
  /// otherwise `nil`.
  ///
  /// ```swift
  /// let subscription = store.subscribe { event in
  ///   if let title = event.run?.arguments(as: String.self) { print("creates \(title)") }
  /// }
  /// ```
  public func arguments<Arguments: Sendable>(as type: Arguments.Type) -> Arguments? {
    (context.input as? RunArguments<Arguments>)?.arguments
  }
}

extension OperationContext {
  /// The run that this context belongs to; `nil` outside of a run.
  public var operationRun: OperationRun? {
    runNode.map { OperationRun(id: $0.id, cause: $0.cause, context: self) }
  }
}

extension OperationRun: CustomStringConvertible, CustomDebugStringConvertible {
  /// The cause of the run, the path of its store if it has one, and the index of a retry.
  ///
  /// It does not contain the identifier, which depends on what ran before.
  public var description: String {
    let retry = context.operationRetryIndex
    return describe(
      as: "OperationRun", cause.rawValue, context.runNode?.origin?.path.description,
      retry > 0 ? "retry: \(retry)" : nil)
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// A run that has failed and is about to be tried again.
public struct OperationRetry<Failure: Error>: Sendable {
  /// The number of attempts of the run that have failed.
  public let failedAttempts: Int
  /// The failure of the last attempt.
  public let lastFailure: Failure
  /// The date at which the next attempt begins, by the clock of the context. It begins later if it
  /// has to wait for a connection or a condition.
  public let nextAttemptAt: Date
}

extension Sequence {
  /// The retry of the newest task that waits for one.
  func newestRetry<Value, Failure>() -> OperationRetry<Failure>?
  where Element == OperationTask<Value, Failure> {
    filter { $0.retry != nil }.max { $0.id < $1.id }?.retry
  }
}

/// The failure of a run whose requests read each other in a cycle.
public enum OperationDependencyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Each of the requests on these paths reads the next one, and the last one reads the first.
  case cycle([OperationPath])

  /// A line that names the paths.
  public var description: String {
    switch self {
    case .cycle(let paths):
      let cycle = paths + paths.prefix(1)
      return "Requests read each other in a circle: "
        + cycle.map(\.description).joined(separator: " → ")
    }
  }
}
