import Synchronization

/// A modifier that shares one run among callers that request the same run at the same time.
///
/// In a store, callers share the store's runs. Without a store, all copies of the modified request share
/// theirs. A call from the run of a store with its context is not shared, because that run depends on what the
/// request reads.
public struct DeduplicationModifier<Base: OperationRequest>: OperationModifier {
  let rule: Deduplication
  private let runs = SharedRuns<Base.Value, Base.Failure>()

  /// Writes the rule into the context, where a store reads it.
  public func setup(context: inout OperationContext, using base: Base) {
    context.settings.values.deduplication = rule
  }

  /// Runs the request. Without a store, joins the run in flight that is the same, if there is one, unless the
  /// context is that of a store's run.
  ///
  /// - Throws: The failure of the run, or ``OperationDependencyError`` if the request would await
  ///   itself and its failure can be that.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    // A store deduplicates its runs itself.
    if context.runNode?.origin != nil || context.sharesNoRun {
      return try await base.run(isolation: isolation, in: context, with: continuation)
    }
    // The shared run can outlast this call, which then must not yield any more.
    let hasReturned = Atomic(false)
    defer { hasReturned.store(true, ordering: .releasing) }
    let ownContinuation = OperationContinuation<Base.Value, Base.Failure> { result in
      if !hasReturned.load(ordering: .acquiring) { continuation.yield(with: result) }
    }
    let caller = OperationTaskID.next()
    // Of several of these modifiers the last one counts.
    var baseContext = context
    baseContext.changeFacts { $0.sharesNoRun = true }
    let task = runs.join(
      context, rule: rule, caller: caller, continuation: ownContinuation, path: base.statefulPath
    ) { [baseContext] continuation in
      await base.result(isolation: isolation, in: baseContext, with: continuation)
    }
    defer { runs.leave(task.id, caller) }
    let wait = RunWait(for: task.node)
    if let failure = task.failure(of: wait) {
      task.node.releaseLease()
      throw failure
    }
    defer { wait?.end() }
    return try await task.result().get()
  }
}

extension OperationRequest {
  /// Joins the run in flight, if there is one in an equivalent context.
  ///
  /// Contexts are equivalent if equal values were written into them under the same keys. Values
  /// that are not `Equatable` count as equal if they are one object, or were written once and
  /// copied.
  public func deduplicated() -> ModifiedOperation<Self, DeduplicationModifier<Self>> {
    modifier(DeduplicationModifier(rule: .equivalentContexts))
  }

  /// Joins a run in flight that a predicate selects.
  ///
  /// - Parameter areSame: Called with the context of a run in flight and that of the new run, on
  ///   any thread, with no lock held. It returns `true` if the new run has to join.
  public func deduplicated(
    by areSame: @escaping @Sendable (OperationContext, OperationContext) -> Bool
  ) -> ModifiedOperation<Self, DeduplicationModifier<Self>> {
    modifier(DeduplicationModifier(rule: .by(areSame)))
  }
}
