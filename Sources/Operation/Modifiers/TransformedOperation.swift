/// A request with its value and its failure changed.
public struct TransformedOperation<Base: OperationRequest, Value: Sendable, Failure: Error>:
  OperationRequest
{
  let base: Base
  let value: @Sendable (Base.Value) -> Value
  let failure: @Sendable (Base.Failure) -> Failure

  /// Writes what the request needs into the context.
  public func setup(context: inout OperationContext) {
    base.setup(context: &context)
  }

  /// Runs the request, and changes what comes of it.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    do throws(Base.Failure) {
      return value(
        try await base.run(isolation: isolation, in: context, with: inner(of: continuation)))
    } catch {
      throw failure(error)
    }
  }

  /// What the request tells its values to, before they are changed.
  func inner(
    of continuation: OperationContinuation<Value, Failure>
  ) -> OperationContinuation<Base.Value, Base.Failure> {
    OperationContinuation { [value, failure] result in
      continuation.yield(with: result.map(value).mapError(failure))
    }
  }
}

extension TransformedOperation: StatefulOperationRequest, QueryRequest where Base: QueryRequest {
  /// What a fetch gives.
  public typealias FetchValue = Value
  /// What a fetch fails with.
  public typealias FetchFailure = Failure
  /// The state of the store.
  public typealias State = QueryState<Value, Failure>

  /// The path of the request that is changed.
  public var path: OperationPath { base.path }
  /// Tells the request from the one that it changes.
  public var requestType: any Any.Type { base.transformedRequestType }
  /// The retention that the request asks for.
  public var retention: OperationRetention? { base.retention }

  /// Fetches the value, and changes it.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await run(isolation: #isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  /// Changes the value of the request. A mapped query is a query, and a mapped mutation a mutation;
  /// of pages, and of a kind of one's own, it makes a request without a state.
  ///
  /// A mapped query is a query with a state of its own: give it to a client under one path with
  /// the query that it maps, and the two clash. A ``StatefulOperationRequest/staleWhen(_:)`` belongs
  /// behind the map, where the state is.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (Value) -> NewValue
  ) -> TransformedOperation<Self, NewValue, Failure> {
    TransformedOperation(base: self, value: transform, failure: { $0 })
  }

  func erasingFailure() -> TransformedOperation<Self, Value, any Error> {
    TransformedOperation(base: self, value: { $0 }, failure: { $0 })
  }
}
