public import FoundationEssentials

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
