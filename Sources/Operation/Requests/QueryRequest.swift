/// A request that fetches one value.
///
/// ```swift
/// struct PlayerQuery: QueryRequest, Hashable {
///   let id: Int
///
///   func fetch(
///     in context: OperationContext,
///     with continuation: OperationContinuation<Player, any Error>
///   ) async throws -> Player {
///     try await api.player(id)
///   }
/// }
/// ```
public protocol QueryRequest<FetchValue, State>: StatefulOperationRequest
where Value == FetchValue, Failure == FetchFailure {
  /// The type of the fetched value.
  associatedtype FetchValue: Sendable
  /// The type of the error that a fetch throws.
  associatedtype FetchFailure: Error
  /// The state of the store.
  associatedtype State = QueryState<FetchValue, FetchFailure>

  /// Fetches the value.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameters:
  ///   - context: The context of the run.
  ///   - continuation: Receives values and failures before the final result.
  /// - Throws: The failure of the run.
  nonisolated(nonsending) func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<FetchValue, FetchFailure>
  ) async throws(FetchFailure) -> FetchValue
}

extension QueryRequest {
  /// Fetches the value.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    // Swift 6.3 leaves out the change to the actor where there is nothing but the call of a
    // `nonisolated(nonsending)` function, which does not make it either.
    withExtendedLifetime(isolation) {}
    return try await fetch(in: context, with: continuation)
  }
}
