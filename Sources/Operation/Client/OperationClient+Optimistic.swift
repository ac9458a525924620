extension OperationClient {
  /// Shows an edit of the values below a path before the work that brings it about has ended, as
  /// `OperationStore.optimistically(_:while:)` does for one.
  ///
  /// - Parameters:
  ///   - path: What the paths of the stores begin with.
  ///   - state: The type of their state; stores with another one are left out, and so are those that
  ///     are made while the work is under way.
  ///   - edit: Changes a value; called as often as need be, on any thread. It must not block.
  ///   - work: What makes the edit true. It is run in the isolation of the caller.
  /// - Returns: What `work` gives.
  /// - Throws: What `work` throws.
  @discardableResult
  nonisolated(nonsending) public func optimistically<State: EditableState, Output, Failure>(
    matching path: OperationPath, of state: State.Type,
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    let layers = stores(matching: path, of: state).map { ($0, $0.beginEdit(edit)) }
    do throws(Failure) {
      let output = try await work()
      for (store, layer) in layers { store.endEdit(layer, isSuccess: true) }
      return output
    } catch {
      for (store, layer) in layers { store.endEdit(layer, isSuccess: false) }
      throw error
    }
  }
}
