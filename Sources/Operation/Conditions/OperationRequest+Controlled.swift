extension StatefulOperationRequest {
  /// Lets something outside feed the store of the request; see ``OperationController``.
  ///
  /// Several controllers on one request stand beside each other, and are called in their order.
  public func controlled(
    by controller: some OperationController<State>
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings {
      $0.controllers.append { store in
        guard let store = store as? OperationStore<State> else { return nil }
        let controls = OperationControls(store)
        return AttachedController(controller.control(with: controls)) { isObserved in
          if isObserved {
            controller.observationBegan(with: controls)
          } else {
            controller.observationEnded(with: controls)
          }
        }
      }
    }
  }
}
