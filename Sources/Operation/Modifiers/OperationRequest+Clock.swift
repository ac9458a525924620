extension OperationRequest {
  /// Says where the dates and the waits of the request come from.
  public func clock(
    _ clock: any OperationClock
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    modifier(SettingsModifier { $0.operationClock = clock })
  }
}
