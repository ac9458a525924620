/// A query that is not worth a type.
///
/// ```swift
/// let post = Query(path: ["post", id]) { context in try await api.post(id) }
/// ```
///
/// Two queries with one type of value on one path are the same query: a client keeps the closure
/// that it saw first. Name in the path what the closure captures.
public struct Query<Value: Sendable, Failure: Error>: QueryRequest {
  /// What a fetch gives.
  public typealias FetchValue = Value
  /// What a fetch fails with.
  public typealias FetchFailure = Failure

  /// Where a client keeps the store of the query.
  public let path: OperationPath
  private let body:
    nonisolated(nonsending) @Sendable (
      OperationContext, OperationContinuation<Value, Failure>
    ) async throws(Failure) -> Value

  /// Creates a query from a closure with a failure of its own that tells several values.
  @_disfavoredOverload
  public init(
    path: OperationPath,
    failure: Failure.Type,
    _ fetch:
      nonisolated(nonsending) @escaping @Sendable (
        OperationContext, OperationContinuation<Value, Failure>
      ) async throws(Failure) -> Value
  ) {
    self.path = path
    body = fetch
  }

  /// Creates a query from a closure with a failure of its own.
  public init(
    path: OperationPath,
    failure: Failure.Type,
    _ fetch:
      nonisolated(nonsending) @escaping @Sendable (
        OperationContext
      ) async throws(Failure) -> Value
  ) {
    self.init(path: path, failure: failure) { context, _ throws(Failure) in
      try await fetch(context)
    }
  }

  /// Fetches the value.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await body(context, continuation)
  }
}

extension Query where Failure == any Error {
  /// Creates a query from a closure.
  public init(
    path: OperationPath,
    _ fetch: nonisolated(nonsending) @escaping @Sendable (OperationContext) async throws -> Value
  ) {
    self.init(path: path, failure: (any Error).self, fetch)
  }

  /// Creates a query from a closure that tells several values.
  @_disfavoredOverload
  public init(
    path: OperationPath,
    _ fetch:
      nonisolated(nonsending) @escaping @Sendable (
        OperationContext, OperationContinuation<Value, any Error>
      ) async throws -> Value
  ) {
    self.init(path: path, failure: (any Error).self, fetch)
  }
}
