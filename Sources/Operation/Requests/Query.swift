/// A query that is made of a closure, without a type of its own.
///
/// ```swift
/// let post = Query(path: ["post", id]) { context in try await api.post(id) }
/// ```
///
/// Two queries with the same types on one path are the same query: a client uses the closure with
/// which the store was created. So the path has to contain every value that the closure captures.
public struct Query<Value: Sendable, Failure: Error>: QueryRequest {
  /// A closure that fetches the value, and can yield values before it returns one.
  public typealias Body =
    nonisolated(nonsending) @Sendable (
      OperationContext, OperationContinuation<Value, Failure>
    ) async throws(Failure) -> Value

  /// The path under which a client holds the store of the query.
  public let path: OperationPath
  private let body: Body

  /// Creates a query from a closure with a typed failure that can yield values before it returns
  /// one.
  @_disfavoredOverload
  public init(path: OperationPath, failure: Failure.Type, _ fetch: @escaping Body) {
    self.path = path
    body = fetch
  }

  /// Creates a query from a closure with a typed failure.
  ///
  /// - Parameters:
  ///   - path: The path under which a client holds the store of the query.
  ///   - failure: The type of the error that the closure throws.
  ///   - fetch: Returns the value. A store calls it on no actor, and a run without a store on the
  ///     caller's. No lock is held.
  public init(
    path: OperationPath, failure: Failure.Type,
    _ fetch:
      nonisolated(nonsending) @escaping @Sendable (OperationContext) async throws(Failure) -> Value
  ) {
    self.init(path: path, failure: failure) { context, _ throws(Failure) in
      try await fetch(context)
    }
  }

  /// Fetches the value.
  ///
  /// - Throws: The error of the closure.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value { try await body(context, continuation) }
}

extension Query where Failure == any Error {
  /// Creates a query from a closure.
  ///
  /// - Parameters:
  ///   - path: The path under which a client holds the store of the query.
  ///   - fetch: Returns the value. A store calls it on no actor, and a run without a store on the
  ///     caller's. No lock is held.
  public init(
    path: OperationPath,
    _ fetch: nonisolated(nonsending) @escaping @Sendable (OperationContext) async throws -> Value
  ) { self.init(path: path, failure: (any Error).self, fetch) }

  /// Creates a query from a closure that can yield values before it returns one.
  @_disfavoredOverload
  public init(path: OperationPath, _ fetch: @escaping Body) {
    self.init(path: path, failure: (any Error).self, fetch)
  }
}
