/// A request whose value and failure are transformed.
public struct TransformedOperation<Base: OperationRequest, Value: Sendable, Failure: Error>:
  OperationRequest
{
  let base: Base
  let value: @Sendable (Base.Value) -> Value
  let failure: @Sendable (Base.Failure) -> Failure

  /// Performs the setup of the request.
  public func setup(context: inout OperationContext) { base.setup(context: &context) }

  /// Runs the request, and transforms its result.
  ///
  /// - Throws: The transformed failure.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    let transforming = continuation.transforming(value: value, failure: failure)
    return try await base.result(isolation: isolation, in: context, with: transforming)
      .map(value).mapError(failure).get()
  }
}

extension TransformedOperation: StatefulOperationRequest, QueryRequest where Base: QueryRequest {
  /// The path of the request.
  public var path: OperationPath { base.path }
  /// A type that differs from that of the request, whose state is another one.
  public var requestType: any Any.Type { base.transformedRequestType }
  /// The retention of the request.
  public var retention: OperationRetention? { base.retention }

  /// Fetches the value, and transforms it.
  ///
  /// - Throws: The transformed failure.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await run(isolation: #isolation, in: context, with: continuation)
  }
}

extension OperationContinuation {
  /// Returns a continuation that transforms each value and failure, and passes it to this one.
  func transforming<BaseValue, BaseFailure>(
    value: @escaping @Sendable (BaseValue) -> Value,
    failure: @escaping @Sendable (BaseFailure) -> Failure
  ) -> OperationContinuation<BaseValue, BaseFailure> {
    OperationContinuation<BaseValue, BaseFailure> { result in
      yield(with: result.map(value).mapError(failure))
    }
  }
}

extension OperationRequest {
  /// Transforms the value of the request.
  ///
  /// A query with a ``QueryState``, and a mutation, have a `map` of their own. A mapped query with
  /// another state is a query with a ``QueryState``, so it clashes with the request that it maps if
  /// a client uses both under one path. A mapped request of another kind has no state. Apply a
  /// ``StatefulOperationRequest/staleWhen(_:)`` after the map, whose state it reads.
  ///
  /// - Parameter transform: Returns the new value. It is called on any thread, with no lock held,
  ///   for each value that is yielded or returned.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (Value) -> NewValue
  ) -> TransformedOperation<Self, NewValue, Failure> {
    TransformedOperation(base: self, value: transform, failure: { $0 })
  }
}
