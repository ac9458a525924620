/// How one piece of asynchronous data is made.
///
/// Conform to ``QueryRequest`` and its relatives for data that is kept in a store. Conform to this
/// protocol alone for work that is only run, and that modifiers apply to all the same:
///
/// ```swift
/// let value = try await request.retry(limit: 2).timeout(after: .seconds(5)).run()
/// ```
public protocol OperationRequest<Value, Failure>: Sendable {
  /// What a run gives.
  associatedtype Value: Sendable
  /// What a run fails with.
  associatedtype Failure: Error

  /// Writes what the request needs into the context of its store; called once for a store, and
  /// once for each run without one. The default does nothing.
  func setup(context: inout OperationContext)

  /// Makes the data.
  ///
  /// - Parameters:
  ///   - isolation: The actor that the run stays on; a store runs without one.
  ///   - context: The context of the run.
  ///   - continuation: Takes values before the last one.
  func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value
}

extension OperationRequest {
  /// Writes nothing.
  public func setup(context: inout OperationContext) {}

  /// Runs the request without a store, on the caller's actor.
  ///
  /// - Parameters:
  ///   - context: What the request finds in its context; its own modifiers have the last word.
  ///   - continuation: Takes values before the last one, which are dropped without it.
  @discardableResult
  nonisolated(nonsending) public func run(
    in context: OperationContext = OperationContext(),
    with continuation: OperationContinuation<Value, Failure>? = nil
  ) async throws(Failure) -> Value {
    try await run(input: nil, in: context, with: continuation)
  }

  nonisolated(nonsending) func run(
    input: (any RunInput)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>?
  ) async throws(Failure) -> Value {
    var context = context
    context.settings = RunSettings()
    setup(context: &context)
    // Where it waits for a connection, the run in which it is does not.
    var own = context
    if own.hooks != nil { own.hooks = nil }
    if await !own.mayAttempt(isRetry: false),
      let failure = cancellationFailure(as: Failure.self)
    {
      throw failure
    }
    let node = TaskNode()
    return try await run(
      isolation: #isolation, in: context.beginning(node, input: input, over: context),
      with: continuation ?? OperationContinuation { _ in })
  }
}
