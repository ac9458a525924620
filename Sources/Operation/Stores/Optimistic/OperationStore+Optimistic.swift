extension OperationStore where State: EditableState {
  /// Shows an edit of the value before the work that brings it about has ended.
  ///
  /// ```swift
  /// try await store.optimistically { post in
  ///   post?.likes += 1
  /// } while: {
  ///   try await like.mutate(with: post.id)
  /// }
  /// ```
  ///
  /// The edit lies over what the server gave: a fetch, a push or a write that lands while the work is
  /// under way replaces what is underneath. When the work fails or is cancelled, this edit goes and
  /// no other. When it succeeds, the edit becomes part of the confirmed value, and a run that had
  /// started before gets it on top of its result. A reset takes all edits with it.
  ///
  /// - Parameters:
  ///   - edit: Changes the value; called again whenever the value underneath changes, on any thread,
  ///     while other writers of the store may wait, so it must not block, and do nothing else.
  ///   - work: What makes the edit true. It is run in the isolation of the caller.
  /// - Returns: What `work` gives.
  /// - Throws: What `work` throws.
  @discardableResult
  nonisolated(nonsending) public func optimistically<Output, Failure>(
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    let layer = beginEdit(edit)
    do throws(Failure) {
      let output = try await work()
      endEdit(layer, isSuccess: true)
      return output
    } catch {
      endEdit(layer, isSuccess: false)
      throw error
    }
  }

  /// Lays an edit over the value.
  func beginEdit(
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void
  ) -> OperationTaskID {
    let id = OperationTaskID.next()
    guard State.preparesValues else { return lay(edit, as: id) }
    let context = context
    let prepared: Machine.Layers.Edit = { value in
      edit(&value)
      State.prepare(&value, in: context)
    }
    return lay(prepared, as: id)
  }

  func lay(
    _ edit: @escaping Machine.Layers.Edit, as id: OperationTaskID
  ) -> OperationTaskID {
    let show: Machine.Show = { state, value, updates in state.show(value, updates: updates) }
    // The first one is mostly alone with the value: then nobody has to wait while it changes that.
    let plain = read { $0.isPlain ? ($0.state.currentValue, $0.transitionCount) : nil }
    if case (var value, let transitions)? = plain {
      edit(&value)
      let isLaid = commit(isEdit: true) { machine in
        machine.beginEdit(id, edit, show: show, made: value, since: transitions)
      }
      if isLaid { return id }
    }
    commit(isEdit: true) { $0.beginEdit(id, edit, show: show) }
    return id
  }

  func endEdit(_ id: OperationTaskID, isSuccess: Bool) {
    let replaced = commit(isEdit: true) { $0.endEdit(id, isSuccess: isSuccess) }
    withExtendedLifetime(replaced) {}
  }
}

extension OperationStore {
  /// Whether the value shows an edit whose work is under way.
  public var isOptimistic: Bool {
    read { $0.isOptimistic }
  }

  /// The value without the edits whose work is under way: what the server gave, with those that it
  /// has confirmed.
  public var confirmedValue: State.StateValue {
    read { machine in
      if machine.exclusive.isNone || machine.exclusive.content.owner == .current {
        return machine.state.currentValue
      }
      return machine.exclusive.content.before.value?.confirmedValue ?? machine.state.currentValue
    }
  }
}
