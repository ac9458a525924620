/// A request that changes something.
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
  /// What a mutation is called with.
  associatedtype Arguments: Sendable
  /// What a mutation gives.
  associatedtype MutateValue: Sendable
  /// What a mutation fails with.
  associatedtype MutateFailure: Error
  /// What a run gives.
  associatedtype Value = MutateValue
  /// What a run fails with.
  associatedtype Failure = MutateFailure
  /// The state of the store.
  associatedtype State = MutationState<Arguments, MutateValue, MutateFailure>

  /// Makes the change.
  ///
  /// A store calls this on no actor; a run without a store, on the caller's.
  ///
  /// - Parameters:
  ///   - arguments: What the mutation is called with.
  ///   - context: The context of the run.
  ///   - continuation: Takes values before the last one.
  nonisolated(nonsending) func mutate(
    with arguments: Arguments,
    in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue
}

/// What a mutation throws of its own.
public enum MutationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A mutation was to be run again that has never been called with arguments.
  case noArguments

  /// A line that says what is missing.
  public var description: String {
    switch self {
    case .noArguments: "The mutation was never called, so there are no arguments to run it with."
    }
  }
}

extension MutationRequest {
  /// Makes the change with the arguments of the run.
  ///
  /// Without arguments it throws ``MutationError/noArguments``. A failure type of the request's own
  /// cannot say that: then the program ends, with the path of the request.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await mutate(with: arguments(in: context), in: context, with: continuation)
  }

  func arguments(in context: OperationContext) throws(Failure) -> Arguments {
    if let input = context.input as? RunArguments<Arguments> { return input.arguments }
    guard let failure = MutationError.noArguments as? Failure else {
      preconditionFailure("\(path): \(MutationError.noArguments) Use retryLatest().")
    }
    throw failure
  }

  /// Makes the change without a store, with the modifiers of the request, on the caller's actor.
  ///
  /// - Parameters:
  ///   - arguments: What the mutation is called with.
  ///   - context: What the request finds in its context; its own modifiers have the last word.
  ///   - continuation: Takes values before the last one, which are dropped without it.
  @discardableResult
  nonisolated(nonsending) public func run(
    with arguments: Arguments, in context: OperationContext = OperationContext(),
    with continuation: OperationContinuation<MutateValue, MutateFailure>? = nil
  ) async throws(MutateFailure) -> MutateValue {
    try await run(input: RunArguments(arguments), in: context, with: continuation)
  }
}
