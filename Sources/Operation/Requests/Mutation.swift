/// A mutation that is made of a closure, without a type of its own.
///
/// ```swift
/// let create = Mutation(path: ["create-post"]) { (title: String, context) in
///   try await api.createPost(title: title)
/// }
/// ```
///
/// Two mutations with the same types on one path are the same mutation: a client uses the closure
/// with which the store was created.
public struct Mutation<Arguments: Sendable, MutateValue: Sendable>: MutationRequest {
  /// A closure that makes the change, and can yield values before it returns one.
  public typealias Body =
    nonisolated(nonsending) @Sendable (
      Arguments, OperationContext, OperationContinuation<MutateValue, any Error>
    ) async throws -> MutateValue

  /// The path under which a client holds the store of the mutation.
  public let path: OperationPath
  private let body: Body

  /// Creates a mutation from a closure that can yield values before it returns one.
  @_disfavoredOverload
  public init(path: OperationPath, _ mutate: @escaping Body) {
    self.path = path
    body = mutate
  }

  /// Creates a mutation from a closure.
  public init(
    path: OperationPath,
    _ mutate:
      nonisolated(nonsending) @escaping @Sendable (
        Arguments, OperationContext
      ) async throws -> MutateValue
  ) { self.init(path: path) { arguments, context, _ in try await mutate(arguments, context) } }

  /// Makes the change.
  ///
  /// - Throws: The error of the closure.
  nonisolated(nonsending) public func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, any Error>
  ) async throws -> MutateValue { try await body(arguments, context, continuation) }
}
