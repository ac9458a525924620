import Synchronization

/// The policy of `ensure` for a value that is out of date.
public enum StaleValuePolicy: Sendable, Hashable {
  /// It fetches, and returns the new value.
  case fetches
  /// It returns the old value at once, and fetches in the background.
  case revalidates
}

extension OperationStore {
  /// Returns the current value if it is usable, and otherwise that of a run.
  ///
  /// The run may be one in flight, whatever the request's deduplication. If that one was started before
  /// an invalidation, one more is awaited.
  ///
  /// - Parameters:
  ///   - input: The arguments of a mutation.
  ///   - policy: What happens with a value that is not usable.
  ///   - isForRun: Whether the run of another request reads the value. It reads no pending edits: its result
  ///     would still contain an edit after that edit was removed.
  ///   - present: Returns the output for the current value, if there is one.
  nonisolated(nonsending) func ensure<Output>(
    by rules: RequestRules<State>? = nil, input: (any RunInput)? = nil,
    whileStale policy: StaleValuePolicy = .fetches, isForRun: Bool = false,
    present: (State.StateValue) -> Output?, fetched: (State.OperationValue) -> Output
  ) async throws(State.Failure) -> Output {
    await persistence?.waitUntilLoaded()
    var hasWaited = false
    while true {
      let (results, requested) = read { ($0.visibleResultCount, $0.freshness.invalidationCount) }
      if let value = present(isForRun ? confirmedValue : currentValue) {
        let isUsable = isUsable(by: rules)
        if isUsable || policy == .revalidates {
          // Detached: a request that calls this does not await the run.
          if !isUsable {
            Task.detached(executorPreference: context.executor) {
              try? await self.ensure(by: rules)
            }
          }
          if hub.events.isObserved { send(.answeredFromCache, in: context) }
          return value
        }
      }
      guard
        let (value, invalidationCount) =
          try await run(by: rules, input: input, unlessNewerThan: results)
      else { continue }
      // A run that others had started before.
      if invalidationCount < requested { continue }
      if hasWaited || !isInvalidated { return fetched(value) }
      hasWaited = true
    }
  }

  /// Returns the current value, usable or not, or else that of a run, which may be one in flight.
  nonisolated(nonsending) package func firstValue<Output>(
    by rules: RequestRules<State>?, present: (State.StateValue) -> Output?,
    fetched: (State.OperationValue) -> Output
  ) async throws -> Output {
    await persistence?.waitUntilLoaded()
    while true {
      let results = read { $0.visibleResultCount }
      if let value = present(currentValue) { return value }
      if let (value, _) = try await run(by: rules, unlessNewerThan: results) {
        return fetched(value)
      }
    }
  }

  /// Waits until there is a usable value.
  nonisolated(nonsending) func ensure() async throws { try await ensure(by: nil) }

  nonisolated(nonsending) func ensure(by rules: RequestRules<State>?) async throws {
    try await ensure(
      by: rules, input: latestInput(), present: { Self.isEmptyList($0) ? nil : () },
      fetched: { _ in () })
  }

  func noteRead() { isRead.store(true, ordering: .relaxed) }

  /// The value, for a run of another request.
  var valueForRun: State.StateValue { commit(as: .note) { $0.readForRun() } }

  /// The value that the runs of other requests read, and its version, which any other result, and any edit that
  /// becomes part of it, replaces.
  var versionForRun: (value: State.StateValue, version: Int) {
    read {
      let count = $0.visibleResultCount &+ $0.committed.yieldCount &+ $0.edits.settlementCount
      return ($0.confirmedValue, count)
    }
  }

  private static func isEmptyList(_ value: State.StateValue) -> Bool {
    State.kind == .pages && (value as? any Collection)?.isEmpty == true
  }
}
