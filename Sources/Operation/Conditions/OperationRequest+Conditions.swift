extension StatefulOperationRequest {
  /// Runs the request when a condition becomes true, if its store is stale and somebody observes it.
  ///
  /// Several conditions on one request stand beside each other.
  public func rerunOnChange(
    of condition: some OperationRunSpecification
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings {
      $0.rerunTriggers.append { context, run in
        condition.subscribe(in: context) {
          if condition.isSatisfied(in: context) { run() }
        }
      }
    }
  }
}
