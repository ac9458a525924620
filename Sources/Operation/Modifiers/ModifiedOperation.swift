/// A request with a modifier around it; of the same kind as the request, as long as the modifier
/// leaves value and failure as they are.
public struct ModifiedOperation<Base: OperationRequest, Modifier: OperationModifier<Base>>:
  OperationRequest
{
  /// What a run gives.
  public typealias Value = Modifier.Value
  /// What a run fails with.
  public typealias Failure = Modifier.Failure

  /// The request that is modified.
  public let base: Base
  /// The modifier around it.
  public let modifier: Modifier

  /// Writes into the context what the request needs, and then what the modifier says.
  public func setup(context: inout OperationContext) {
    base.setup(context: &context)
    modifier.setup(context: &context, using: base)
  }

  /// Runs the modified request.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await modifier.run(isolation: isolation, in: context, using: base, with: continuation)
  }
}

extension ModifiedOperation: StatefulOperationRequest
where
  Base: StatefulOperationRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// The state of the store.
  public typealias State = Base.State

  /// The path of the request that is modified.
  public var path: OperationPath { base.path }
  /// The type under the modifiers.
  public var requestType: any Any.Type { base.requestType }
}

extension ModifiedOperation: QueryRequest
where
  Base: QueryRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// What a fetch gives.
  public typealias FetchValue = Base.FetchValue
  /// What a fetch fails with.
  public typealias FetchFailure = Base.FetchFailure

  /// Fetches the value as modified.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<FetchValue, FetchFailure>
  ) async throws(FetchFailure) -> FetchValue {
    try await run(isolation: #isolation, in: context, with: continuation)
  }
}
