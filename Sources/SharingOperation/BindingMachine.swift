import FoundationEssentials
import Operation

/// The store that a wrapper is bound to, or the empty state of a wrapper without a store.
enum Binding<State: OperationState>: Sendable {
  case store(OperationStore<State>, rules: RequestRules<State>? = nil)
  indirect case unbacked(State)

  var store: OperationStore<State>? { if case .store(let store, _) = self { store } else { nil } }

  /// The rules of the request; `nil` if they are those of the store.
  var rules: RequestRules<State>? { if case .store(_, let rules) = self { rules } else { nil } }

  var state: State {
    switch self {
    case .store(let store, _): store.state
    case .unbacked(let state): state
    }
  }

  var currentValue: State.StateValue {
    switch self {
    case .store(let store, _): store.currentValue
    case .unbacked(let state): state.currentValue
    }
  }

  var states: StateStream<State> {
    switch self {
    case .store(let store, let rules): store.states(by: rules)
    case .unbacked(let state): .just(state)
    }
  }

  var values: StateStream<State.StateValue> {
    switch self {
    case .store(let store, let rules): store.values(by: rules)
    case .unbacked(let state): .just(state.currentValue)
    }
  }
}

extension Binding {
  /// Binds a request to its store in a client.
  init<Request: StatefulOperationRequest>(
    _ request: Request, in store: OperationStore<State>, of client: OperationClient
  ) where Request.State == State {
    self = .store(store, rules: client.rules(of: request, in: store))
  }

  func isSame(as other: Binding) -> Bool {
    store === other.store && rules?.key == other.rules?.key
  }
}

extension Binding where State: ValueInitializedState {
  static var empty: Binding { .unbacked(State(initialValue: State.emptyValue)) }
}

/// The value of another wrapper for which a binding was made.
struct BindingSource: Sendable {
  /// The store of the other wrapper; `nil` for the empty value of one without a store.
  let store: (any AnyObject & Sendable)?
  /// The version of the store; `nil` if not every thread reads the same value.
  let version: Int?
  let value: any Sendable
  let updateCount: Int
  let date: Date?
}

/// The newest binding that was made for a value of another wrapper.
struct MadeBinding<State: OperationState>: Sendable {
  var source: BindingSource
  var binding: Binding<State>
  /// Whether a reader made it, before the change of the other wrapper was delivered.
  let isReadAhead: Bool
}

/// The machine of a wrapper: its binding, and the states that its readers may have read.
///
/// Every binding begins an epoch. A state or a subscription of an earlier epoch is ignored.
///
/// A wrapper that follows another one is bound when the change of that one is delivered. Until then
/// its readers use the binding in `made`.
struct BindingMachine<State: OperationState>: DeliveryMachine {
  enum Phase: Sendable {
    /// The readers were notified up to this state.
    case following(State)
    /// The binding has changed, and no state was received since. Readers may have read any of these
    /// states.
    case changing([State])
    /// The last copy of the wrapper was released.
    case ended
  }

  /// The end of a binding. All of it is released without the lock.
  struct Replacement: Sendable {
    /// The epoch of the new binding.
    let epoch: Int
    let replaced: Binding<State>
    /// The subscription to the replaced store, to be cancelled without the lock.
    let subscription: OperationSubscription?
    /// Whether the new store may have been read before.
    let wasReadAhead: Bool
  }

  var deliveries = DeliveryQueue<StreamSignal<Binding<State>>>()
  private(set) var binding: Binding<State>
  private(set) var epoch = 0
  /// The newest binding for a value of the wrapper that this one follows.
  private(set) var made: MadeBinding<State>?
  private var phase: Phase
  private var subscription: OperationSubscription?

  init(_ binding: Binding<State>) {
    self.binding = binding
    phase = .following(binding.state)
  }

  /// Returns a Boolean value that indicates whether an epoch is the present one of a wrapper in use.
  func isCurrent(_ epoch: Int) -> Bool {
    if case .ended = phase { false } else { epoch == self.epoch }
  }

  /// Stores a binding that was made, for readers. Returns the one before, to be released without the
  /// lock.
  mutating func make(_ new: MadeBinding<State>) -> MadeBinding<State>? {
    defer { made = new }
    return made
  }

  /// Replaces the binding for the present value by another one. Returns the one before, to be released
  /// without the lock.
  mutating func override(with new: Binding<State>) -> MadeBinding<State>? {
    guard let made else { return nil }
    return make(MadeBinding(source: made.source, binding: new, isReadAhead: false))
  }

  /// Notes another source with an equal value, unless another binding was made since. Returns the one
  /// before, to be released without the lock.
  mutating func update(_ present: MadeBinding<State>, _ source: BindingSource) -> BindingSource? {
    guard let made, made.binding.store === present.binding.store else { return nil }
    self.made?.source = source
    return made.source
  }

  /// Replaces the binding. Returns `nil` if the store is the same, or if the wrapper has ended.
  mutating func bind(to new: Binding<State>) -> Replacement? {
    guard !new.isSame(as: binding), isCurrent(epoch) else { return nil }
    if case .following(let state) = phase { phase = .changing([state]) }
    defer { binding = new }
    epoch += 1
    deliveries.append(.element(new))
    return Replacement(
      epoch: epoch, replaced: binding, subscription: subscription.take(),
      wasReadAhead: made?.isReadAhead == true)
  }

  /// Adds states that readers may have read before they were notified of them: a store can be read
  /// before it delivers.
  mutating func addReadStates(_ states: [State]) {
    if case .changing(let earlier) = phase { phase = .changing(earlier + states) }
  }

  /// Stores the subscription of an epoch. Returns it if the epoch is over.
  mutating func setSubscription(
    _ new: OperationSubscription, epoch: Int
  ) -> OperationSubscription? {
    guard isCurrent(epoch) else { return new }
    subscription = new
    return nil
  }

  /// Takes a state that was delivered. Returns the change from each state that readers may have read.
  mutating func receive(_ new: State, epoch: Int) -> [StateChange<State>] {
    guard isCurrent(epoch) else { return [] }
    defer { phase = .following(new) }
    return switch phase {
    case .following(let old): [StateChange(old: old, new: new, isSameStore: true)]
    case .changing(let states): states.map { StateChange(old: $0, new: new, isSameStore: false) }
    case .ended: []
    }
  }

  /// Ends the machine. Returns the subscription, to be cancelled without the lock, and the states
  /// that are released without it.
  mutating func end() -> (subscription: OperationSubscription?, phase: Phase) {
    defer { phase = .ended }
    return (subscription.take(), phase)
  }
}

/// A change from a state that readers may have read to the state that replaces it.
struct StateChange<State: OperationState>: Sendable {
  let old: State
  let new: State
  /// Counts and dates can be compared only within one store.
  let isSameStore: Bool

  /// A Boolean value that indicates whether there is a new value, by counts and dates.
  var hasNewValue: Bool {
    !isSameStore || old.valueUpdateCount != new.valueUpdateCount
      || old.valueLastUpdatedAt != new.valueLastUpdatedAt
  }

  /// A Boolean value that indicates whether there is a new error or no error any more.
  var hasNewError: Bool {
    if old.error == nil, new.error == nil { return false }
    return !isSameStore || old.errorUpdateCount != new.errorUpdateCount
      || old.errorLastUpdatedAt != new.errorLastUpdatedAt
      || (old.error == nil) != (new.error == nil)
  }

  /// Returns a function that compares a member of both states.
  ///
  /// - Parameter fallback: The function for a member that is not `Equatable`.
  static func comparing<Member: Sendable>(
    _ member: @escaping @Sendable (State) -> Member,
    otherwise fallback: @escaping @Sendable (StateChange) -> Bool = { _ in true }
  ) -> @Sendable (StateChange) -> Bool {
    guard let areEqual = Equality<Member>.comparison else { return fallback }
    return { !areEqual(member($0.old), member($0.new)) }
  }
}
