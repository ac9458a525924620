import Operation

/// What is behind a wrapper: a store, or nothing yet.
enum Binding<State: OperationState>: Sendable {
  case store(OperationStore<State>)
  /// Nothing; the state is what is shown meanwhile.
  case none(State)

  var store: OperationStore<State>? {
    if case .store(let store) = self { store } else { nil }
  }

  var state: State {
    switch self {
    case .store(let store): store.state
    case .none(let state): state
    }
  }

  var currentValue: State.StateValue {
    switch self {
    case .store(let store): store.currentValue
    case .none(let state): state.currentValue
    }
  }
}

/// The machine of a wrapper: what is behind it, and the state that its readers were told last.
///
/// Every binding begins an epoch; events of a store that belong to an earlier one are dropped.
struct BindingMachine<State: OperationState>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<Binding<State>>>()
  var binding: Binding<State>
  private(set) var epoch = 0
  var subscription: OperationSubscription?
  var lastState: State
  /// Nothing has been received since the last binding.
  var isSettling = false
  /// What readers may have seen around a binding without having been told of it.
  var glimpses: [State] = []
  var isRetired = false

  init(_ binding: Binding<State>) {
    self.binding = binding
    lastState = binding.state
  }

  struct Change: Sendable {
    let epoch: Int
    /// What was there before, to be released without the lock.
    let left: Binding<State>
    /// To be cancelled without the lock.
    let subscription: OperationSubscription?
  }

  /// Puts something else behind the wrapper, unless it is there already or the wrapper is gone.
  mutating func bind(_ new: Binding<State>) -> Change? {
    switch (binding, new) {
    case (.store(let present), .store(let store)) where present === store: return nil
    case (.none, .none): return nil
    default: break
    }
    guard !isRetired else { return nil }
    defer { binding = new }
    epoch += 1
    isSettling = true
    deliveries.append(.element(new))
    return Change(epoch: epoch, left: binding, subscription: subscription.take())
  }

  /// Takes in what readers may have seen: a store is read as it is, also before it has told so.
  mutating func glimpse(_ states: [State]) {
    if isSettling { glimpses += states }
  }

  /// The subscription of an epoch was made; it is given back if that is over.
  mutating func setSubscription(
    _ new: OperationSubscription, epoch: Int
  ) -> OperationSubscription? {
    guard epoch == self.epoch, !isRetired else { return new }
    subscription = new
    return nil
  }

  /// A store told its state; gives the steps that may have led to it from what readers saw.
  mutating func receive(_ state: State, epoch: Int) -> [StateStep<State>] {
    guard epoch == self.epoch else { return [] }
    var steps = [StateStep(old: lastState, new: state, isSameStore: !isSettling)]
    lastState = state
    if isSettling {
      steps += glimpses.map { StateStep(old: $0, new: state, isSameStore: false) }
      isSettling = false
      glimpses = []
    }
    return steps
  }

  /// The last copy of the wrapper is gone.
  mutating func retire() -> OperationSubscription? {
    isRetired = true
    return subscription.take()
  }
}

/// The way from one state to the next.
struct StateStep<State: OperationState>: Sendable {
  let old: State
  let new: State
  /// Counts and dates can be compared only within one store.
  let isSameStore: Bool
}
