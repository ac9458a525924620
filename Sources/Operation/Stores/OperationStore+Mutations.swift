extension OperationStore {
  /// Calls the mutation, and returns its value.
  ///
  /// Each call is an attempt of its own in the state's history. With ``OperationRequest/deduplicated()``
  /// on the request, a call joins one in flight with equal arguments.
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

  /// Calls the mutation again with the arguments of the latest call that was not cancelled.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if there is no such call.
  @discardableResult
  nonisolated(nonsending) public func retryLatest<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(box(context), input: latestInput(), handler: handler)
  }

  /// Schedules a call of the mutation with the arguments of the latest call, without starting it.
  ///
  /// - Parameter context: Overrides the context of the store for this run.
  /// - Throws: ``MutationError/noArguments`` if the mutation was never called.
  public func retryLatestTask<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil
  ) throws(MutationError) -> OperationTask<MutateValue, MutateFailure>
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try runTask(box(context), input: latestInput())
  }
}

// A mutation that was never called has no arguments to run with, and its own type of failure cannot express
// that. So these methods throw another error, or return a task that fails. The compiler prefers them, because
// those for every state are disfavored.
extension OperationStore {
  /// Calls the mutation again, as ``retryLatest(using:handler:)`` does.
  ///
  /// Use ``mutate(with:using:handler:)`` to call it with arguments.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func run<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await retryLatest(using: context, handler: handler)
  }

  /// Calls the mutation again, as ``retryLatest(using:handler:)`` does.
  ///
  /// Use ``mutate(with:using:handler:)`` to call it with arguments.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func fetch<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(using: context, handler: handler)
  }

  /// Calls the mutation again with a name, a priority and a context, as
  /// ``retryLatest(using:handler:)`` does.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func fetch<Arguments, MutateValue, MutateFailure>(
    using configuration: OperationTaskConfiguration, handler: EventHandler? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(Machine.Box(configuration), input: latestInput(), handler: handler)
  }

  /// Calls the mutation again, as ``retryLatest(using:handler:)`` does. If the request deduplicates its calls
  /// and one that is the same is in flight, its request is cancelled, and called again for all its callers.
  ///
  /// - Throws: The failure of the mutation, or ``MutationError/noArguments`` if it was never called.
  @discardableResult
  nonisolated(nonsending) public func fetch<Arguments, MutateValue, MutateFailure>(
    restarting isRestarting: Bool, using context: OperationContext? = nil
  ) async throws -> MutateValue
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try await run(box(context), input: latestInput(), isRestarting: isRestarting)
  }

  /// Schedules a call of the mutation, as ``retryLatestTask(using:)`` does.
  ///
  /// Use ``mutateTask(with:using:)`` to schedule a call with arguments.
  ///
  /// - Throws: ``MutationError/noArguments`` if the mutation was never called.
  public func runTask<Arguments, MutateValue, MutateFailure>(
    using context: OperationContext? = nil
  ) throws(MutationError) -> OperationTask<MutateValue, MutateFailure>
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try retryLatestTask(using: context)
  }

  /// Schedules a call with a name, a priority and a context, as ``retryLatestTask(using:)`` does.
  ///
  /// - Throws: ``MutationError/noArguments`` if the mutation was never called.
  public func runTask<Arguments, MutateValue, MutateFailure>(
    using configuration: OperationTaskConfiguration
  ) throws(MutationError) -> OperationTask<MutateValue, MutateFailure>
  where State == MutationState<Arguments, MutateValue, MutateFailure> {
    try runTask(Machine.Box(configuration), input: latestInput())
  }

  /// Schedules a call of the mutation again. The task of one that was never called fails with
  /// ``MutationError/noArguments``.
  public func runTask<Arguments, MutateValue>(
    using context: OperationContext? = nil
  ) -> OperationTask<MutateValue, any Error>
  where State == MutationState<Arguments, MutateValue, any Error> { runTask(box(context)) }

  /// Schedules a call with a name, a priority and a context, as ``runTask(using:)`` does.
  public func runTask<Arguments, MutateValue>(
    using configuration: OperationTaskConfiguration
  ) -> OperationTask<MutateValue, any Error>
  where State == MutationState<Arguments, MutateValue, any Error> {
    runTask(Machine.Box(configuration))
  }

  /// Returns the arguments of the latest call of a mutation; `nil` for another request.
  package func latestInput() throws(MutationError) -> (any RunInput)? {
    guard State.kind == .mutation else { return nil }
    var context = OperationContext()
    _ = state.taskToJoin(in: &context)
    guard let input = context.input else { throw .noArguments }
    return input
  }
}
