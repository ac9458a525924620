public import Operation

extension SharedQuery {
  /// Calls the mutation, as `OperationStore.mutate` does.
  ///
  /// - Throws: The failure of the mutation, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func mutate<Arguments, MutateValue, MutateFailure>(
    with arguments: Arguments, using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> MutateValue
  where State.StoredState == MutationState<Arguments, MutateValue, MutateFailure> {
    let (store, rules) = try backedRules()
    let input = RunArguments(arguments)
    return try await store.run(store.box(context), by: rules, input: input, handler: handler)
  }

  /// Returns a scheduled call of the mutation that has not started.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func mutateTask<Arguments, MutateValue, MutateFailure>(
    with arguments: Arguments, using context: OperationContext? = nil
  ) throws -> OperationTask<MutateValue, MutateFailure>
  where State.StoredState == MutationState<Arguments, MutateValue, MutateFailure> {
    let (store, rules) = try backedRules()
    return store.runTask(store.box(context), by: rules, input: RunArguments(arguments))
  }

  /// Calls the mutation again with the arguments of the latest call.
  ///
  /// - Throws: The failure of the mutation, `MutationError.noArguments` if it was never called, or
  ///   ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func retryLatest<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> MutateValue
  where State.StoredState == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(using: context, handler: handler)
  }

  /// Returns a scheduled call of the mutation with the arguments of the latest call, that has not started.
  ///
  /// - Throws: `MutationError.noArguments` if the mutation was never called, or
  ///   ``SharedQueryError/unbacked``.
  public func retryLatestTask<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil
  ) throws -> OperationTask<MutateValue, MutateFailure>
  where State.StoredState == MutationState<Arguments, MutateValue, MutateFailure> {
    try runTask(using: context)
  }
}
