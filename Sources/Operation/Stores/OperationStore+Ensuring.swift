import Synchronization

/// The policy of `ensure` for a value that is out of date.
public enum StaleValuePolicy: Sendable, Hashable {
  /// Fetches, and returns the new value.
  case fetches
  /// Returns the old value at once, and fetches in the background.
  case revalidates
}

extension OperationStore {
  /// Returns the current value if it is usable, and otherwise that of a run.
  ///
  /// The run may be one in flight, whatever the request's deduplication, but none that was started before
  /// an invalidation.
  ///
  /// - Parameters:
  ///   - input: The arguments of a mutation.
  ///   - policy: What happens with a value that is not usable.
  ///   - isForRun: Whether the run of another request reads the value. It reads no pending edits: its result
  ///     would still contain an edit after that edit was removed.
  ///   - ignoringAge: Whether a value is usable until it is invalidated or a run fails, whatever the rules.
  ///   - present: Returns the output for the current value, if there is one.
  nonisolated(nonsending) func ensure<Output>(
    by rules: RequestRules<State>? = nil, input: (any RunInput)? = nil,
    whileStale policy: StaleValuePolicy = .fetches, isForRun: Bool = false,
    ignoringAge: Bool = false,
    present: (State.StateValue) -> Output?, fetched: (State.OperationValue) -> Output
  ) async throws(State.Failure) -> Output {
    await persistence?.waitUntilLoaded()
    let rule = ignoringAge ? .always : setting(by: rules) { $0.staleness }
    while true {
      // At one time: what is found out later may be about another value.
      let (current, results, version, known) = read {
        let current = isForRun ? $0.confirmedValue : $0.visibleState(to: .current).currentValue
        return (current, $0.visibleResultCount, $0.confirmedVersion, $0.isUsable(by: rule))
      }
      if let value = present(current) {
        let isUsable = known ?? !isOutOfDate(by: rules)
        if known == nil, read({ $0.confirmedVersion }) != version { continue }
        if isUsable || policy == .revalidates {
          if !isUsable, !hub.isClosed {
            Task.startUnawaited(on: context.executor) { _ = try? await self.ensure(by: rules) }
          }
          if hub.events.isObserved { send(.answeredFromCache, in: context) }
          return value
        }
      }
      let value = try await run(
        by: rules, input: input, unlessNewerThan: results, ignoringAge: ignoringAge)
      if let value { return fetched(value) }
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
      if let value = try await run(by: rules, unlessNewerThan: results, joiningOutdated: true) {
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

  /// The value that the runs of other requests read, its ``StoreMachine/confirmedVersion``, and whether it is
  /// invalidated.
  var versionForRun: (value: State.StateValue, version: Int, isInvalidated: Bool) {
    read { ($0.confirmedValue, $0.confirmedVersion, $0.isVisiblyInvalidated) }
  }

  private static func isEmptyList(_ value: State.StateValue) -> Bool {
    State.kind == .pages && (value as? any Collection)?.isEmpty == true
  }
}
