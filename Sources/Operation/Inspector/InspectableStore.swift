import FoundationEssentials

/// What an inspector reads of a store whose state type it does not know.
protocol InspectableStore: ErasedOperationStore {
  /// Whether a fresh value can become stale without a change of the store.
  var canBecomeStale: Bool { get }
  /// Describes the store for a list, without its dependencies. No lock is held while the value is
  /// described.
  func inspect(_ id: Int, by describer: InspectorDescriber) -> InspectedStore
  /// Adds the description of the value in full length, and what else only a peer gets that watches.
  func addDetail(to store: inout InspectedStore, by describer: InspectorDescriber)
}

/// The state of a mutation.
private protocol CallHistory { var calls: [(arguments: Any, status: String)] { get } }

extension MutationState: CallHistory {
  fileprivate var calls: [(arguments: Any, status: String)] {
    history.map { ($0.arguments, $0.status.name) }
  }
}

extension OperationStore: InspectableStore {
  var canBecomeStale: Bool { settings.values.staleness.canBecomeStale }

  func inspect(_ id: Int, by describer: InspectorDescriber) -> InspectedStore {
    let (state, runs, edits) = read { machine in
      (
        machine.visibleState(to: .current), machine.runs.records.map(\.id),
        machine.edits.layers?.pendingCount ?? 0
      )
    }
    let facts = InspectedStore.Facts(
      id: id, path: path.map { String(describing: $0.value) },
      request: Operation.describe(types.plain),
      kind: State.kind == .pages ? "paginated" : State.kind.rawValue,
      status: state.status.name, isStale: isStale,
      updated: state.valueLastUpdatedAt?.timeIntervalSince1970,
      failed: state.errorLastUpdatedAt?.timeIntervalSince1970,
      valueUpdates: state.valueUpdateCount, errorUpdates: state.errorUpdateCount,
      error: state.error.map { describer.short($0, at: path) },
      value: describer.short(state.currentValue, at: path))
    let scope = settings.values.serialScope
    let use = InspectedStore.Use(
      subscribers: subscriberCount, leases: leaseCount, runs: runs.count, edits: edits,
      queued: scope.map { hub.queues.waitingCount(of: runs, in: $0) } ?? 0)
    return InspectedStore(
      facts: facts, use: use, isPaused: state.status.isPaused,
      retry: state.retry.map { ($0.failedAttempts, $0.nextAttemptAt) })
  }

  func addDetail(to store: inout InspectedStore, by describer: InspectorDescriber) {
    let state = state
    let calls = (state as? any CallHistory)?.calls.map {
      InspectedStore.Detail.Call(
        arguments: describer.short($0.arguments, at: path), status: $0.status)
    }
    let pages = State.kind == .pages ? state.currentValue as? any Collection : nil
    let value = describer.full(state.currentValue, at: path)
    store.facts.value = value.text
    store.detail = InspectedStore.Detail(
      rules: rules, calls: calls ?? [], pages: pages?.count,
      isTruncated: value.isTruncated ? true : nil)
  }

  private func automaticRuns(isEnabled: Bool) -> String {
    if isEnabled { allowsRun ? "yes" : "no, its condition is not satisfied" } else { "no" }
  }

  private var rules: [InspectedStore.Detail.Rule] {
    let values = settings.values
    let stale =
      switch values.staleness {
      case .always: "always"
      case .never: "never"
      case .after(let duration): "after \(duration)"
      case .when: "by a predicate"
      }
    let deduplication =
      switch values.deduplication {
      case .never: "no"
      case .equivalentContexts: "of equivalent runs"
      case .by: "by a predicate"
      }
    let rules: [(String, String?)] = [
      ("stale", stale), ("retries", "\(values.retry.limit)"), ("joins runs", deduplication),
      ("network", values.networkMode.rawValue),
      ("retained", use.retention.duration.map { "\($0) after its use" } ?? "forever"),
      ("runs automatically", values.automatic.isEnabled.map(automaticRuns)),
      ("triggers", values.automatic.triggers.isEmpty ? nil : "\(values.automatic.triggers.count)"),
      ("limit of runs", values.serialScope.map { "\($0.limit) in its scope" }),
      ("stale if error", values.staleIfError.map { "up to \($0)" }),
      ("limit of pages", values.pages.limit == .max ? nil : "\(values.pages.limit)"),
      ("limit of calls", State.kind == .mutation ? "\(values.maxHistory)" : nil),
    ]
    return rules.compactMap { name, value in
      value.map { InspectedStore.Detail.Rule(name: name, value: $0) }
    }
  }
}
