/// A mutation with its value and its failure changed.
public struct TransformedMutation<
  Base: MutationRequest, MutateValue: Sendable, MutateFailure: Error
>: MutationRequest {
  /// What the mutation is called with.
  public typealias Arguments = Base.Arguments

  let whole: TransformedOperation<Base, MutateValue, MutateFailure>

  init(
    _ base: Base, value: @escaping @Sendable (Base.Value) -> MutateValue,
    failure: @escaping @Sendable (Base.Failure) -> MutateFailure
  ) {
    whole = TransformedOperation(base: base, value: value, failure: failure)
  }

  /// The path of the mutation that is changed.
  public var path: OperationPath { whole.base.path }
  /// Tells the request from the one that it changes.
  public var requestType: any Any.Type { whole.base.transformedRequestType }
  /// The retention that the mutation asks for.
  public var retention: OperationRetention? { whole.base.retention }

  /// Writes what the mutation needs into the context.
  public func setup(context: inout OperationContext) { whole.setup(context: &context) }

  /// Runs the mutation, and changes what comes of it.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue {
    _ = try arguments(in: context)
    return try await whole.run(isolation: isolation, in: context, with: continuation)
  }

  /// Calls the mutation that is changed, without its modifiers, which are about whole runs.
  nonisolated(nonsending) public func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue {
    do throws(Base.Failure) {
      return whole.value(
        try await whole.base.mutate(
          with: arguments, in: context, with: whole.inner(of: continuation)))
    } catch {
      throw whole.failure(error)
    }
  }
}

extension MutationRequest {
  /// Changes the value of the mutation.
  ///
  /// A mapped mutation has a state of its own: give it to a client under one path with the mutation
  /// that it maps, and the two clash.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (MutateValue) -> NewValue
  ) -> TransformedMutation<Self, NewValue, MutateFailure> {
    TransformedMutation(self, value: transform, failure: { $0 })
  }

  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration` by the clock of
  /// the context; below a retry, when an attempt does.
  ///
  /// The failure becomes `any Error`. The run is cancelled and left at once, whether it listens or
  /// not.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, one of more than a hundred
  ///   years as these.
  @_disfavoredOverload
  public func timeout(
    after duration: Duration
  ) -> ModifiedOperation<
    TransformedMutation<Self, MutateValue, any Error>,
    TimeoutModifier<TransformedMutation<Self, MutateValue, any Error>>
  > {
    TransformedMutation(self, value: { $0 }, failure: { $0 }).timeout(after: duration)
  }
}
