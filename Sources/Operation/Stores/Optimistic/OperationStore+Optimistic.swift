extension OperationStore where State: EditableState {
  /// Displays an edit of the value while the work that makes it true is in flight.
  ///
  /// ```swift
  /// try await store.optimistically { post in
  ///   post?.likes += 1
  /// } while: {
  ///   try await like.mutate(with: post.id)
  /// }
  /// ```
  ///
  /// The edit is displayed on top of the server's value, from before the work starts. A fetch, a push or
  /// a write that comes meanwhile replaces the base value, and the edit stays on top. If the work fails
  /// or is cancelled, this edit is removed, and no other. If it succeeds, the edit becomes part of the
  /// confirmed value, and a run that started before gets it on top of its result. A reset removes all
  /// edits.
  ///
  /// - Parameters:
  ///   - edit: Changes the value. It is called again whenever the base value changes, on any thread,
  ///     while other writers of the store may wait. It must not block, and must do nothing else.
  ///   - work: The work, which runs in the isolation of the caller.
  /// - Returns: What `work` returns.
  /// - Throws: What `work` throws.
  @discardableResult
  nonisolated(nonsending) public func optimistically<Output, Failure>(
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    let id = beginEdit(edit)
    do throws(Failure) {
      let output = try await work()
      await settleEdit(id)
      return output
    } catch {
      endEdit(id, isSuccess: false)
      throw error
    }
  }

  /// Adds an edit on top of the value.
  func beginEdit(_ edit: @escaping @Sendable (inout State.StateValue) -> Void) -> OperationTaskID {
    let id = OperationTaskID.next()
    let context = context
    let prepared: Machine.Edits.Layers.Edit = { value in
      edit(&value)
      if State.preparesValues { State.prepare(&value, in: context) }
    }
    let show: Machine.Edits.Show = { state, value, updates in state.show(value, updates: updates) }
    // The first edit changes a copy without keeping other writers waiting.
    let first = read { $0.valueWithoutEdits }.map { first in
      var first = first
      prepared(&first.value)
      return first
    }
    commit(as: .edit) { $0.beginEdit(id, prepared, show: show, displaying: first) }
    return id
  }

  func endEdit(_ id: OperationTaskID, isSuccess: Bool) {
    commit(as: .edit) { $0.endEdit(id, isSuccess: isSuccess) }
  }

  /// Ends an edit whose work has succeeded. A saved value that is still being loaded comes first, because the
  /// edited value would take its place. So the edit ends when that value is loaded, also if the task is
  /// cancelled and does not wait.
  nonisolated(nonsending) func settleEdit(_ id: OperationTaskID) async {
    guard let persistence, persistence.whenLoaded({ [self] in endEdit(id, isSuccess: true) })
    else { return endEdit(id, isSuccess: true) }
    await persistence.waitUntilLoaded()
  }
}

extension OperationStore {
  /// A Boolean value that indicates whether the value displays an edit whose work is in flight.
  public var isOptimistic: Bool { read { $0.isOptimistic } }

  /// The value without pending edits: what the server returned, with the edits that it has confirmed.
  public var confirmedValue: State.StateValue { read { $0.confirmedValue } }
}
