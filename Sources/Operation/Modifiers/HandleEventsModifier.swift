/// Tells a handler of the runs that pass it.
public struct HandleEventsModifier<Base: OperationRequest, State: OperationState>: OperationModifier
where State.OperationValue == Base.Value, State.Failure == Base.Failure {
  let handler: @Sendable (OperationEvent<State>) -> Void

  /// Runs the request, and tells the handler.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let run =
      context.operationRun ?? OperationRun(id: .next(), cause: .fetch, context: context)
    handler(.runStarted(run))
    let told = OperationContinuation<Base.Value, Base.Failure> { [handler] result in
      handler(.yielded(result, run))
      continuation.yield(with: result)
    }
    do throws(Base.Failure) {
      let value = try await base.run(isolation: isolation, in: context, with: told)
      handler(.runEnded(.success(value), run))
      return value
    } catch {
      handler(.runEnded(.failure(error), run))
      throw error
    }
  }
}

extension StatefulOperationRequest {
  /// Tells `handler` when the request starts, yields and ends; below a retry, for each attempt.
  ///
  /// The handler is called in the run, before the store takes the result in, and hears of no
  /// change of the state: subscribe to the store for these.
  public func handleEvents(
    _ handler: @escaping @Sendable (OperationEvent<State>) -> Void
  ) -> ModifiedOperation<Self, HandleEventsModifier<Self, State>> {
    modifier(HandleEventsModifier(handler: handler))
  }
}

extension OperationRequest {
  /// Tells `handler` when the request starts, yields and ends; below a retry, for each attempt.
  public func handleEvents(
    _ handler: @escaping @Sendable (OperationEvent<QueryState<Value, Failure>>) -> Void
  ) -> ModifiedOperation<Self, HandleEventsModifier<Self, QueryState<Value, Failure>>> {
    modifier(HandleEventsModifier(handler: handler))
  }
}
