extension OperationRequest {
  /// Makes runs that are asked for while one is under way one run, as far as their contexts say
  /// the same.
  ///
  /// Contexts say the same if the values that were written into them are equal, or the very same.
  public func deduplicated() -> ModifiedOperation<Self, DeduplicationModifier<Self>> {
    modifier(DeduplicationModifier(rule: .equivalentContexts))
  }

  /// Makes runs that are asked for while one is under way one run, as far as a predicate says so.
  ///
  /// - Parameter areSame: Asked with the context of the run that is under way and the new one, with
  ///   no lock held.
  public func deduplicated(
    by areSame: @escaping @Sendable (OperationContext, OperationContext) -> Bool
  ) -> ModifiedOperation<Self, DeduplicationModifier<Self>> {
    modifier(DeduplicationModifier(rule: .by(areSame)))
  }
}
