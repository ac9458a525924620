extension OperationStore {
  /// Calls the mutation, and returns its value.
  ///
  /// Calls are not deduplicated: each is an attempt of its own in the state's history.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the call.
  ///   - context: Overrides the context of the store for this run.
  ///   - handler: Called with the events of this run only.
  /// - Throws: The failure of the mutation.
  @discardableResult
  nonisolated(nonsending) public func mutate<Arguments, MutateValue, MutateFailure>(
    with arguments: Arguments, using context: OperationContext? = nil,
    handler: EventHandler? = nil
  ) async throws(MutateFailure) -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(box(context), input: RunArguments(arguments), handler: handler)
  }

  /// Schedules a call of the mutation, without starting it.
  public func mutateTask<Arguments, MutateValue, MutateFailure>(
    with arguments: Arguments, using context: OperationContext? = nil
  ) -> OperationTask<MutateValue, MutateFailure>
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    runTask(box(context), input: RunArguments(arguments))
  }

  /// Calls the mutation again with the arguments of the latest call.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func retryLatest<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    guard let arguments = state.latestArguments else { throw MutationError.noArguments }
    return try await mutate(with: arguments, using: context, handler: handler)
  }
}
