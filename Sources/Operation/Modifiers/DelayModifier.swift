/// Waits before each run of a request.
public struct DelayModifier<Base: OperationRequest>: OperationModifier {
  let duration: Duration

  /// Waits, and runs the request.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let hasSlept = await context.operationClock.hasSlept(for: duration)
    if !hasSlept, let cancellation = cancellationFailure(as: Base.Failure.self) {
      throw cancellation
    }
    return try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  /// Waits by the clock of the context before the request runs; below a retry, before each attempt.
  ///
  /// A cancelled wait throws `CancellationError` where the failure can be that; a request with
  /// another failure runs at once, in a cancelled task.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, one of more than a hundred
  ///   years as these.
  public func delay(
    for duration: Duration
  ) -> ModifiedOperation<Self, DelayModifier<Self>> {
    modifier(DelayModifier(duration: duration.checked(for: "The delay of \(Self.self)")))
  }
}
