import Operation

/// How a wrapper looks at the state of its store.
struct Projection<State: OperationState>: Sendable {
  let state: @Sendable (State.StoredState) -> State
  let value: @Sendable (State.StoredState.StateValue) -> State.StateValue
  let stateValue: @Sendable (State.StateValue) -> State.StoredState.StateValue

  init(
    state: @escaping @Sendable (State.StoredState) -> State,
    value: @escaping @Sendable (State.StoredState.StateValue) -> State.StateValue,
    stateValue: @escaping @Sendable (State.StateValue) -> State.StoredState.StateValue
  ) {
    self.state = state
    self.value = value
    self.stateValue = stateValue
  }
}

extension Projection where State.StoredState == State {
  /// As it is; inlined like what makes wrappers, so that it is made where the type is known.
  static var identity: Projection {
    Projection(state: { $0 }, value: { $0 }, stateValue: { $0 })
  }
}

extension Projection {
  /// With a default in the place of a missing value.
  static func defaulting<Base>(to value: Base.DefaultedValue) -> Projection
  where State == DefaultState<Base> {
    Projection(
      state: { DefaultState($0, default: value) },
      value: { Base.value($0, default: value) },
      stateValue: Base.stateValue)
  }
}
