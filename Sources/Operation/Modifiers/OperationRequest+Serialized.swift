extension OperationRequest {
  /// Runs one after the other, in the order in which they were called, what has the same scope in
  /// one client; different scopes run side by side.
  ///
  /// A store without a client has its scopes to itself. A run that fails or is cancelled does not
  /// stop the next one. One that awaits another of its own scope waits until it is cancelled.
  ///
  /// - Parameter scope: Anything hashable; scopes are the same when their types and values are. One
  ///   that is not equal to itself is reported, and counts as the same as all such of its type.
  public func serialized(
    in scope: some Hashable & Sendable
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let scope = SerialScope(checking: scope) { "The scope of \(Self.self)" }
    return settings { $0.serialScope = scope }
  }
}
