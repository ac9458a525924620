extension OperationRequest {
  /// Says whether runs wait for a connection, in the place of the default of the client.
  ///
  /// A paused run has the status `paused`, those who await it wait, and it goes on when the
  /// connection is back. Like any run it is cancelled with its last lease. Paused calls of a
  /// serialized mutation go on in the order in which they were made.
  public func networkMode(
    _ mode: NetworkMode
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.networkMode = mode }
  }
}
