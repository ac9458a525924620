/// A modifier that runs a request again when it fails.
public struct RetryModifier<Base: OperationRequest>: OperationModifier, Equatable {
  let limit: Int
  let shouldRetry: @Sendable (Base.Failure) -> Bool

  /// Returns a Boolean value that indicates whether the limits are equal; closures cannot be compared.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.limit == rhs.limit }

  /// Writes the limit into the context.
  public func setup(context: inout OperationContext, using base: Base) {
    context.settings.values.retry.limit = limit
    context.settings.values.retry.isPlaced = true
  }

  /// Runs the request until it succeeds or there are no retries left.
  ///
  /// If a retry modifier that was applied later repeats the run already, this runs the request
  /// once.
  ///
  /// - Throws: The failure of the last attempt.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    if context.attempt.isRetried {
      return try await base.run(isolation: isolation, in: context, with: continuation)
    }
    var context = context
    context.attempt.isRetried = true
    context.attempt.retryLimit = context.settings.values.retry.limit
    return try await base.runAgain(
      isolation: isolation, in: context, with: continuation, when: shouldRetry)
  }
}

extension OperationRequest {
  /// Runs the request again when it fails: `limit` retries, so at most `limit + 1` attempts.
  ///
  /// A cancellation and a dependency cycle are never retried. The waits before the retries are those
  /// of ``backoff(_:)`` or of the client's defaults, and otherwise 1 s, 2 s, 4 s … up to 30 s. Of
  /// several retries on one request the last one counts, and repeats everything that was applied
  /// before it. It also replaces the client's default.
  ///
  /// - Parameters:
  ///   - limit: The number of retries. A negative number is reported, and zero is used.
  ///   - shouldRetry: Called before each retry with the failure of the attempt, on any thread, with
  ///     no lock held. It returns `false` to make the failure final.
  public func retry(
    limit: Int, when shouldRetry: @escaping @Sendable (Failure) -> Bool = { _ in true }
  ) -> ModifiedOperation<Self, RetryModifier<Self>> {
    let limit = limit.checkedCount(for: "The retry limit of \(plainType)")
    return modifier(RetryModifier(limit: limit, shouldRetry: shouldRetry))
  }

  /// Runs the request, and repeats it after failures as the attempt and the settings of the context
  /// allow.
  func runAgain(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>,
    when shouldRetry: @Sendable (Failure) -> Bool
  ) async throws(Failure) -> Value {
    var context = context
    while true {
      do throws(Failure) {
        return try await run(isolation: isolation, in: context, with: continuation)
      } catch {
        guard !context.isLastRetryAttempt, error.canBeRetried, !Task.isCancelled,
          shouldRetry(error)
        else { throw error }
        let backoff = context.settings.values.retry.backoff(context.attempt.index)
        let retry = OperationRetry<any Error>(
          failedAttempts: context.attempt.index + 1, lastFailure: error,
          nextAttemptAt: context.now().advanced(by: backoff))
        context.note(.retry(retry))
        let hasSlept = await context.operationClock.hasSlept(for: backoff)
        let mayRetry = if hasSlept { await context.mayRetry() } else { false }
        // Also if the task is cancelled: the run may continue, in a modifier around this one.
        context.note(.retry(nil))
        if !mayRetry { throw cancellationFailure(as: Failure.self) ?? error }
        context.attempt.index += 1
        context.note(.attemptBegan(context.attempt.index))
      }
    }
  }
}

extension OperationContext {
  /// Waits until there is a connection, if the retry needs one, and the condition of retries is satisfied.
  /// Returns `false` if the task was cancelled before.
  nonisolated(nonsending) fileprivate func mayRetry() async -> Bool {
    while await mayAttempt(isRetry: true) {
      guard let condition = settings.values.retry.condition else { return true }
      guard await condition.waitUntilSatisfied(in: self) else { return false }
      // The connection may be lost by then.
      if mayAttemptNow(isRetry: true) { return true }
    }
    return false
  }
}

extension Error {
  /// A Boolean value that indicates whether another attempt can end differently.
  var canBeRetried: Bool { !(self is CancellationError) && !(self is OperationDependencyError) }
}
