import Synchronization

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
    let attendance = Attendance()
    defer { attendance.end() }
    let attended = OperationContinuation<Base.Value, Base.Failure> { result in
      if !attendance.isOver { continuation.yield(with: result) }
    }
    let task = runs.join(context, rule: rule, continuation: attended) { continuation in
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

/// Whether one caller of a shared run still waits for it; what is yielded later is not for him.
private final class Attendance: Sendable {
  private let hasEnded = Atomic(false)

  var isOver: Bool { hasEnded.load(ordering: .acquiring) }

  func end() { hasEnded.store(true, ordering: .releasing) }
}
