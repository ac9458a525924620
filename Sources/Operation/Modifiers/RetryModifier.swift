/// Runs a request again when it fails.
public struct RetryModifier<Base: OperationRequest>: OperationModifier {
  let limit: Int
  let shouldRetry: @Sendable (Base.Failure) -> Bool

  /// Writes the limit into the context.
  public func setup(context: inout OperationContext, using base: Base) {
    context.settings.values.retryLimit = limit
    context.settings.values.isRetryPlaced = true
  }

  /// Runs the request until it succeeds or the retries are used up.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    try await base.runRetrying(
      isolation: isolation, in: context, with: continuation, when: shouldRetry)
  }
}

extension OperationRequest {
  /// Runs the request again when it fails: `limit` retries, so `limit + 1` attempts.
  ///
  /// A cancellation is never retried, nor is a circle of dependencies. Without a ``backoff(_:)`` of
  /// the request, or of its client's defaults, it waits 1 s, 2 s, 4 s … up to 30 s before a retry. Of
  /// several retries on one request the last one counts, for all that lies below it; it also takes
  /// the place of the client's default.
  ///
  /// - Parameters:
  ///   - limit: How many retries; a negative number is reported and taken as zero.
  ///   - shouldRetry: Asked before each retry with what the attempt failed with.
  public func retry(
    limit: Int, when shouldRetry: @escaping @Sendable (Failure) -> Bool = { _ in true }
  ) -> ModifiedOperation<Self, RetryModifier<Self>> {
    let limit = limit.checkedCount(for: "The retry limit of \(Self.self)")
    return modifier(RetryModifier(limit: limit, shouldRetry: shouldRetry))
  }

  /// Runs the request, and again as the settings say, unless a retry further out does that.
  func runRetrying(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>,
    when shouldRetry: @Sendable (Failure) -> Bool
  ) async throws(Failure) -> Value {
    if context.attempt.isRetried {
      return try await run(isolation: isolation, in: context, with: continuation)
    }
    var context = context
    var attempt = context.attempt
    attempt.isRetried = true
    attempt.retryLimit = context.settings.values.retryLimit
    context.attempt = attempt
    return try await runAgain(
      isolation: isolation, in: context, with: continuation, when: shouldRetry)
  }

  /// Runs the request, and again as the settings say, in a context that says that this is done.
  func runAgain(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>,
    when shouldRetry: @Sendable (Failure) -> Bool
  ) async throws(Failure) -> Value {
    var context = context
    while true {
      do throws(Failure) {
        return try await run(isolation: isolation, in: context, with: continuation)
      } catch {
        guard !context.isLastRetryAttempt, error.isWorthRetrying, !Task.isCancelled,
          shouldRetry(error)
        else { throw error }
        let backoff = context.settings.values.backoff(context.attempt.index)
        guard await context.operationClock.hasSlept(for: backoff),
          await context.mayAttempt(isRetry: true)
        else { throw cancellationFailure(as: Failure.self) ?? error }
        context.attempt.index += 1
        context.hooks?.attemptBegan(context.attempt.index)
      }
    }
  }
}

extension Error {
  /// Whether another attempt may end otherwise: not after a cancellation, and not in a circle.
  var isWorthRetrying: Bool {
    !(self is CancellationError) && !(self is OperationDependencyError)
  }
}
