/// Makes runs one that are asked for at the same time.
public struct DeduplicationModifier<Base: OperationRequest>: OperationModifier {
  let rule: Deduplication
  private let runs = SharedRuns<Base.Value, Base.Failure>()

  init(rule: Deduplication) {
    self.rule = rule
  }

  /// Writes the rule into the context, for a store to follow.
  public func setup(context: inout OperationContext, using base: Base) {
    context.settings.values.deduplication = rule
  }

  /// Runs the request; without a store, copies of the modified request share the run.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    if context.settings.values.isStored {
      return try await base.run(isolation: isolation, in: context, with: continuation)
    }
    let task = runs.join(context, rule: rule, continuation: continuation) { continuation in
      do throws(Base.Failure) {
        return .success(
          try await base.run(isolation: isolation, in: context, with: continuation))
      } catch {
        return .failure(error)
      }
    }
    return try await task.result().get()
  }
}
