import Operation

/// The wrapper that another one follows, and how bindings are made from its value.
struct Upstream<State: OperationState>: Sendable {
  /// Reads the value. Returns `nil` if it is certainly that of the earlier source that is passed; this check is
  /// quick.
  let read: @Sendable (BindingSource?) -> BindingSource?
  /// Returns whether two sources have the same value.
  let areEqual: @Sendable (BindingSource, BindingSource) -> Bool
  /// Whether the value before is displayed while a new store has none.
  let keepsPrevious: Bool
  /// Makes the binding for the value of a source. It calls the user's closure.
  let bind: @Sendable (BindingSource) -> Binding<State>

  /// - Parameter bind: Makes the binding for a value; `nil` while there is none.
  private init<Value: Sendable>(
    keepsPrevious: Bool, read: @escaping @Sendable (BindingSource?) -> BindingSource?,
    bind: @escaping @Sendable (Value?) -> Binding<State>
  ) {
    self.keepsPrevious = keepsPrevious
    self.read = read
    let comparison = Equality<Value>.comparison
    areEqual = { old, new in
      if let comparison, let old = old.value(as: Value.self), let new = new.value(as: Value.self) {
        return comparison(old, new)
      }
      guard old.store === new.store, old.previous === new.previous else { return false }
      if let stamp = old.stamp, let newStamp = new.stamp { return stamp == newStamp }
      // When its work has succeeded, an edit becomes part of the value with the same count.
      return old.updateCount == new.updateCount && old.date == new.date
        && (old.edit == new.edit || old.edit == nil || new.edit == nil)
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
      read: { earlier in
        let binding = core.binding(isRead: false)
        if let earlier, earlier.store === binding.store, earlier.previous === binding.previous,
          binding.store.map({ earlier.version.map($0.isAt) == true }) ?? true
        {
          return nil
        }
        let (present, version, edit) = binding.store?.versionedState ?? (binding.state, nil, nil)
        // The displayed value, which is an earlier one while there is none.
        let previous = present.hasOwnValue ? nil : binding.displayedPrevious
        let state = previous?.state ?? present
        return BindingSource(
          store: binding.store, version: version, value: core.projection.value(state.currentValue),
          updateCount: state.valueUpdateCount, date: state.valueLastUpdatedAt, previous: previous,
          edit: edit, stamp: state.valueStamp)
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
      read: { earlier in
        let last = newest.value
        if let earlier, earlier.version == last?.number { return nil }
        return BindingSource(
          store: newest, version: last?.number, value: last?.element,
          updateCount: last?.number ?? 0, date: nil)
      }, bind: bind)
  }
}
