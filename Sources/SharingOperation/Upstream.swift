import Operation

/// The wrapper that another one follows, and how bindings are made from its value.
struct Upstream<State: OperationState>: Sendable {
  /// Returns whether the value is certainly that of a source. This is quick.
  let isCurrent: @Sendable (BindingSource) -> Bool
  /// Reads the value.
  let read: @Sendable () -> BindingSource
  /// Returns whether two sources have the same value.
  let areEqual: @Sendable (BindingSource, BindingSource) -> Bool
  /// Whether the value before is displayed while a new store has none.
  let keepsPrevious: Bool
  /// Makes the binding for the value of a source. It calls the user's closure.
  let bind: @Sendable (BindingSource) -> Binding<State>

  /// - Parameter bind: Makes the binding for a value; `nil` while there is none.
  private init<Value: Sendable>(
    keepsPrevious: Bool, isCurrent: @escaping @Sendable (BindingSource) -> Bool,
    read: @escaping @Sendable () -> BindingSource,
    bind: @escaping @Sendable (Value?) -> Binding<State>
  ) {
    self.keepsPrevious = keepsPrevious
    self.isCurrent = isCurrent
    self.read = read
    let comparison = Equality<Value>.comparison
    areEqual = { old, new in
      if let comparison, let old = old.value(as: Value.self), let new = new.value(as: Value.self) {
        return comparison(old, new)
      }
      return old.store === new.store && old.version != nil && new.version != nil
        && old.updateCount == new.updateCount && old.date == new.date
    }
    self.bind = { bind($0.value(as: Value.self)) }
  }

  /// Follows the value of another wrapper.
  init<Other>(
    _ core: SharedQueryCore<Other>, keepsPrevious: Bool,
    bind: @escaping @Sendable (Other.StateValue) -> Binding<State>
  ) {
    self.init(
      keepsPrevious: keepsPrevious,
      isCurrent: { source in
        guard let store = core.binding.store else { return source.store == nil }
        return store === source.store && source.version.map(store.isAt) == true
      },
      read: {
        let binding = core.binding
        let (present, version) = binding.store?.versionedState ?? (binding.state, 0)
        // The displayed value, which is an earlier one while there is none.
        let state = present.hasValue ? present : binding.previous?.state ?? present
        return BindingSource(
          store: binding.store, version: binding.previous == nil ? version : nil,
          value: core.projection.value(state.currentValue), updateCount: state.valueUpdateCount,
          date: state.valueLastUpdatedAt)
      },
      // The value is always of that type.
      bind: { bind($0 ?? core.value) })
  }

  /// Follows the newest element of a stream, which is stored with its number.
  init<Element>(
    _ newest: LastElement<(element: Element, number: Int)>, keepsPrevious: Bool,
    bind: @escaping @Sendable (Element?) -> Binding<State>
  ) {
    self.init(
      keepsPrevious: keepsPrevious,
      isCurrent: { $0.version == newest.value?.number },
      read: {
        let last = newest.value
        return BindingSource(
          store: newest, version: last?.number, value: last?.element,
          updateCount: last?.number ?? 0, date: nil)
      }, bind: bind)
  }
}
