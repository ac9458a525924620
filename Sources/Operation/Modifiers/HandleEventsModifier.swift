import ReactiveStreams
import Synchronization

/// A modifier that calls a handler with the events of a request's runs.
public struct HandleEventsModifier<Base: OperationRequest, State: OperationState>: OperationModifier
where State.OperationValue == Base.Value, State.Failure == Base.Failure {
  let handler: @Sendable (OperationEvent<State>) -> Void

  /// Runs the request, and calls the handler.
  ///
  /// - Throws: The failure of the request.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let run = context.operationRun ?? OperationRun(id: .next(), cause: .fetch, context: context)
    notify(.runStarted(run))
    let hasEnded = Atomic(false)
    let handledContinuation = OperationContinuation<Base.Value, Base.Failure> { result in
      // A yield after the end changes nothing.
      if !hasEnded.load(ordering: .acquiring) { notify(.yielded(result, run)) }
      continuation.yield(with: result)
    }
    let result = await base.result(isolation: isolation, in: context, with: handledContinuation)
    hasEnded.store(true, ordering: .releasing)
    notify(.runEnded(result, run))
    return try result.get()
  }

  /// Calls the handler. A task that it starts does not work for the run.
  private func notify(_ event: OperationEvent<State>) { CurrentWork.without { handler(event) } }
}

extension StatefulOperationRequest {
  /// Calls `handler` when the request starts, yields and ends; below a retry, for each attempt.
  ///
  /// The handler is called on any thread, with no lock held, before the result is in the state. A task
  /// that it starts does not work for the run, and may await it. It receives no `stateChanged` events:
  /// subscribe to the store for these.
  public func handleEvents(
    _ handler: @escaping @Sendable (OperationEvent<State>) -> Void
  ) -> ModifiedOperation<Self, HandleEventsModifier<Self, State>> {
    modifier(HandleEventsModifier(handler: handler))
  }
}

extension OperationRequest {
  /// Calls `handler` when the request starts, yields and ends; below a retry, for each attempt.
  ///
  /// The handler is called on any thread, with no lock held.
  public func handleEvents(
    _ handler: @escaping @Sendable (OperationEvent<QueryState<Value, Failure>>) -> Void
  ) -> ModifiedOperation<Self, HandleEventsModifier<Self, QueryState<Value, Failure>>> {
    modifier(HandleEventsModifier(handler: handler))
  }
}
