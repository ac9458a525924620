/// A modifier that changes the settings of the runs, and not the runs themselves.
public struct SettingsModifier<Base: OperationRequest>: OperationModifier {
  let change: @Sendable (inout OperationContext) -> Void

  /// Writes into the context.
  public func setup(context: inout OperationContext, using base: Base) {
    change(&context)
  }
}

extension OperationRequest {
  func settings(
    _ change: @escaping @Sendable (inout RunSettings.Values) -> Void
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    modifier(SettingsModifier { change(&$0.settings.values) })
  }
}
