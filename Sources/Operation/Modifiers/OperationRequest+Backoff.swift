extension OperationRequest {
  /// Says how long to wait before each retry; takes the place of the client's default.
  public func backoff(
    _ function: OperationBackoffFunction
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.backoff = function }
  }
}
