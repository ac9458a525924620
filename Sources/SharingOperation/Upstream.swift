import Operation

/// The wrapper that another one follows, and how bindings are made from its value.
struct Upstream<State: OperationState>: Sendable {
  /// Returns whether the value is certainly that of a source. This is quick.
  let isCurrent: @Sendable (BindingSource) -> Bool
  /// Reads the value.
  let read: @Sendable () -> BindingSource
  /// Returns whether two sources have the same value.
  let areEqual: @Sendable (BindingSource, BindingSource) -> Bool
  /// Makes the binding for the value of a source. It calls the user's closure.
  let bind: @Sendable (BindingSource) -> Binding<State>

  init<Other>(
    _ core: SharedQueryCore<Other>,
    bind: @escaping @Sendable (Other.StateValue) -> Binding<State>
  ) {
    isCurrent = { source in
      guard let store = core.binding.store else { return source.store == nil }
      return store === source.store && source.version != nil && store.version == source.version
    }
    read = {
      let binding = core.binding
      let (state, version) = binding.store?.versionedState ?? (binding.state, 0)
      return BindingSource(
        store: binding.store, version: version, value: core.projection.value(state.currentValue),
        updateCount: state.valueUpdateCount, date: state.valueLastUpdatedAt)
    }
    let areEqual = Equality<Other.StateValue>.comparison
    self.areEqual = { old, new in
      if let areEqual, let old = old.value as? Other.StateValue,
        let new = new.value as? Other.StateValue
      {
        return areEqual(old, new)
      }
      return old.store === new.store && old.version != nil && new.version != nil
        && old.updateCount == new.updateCount && old.date == new.date
    }
    self.bind = { source in
      // The value is always of that type.
      bind(source.value as? Other.StateValue ?? core.value)
    }
  }
}

/// The cores whose bindings the calling thread is making.
enum BindingMakers {
  @TaskLocal static var current: [ObjectIdentifier] = []
}
