extension OperationRequest {
  /// Makes the value stale when it is older than `duration` by the clock of the context.
  ///
  /// A store without a value is stale, and so is one that was invalidated, and one whose value has
  /// a date that lies ahead because the clock was set back. Of several staleness modifiers the last
  /// one counts.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero.
  public func stale(
    after duration: Duration
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let duration = duration.checked(for: "The stale time of \(Self.self)")
    return settings { $0.staleness = .after(duration) }
  }

  /// Keeps a value that is there fresh until it is invalidated.
  public func neverStale() -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.staleness = .never }
  }
}

extension StatefulOperationRequest {
  /// Makes the value stale when a predicate says so.
  ///
  /// - Parameter isStale: Asked with the state and the context of the store, with no lock held.
  public func staleWhen(
    _ isStale: @escaping @Sendable (State, OperationContext) -> Bool
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings {
      $0.staleness = .when { state, context in
        (state as? State).map { isStale($0, context) }
      }
    }
  }
}
