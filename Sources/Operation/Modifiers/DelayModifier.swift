/// A modifier that waits before each run of a request.
public struct DelayModifier<Base: OperationRequest>: OperationModifier, Equatable {
  let duration: Duration

  /// Waits, and runs the request.
  ///
  /// - Throws: The failure of the request, or `CancellationError` if the failure can be that and
  ///   the wait is cancelled.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let hasSlept = await context.operationClock.hasSlept(for: duration)
    if !hasSlept { try throwCancellation(as: Base.Failure.self) }
    return try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  /// Waits by the clock of the context before the request runs; below a retry, before each attempt.
  ///
  /// A wait that is cancelled throws `CancellationError` where `Failure` can be that. With another
  /// failure the request runs at once, in a cancelled task.
  ///
  /// - Parameter duration: The time to wait. A negative duration is reported, and zero is used; of
  ///   more than a hundred years, a hundred years are used.
  public func delay(for duration: Duration) -> ModifiedOperation<Self, DelayModifier<Self>> {
    modifier(DelayModifier(duration: duration.checked(for: "The delay of \(plainType)")))
  }
}
