/// A request that changes data, and that is called with arguments.
///
/// ```swift
/// struct CreatePost: MutationRequest, Hashable {
///   struct Arguments: Sendable {
///     let title: String
///   }
///
///   func mutate(
///     with arguments: Arguments, in context: OperationContext,
///     with continuation: OperationContinuation<Post, any Error>
///   ) async throws -> Post {
///     try await api.createPost(title: arguments.title)
///   }
/// }
/// ```
public protocol MutationRequest<Arguments, MutateValue>: StatefulOperationRequest
where
  Value == MutateValue,
  Failure == MutateFailure,
  State == MutationState<Arguments, MutateValue, MutateFailure>
{
  /// The type of the arguments of a call.
  associatedtype Arguments: Sendable
  /// The type of the value that a call returns.
  associatedtype MutateValue: Sendable
  /// The type of the error that a call throws.
  associatedtype MutateFailure: Error
  /// The type of the value that a run returns.
  associatedtype Value = MutateValue
  /// The type of the error that a run throws.
  associatedtype Failure = MutateFailure
  /// The state of the store.
  associatedtype State = MutationState<Arguments, MutateValue, MutateFailure>

  /// Makes the change.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the call.
  ///   - context: The context of the run.
  ///   - continuation: Receives values and failures before the final result.
  /// - Throws: The failure of the call.
  nonisolated(nonsending) func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue
}

/// An error that the library throws for a mutation.
public enum MutationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A mutation was to be run again, and it has never been called with arguments.
  case noArguments

  /// A sentence that describes the error.
  public var description: String {
    "The mutation was never called, so there are no arguments to run it with."
  }
}

extension MutationRequest {
  /// Makes the change with the arguments of the run.
  ///
  /// Throws ``MutationError/noArguments`` if the run has no arguments. Where `Failure` cannot be
  /// that error, the program ends with a message that contains the path of the request: only generic
  /// code that runs any request with a typed failure gets here.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await mutate(with: arguments(in: context), in: context, with: continuation)
  }

  func arguments(in context: OperationContext) throws(Failure) -> Arguments {
    if let input = context.input as? RunArguments<Arguments> { return input.arguments }
    guard let failure = MutationError.noArguments as? Failure else {
      preconditionFailure("\(path): \(MutationError.noArguments) Use mutate(with:).")
    }
    throw failure
  }

  /// Throws ``MutationError/noArguments``: without a store, there is no record of an earlier call.
  ///
  /// Use `run(with:)` to call the mutation with arguments.
  @discardableResult
  nonisolated(nonsending) public func run(
    in context: OperationContext = OperationContext(),
    with continuation: OperationContinuation<MutateValue, MutateFailure>? = nil
  ) async throws -> MutateValue { throw MutationError.noArguments }

  /// Makes the change without a store, with the modifiers of the request, on the caller's actor.
  ///
  /// Throws what the request throws.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the call.
  ///   - context: The values that the request finds in its context. The modifiers of the request
  ///     replace values under the same keys, and settings are those of this request only.
  ///   - continuation: Receives values and failures before the final result. Without it they are
  ///     dropped.
  @discardableResult
  nonisolated(nonsending) public func run(
    with arguments: Arguments, in context: OperationContext = OperationContext(),
    with continuation: OperationContinuation<MutateValue, MutateFailure>? = nil
  ) async throws(MutateFailure) -> MutateValue {
    try await run(input: RunArguments(arguments), in: context, with: continuation)
  }
}
