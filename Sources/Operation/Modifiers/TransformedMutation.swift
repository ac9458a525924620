/// A mutation whose value and failure are transformed.
public struct TransformedMutation<
  Base: MutationRequest, MutateValue: Sendable, MutateFailure: Error
>: MutationRequest {
  let base: Base
  let value: @Sendable (Base.Value) -> MutateValue
  let failure: @Sendable (Base.Failure) -> MutateFailure

  /// The path of the mutation.
  public var path: OperationPath { base.path }
  /// A type that differs from that of the mutation, whose state is another one.
  public var requestType: any Any.Type { base.transformedRequestType }
  /// The retention of the mutation.
  public var retention: OperationRetention? { base.retention }

  /// Performs the setup of the mutation.
  public func setup(context: inout OperationContext) { base.setup(context: &context) }

  /// Runs the mutation, and transforms its result.
  ///
  /// - Throws: The transformed failure.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue {
    _ = try arguments(in: context)
    return try await TransformedOperation(base: base, value: value, failure: failure)
      .run(isolation: isolation, in: context, with: continuation)
  }

  /// Calls the mutation without its modifiers, which apply to whole runs.
  ///
  /// - Throws: The transformed failure.
  nonisolated(nonsending) public func mutate(
    with arguments: Base.Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue {
    do throws(Base.Failure) {
      return value(
        try await base.mutate(
          with: arguments, in: context,
          with: continuation.transforming(value: value, failure: failure)))
    } catch {
      throw failure(error)
    }
  }
}

extension MutationRequest {
  /// Transforms the value of the mutation.
  ///
  /// A mapped mutation has a state of its own, so it clashes with the mutation that it maps if a
  /// client uses both under one path.
  ///
  /// - Parameter transform: Returns the new value. It is called on any thread, with no lock held, for
  ///   each value that is yielded or returned.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (MutateValue) -> NewValue
  ) -> TransformedMutation<Self, NewValue, MutateFailure> {
    TransformedMutation(base: self, value: transform, failure: { $0 })
  }
}
