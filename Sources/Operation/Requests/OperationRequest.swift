/// A description of how one piece of asynchronous data is fetched or changed.
///
/// Conform to ``QueryRequest``, ``PaginatedRequest`` or ``MutationRequest`` for data that a store
/// holds. Conform to this protocol alone for work that has no state. Modifiers apply to both:
///
/// ```swift
/// let value = try await request.retry(limit: 2).timeout(after: .seconds(5)).run()
/// ```
public protocol OperationRequest<Value, Failure>: Sendable {
  /// The type of the value that a run returns.
  associatedtype Value: Sendable
  /// The type of the error that a run throws.
  associatedtype Failure: Error

  /// Writes the settings and values that the request needs into the context of its runs.
  ///
  /// A store calls this when it is created, and each time that a request is passed to it or begins
  /// to observe it, unless neither that one nor its own has modifiers; a run without a store calls
  /// it once for itself. The context is a new one each time.
  /// No lock is held. The default does nothing.
  func setup(context: inout OperationContext)

  /// Runs the request.
  ///
  /// - Parameters:
  ///   - isolation: The actor that the run is isolated to. A store passes `nil`.
  ///   - context: The context of the run.
  ///   - continuation: Receives values and failures before the final result.
  /// - Throws: The failure of the run.
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value
}

extension OperationRequest {
  /// Does nothing.
  public func setup(context: inout OperationContext) {}

  /// Runs the request without a store, on the caller's actor.
  ///
  /// Throws what the request throws. A caller that is cancelled while the run waits for a
  /// connection gets `CancellationError` where `Failure` can be that.
  ///
  /// - Parameters:
  ///   - context: The values that the request finds in its context. The modifiers of the request
  ///     replace values under the same keys, and settings are those of this request only.
  ///   - continuation: Receives values and failures before the final result. Without it they are
  ///     dropped.
  @discardableResult
  nonisolated(nonsending) public func run(
    in context: OperationContext = OperationContext(),
    with continuation: OperationContinuation<Value, Failure>? = nil
  ) async throws(Failure) -> Value { try await run(input: nil, in: context, with: continuation) }

  nonisolated(nonsending) func run(
    input: (any RunInput)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>?
  ) async throws(Failure) -> Value {
    var context = context
    context.settings = RunSettings()
    setup(context: &context)
    // If the context is that of another run, that run is not paused while this one waits.
    let mayRun = await context.leavingRun().mayAttempt(isRetry: false)
    if !mayRun { try throwCancellation(as: Failure.self) }
    let (launch, isPartOfRun) = (context.launch, context.runNode?.storeRun != nil)
    let node = TaskNode(path: statefulPath)
    node.beginRequest(calledBy: context.runNode ?? TaskNode.current)
    defer { node.endRequest() }
    let ownContinuation = OperationContinuation<Value, Failure> { result in
      if node.isInRequest {
        continuation?.yield(with: result)
      } else {
        OperationIssue.reportLateYield(of: Value.self, at: node.path)
      }
    }
    var ownContext = context.beginning(node, input: input, over: context)
    // The run of a store whose context was passed depends on what this request reads.
    if isPartOfRun { ownContext.changeFacts { ($0.launch, $0.sharesNoRun) = (launch, true) } }
    return try await run(isolation: #isolation, in: ownContext, with: ownContinuation)
  }

  /// The path of a request that has a state; `nil` for any other one.
  var statefulPath: OperationPath? { (self as? any StatefulOperationRequest)?.path }

  /// Runs the request, and returns its result.
  func result(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async -> Result<Value, Failure> {
    do throws(Failure) {
      return .success(try await run(isolation: isolation, in: context, with: continuation))
    } catch {
      return .failure(error)
    }
  }
}
