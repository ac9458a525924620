extension OperationRequest {
  /// Runs one after the other, in the order in which they were called, what has the same scope in
  /// one client; different scopes run side by side.
  ///
  /// A store without a client has its scopes to itself. A run that fails or is cancelled does not
  /// stop the next one.
  ///
  /// - Parameter scope: Anything hashable; scopes are the same when their types and values are.
  public func serialized(
    in scope: some Hashable & Sendable
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.serialScope = SerialScope(scope) }
  }
}
