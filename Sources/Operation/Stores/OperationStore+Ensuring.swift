import Synchronization

extension OperationStore {
  /// Whether the value that is there will do for somebody who does not ask for a new one.
  var isGoodEnough: Bool {
    guard read({ $0.visibleDate != nil && !$0.isVisiblyInvalidated }) else { return false }
    if case .always = context.settings.values.staleness { return true }
    return !isStale
  }

  /// Gives the value that is there, if it will do, and otherwise that of a run.
  ///
  /// The run may be one that is under way, whatever its request says of deduplication. If that one
  /// had begun before an invalidation, one more is waited for.
  nonisolated(nonsending) func ensure<Output>(
    present: (State.StateValue) -> Output?, fetched: (State.OperationValue) -> Output
  ) async throws -> Output {
    var hasWaited = false
    while true {
      let (updates, asked) = read { ($0.visibleLandingCount, $0.freshness.generation) }
      if isGoodEnough, let value = present(currentValue) { return value }
      guard let (value, generation) = try await run(unlessUpdatedSince: updates) else { continue }
      // An older run, which others had begun.
      if generation < asked { continue }
      if hasWaited || !isInvalidated { return fetched(value) }
      hasWaited = true
    }
  }

  /// Sees to it that there is a value that will do.
  nonisolated(nonsending) func ensure() async throws {
    try await ensure(present: { Self.isNone($0) ? nil : () }, fetched: { _ in () })
  }

  /// The value, for a run of another request.
  var valueForRun: State.StateValue { machine.withLock { $0.readForRun() } }

  /// Whether a value is that of a list without pages.
  static func isNone(_ value: State.StateValue) -> Bool {
    State.kind == .pages && (value as? any Collection)?.isEmpty == true
  }
}
