extension StatefulOperationRequest {
  /// Runs the request when a condition becomes true, if its store is stale and somebody observes it.
  ///
  /// Several conditions on one request stand beside each other.
  public func rerunOnChange(
    of condition: some OperationRunSpecification
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.rerunTriggers.append(condition.trigger) }
  }

  /// Runs the request by itself, as a query does by default, but only when a condition holds: for
  /// the first subscriber of a stale store, after an invalidation, by polling, when a controller
  /// asks for it, and, if the store is stale and observed, when the condition becomes true.
  ///
  /// Runs that a caller asks for do not depend on it. A mutation is called again with its latest
  /// arguments, and not before it was called.
  public func enableAutomaticRunning(
    onlyWhen condition: some OperationRunSpecification = .always
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings {
      $0.runsAutomatically = true
      $0.automaticCondition = condition.isSatisfied
      $0.rerunTriggers.append(condition.trigger)
    }
  }
}

extension OperationRunSpecification {
  /// Asks for a run whenever the condition may have become true, and is.
  fileprivate var trigger: RerunTrigger {
    { context, store in
      subscribe(in: context) { [weak store] in
        if isSatisfied(in: context) { store?.rerunIfStale() }
      }
    }
  }
}
