import Operation
import Synchronization

/// The store that a wrapper is bound to, or the empty state of a wrapper without a store.
enum Binding<State: OperationState>: Sendable {
  /// - Parameters:
  ///   - rules: The rules of the request; `nil` if they are those of the store.
  ///   - previous: What is displayed while the store has no value.
  case store(
    OperationStore<State>, rules: RequestRules<State>? = nil, previous: BoxedState<State>? = nil)
  indirect case unbacked(State)

  var store: OperationStore<State>? {
    if case .store(let store, _, _) = self { store } else { nil }
  }

  /// The rules of the request; `nil` if they are those of the store.
  var rules: RequestRules<State>? { if case .store(_, let rules, _) = self { rules } else { nil } }

  /// What is displayed while the store has no value. It may have been replaced already.
  var previous: BoxedState<State>? {
    if case .store(_, _, let previous) = self { previous } else { nil }
  }

  /// What is displayed while the store has no value; `nil` if the store has had one.
  var displayedPrevious: BoxedState<State>? { previous.flatMap { $0.isReplaced ? nil : $0 } }

  /// Returns the binding with another state to display while the store has no value.
  func displaying(_ previous: BoxedState<State>?) -> Binding {
    guard case .store(let store, let rules, _) = self else { return self }
    return .store(store, rules: rules, previous: previous)
  }

  /// Returns the state that a binding that replaces this one displays until its store has a value; `nil` if that
  /// store has a value, is the same, or if there is nothing to display.
  func kept(for new: Binding) -> BoxedState<State>? {
    if new.state.hasLastingValue { return nil }
    let state = state
    let isSameStore = store != nil && store === new.store
    if isSameStore { return displayedPrevious }
    if state.hasOwnValue { return BoxedState(state) }
    // Another object, because each store has to replace it by itself.
    return displayedPrevious.map { BoxedState($0.state) }
  }

  var state: State {
    switch self {
    case .store(let store, _, _): store.state
    case .unbacked(let state): state
    }
  }

  var currentValue: State.StateValue { versionedValue.value }

  /// The displayed value, and the version of the store; `nil` if not every thread reads the same, or if
  /// the value can be that of an earlier binding, which the version does not show.
  var versionedValue: (value: State.StateValue, version: Int?) {
    switch self {
    case .store(let store, _, let previous):
      let (state, version, _) = store.versionedState
      // What exclusive access has made of the state may never be delivered.
      let kept = store.isChangedByCaller ? displayedPrevious : previous?.kept(beside: state)
      return (state.value(or: kept), previous == nil ? version : nil)
    case .unbacked(let state): return (state.currentValue, nil)
    }
  }

  /// The state, and what is displayed while it has no value.
  var boxed: BoxedState<State> { BoxedState(state, previous: displayedPrevious) }

  /// The states; they end when the client of the store is shut down, and without a store after the only one.
  var states: StateStream<State> {
    switch self {
    case .store(let store, let rules, _): store.states(by: rules)
    case .unbacked(let state): StateStream(.just(state, ends: true))
    }
  }

  /// The values, which end as the states do.
  var values: StateStream<State.StateValue> {
    switch self {
    case .store(let store, let rules, nil): store.values(by: rules)
    case .store(let store, let rules, let previous?):
      // Once the store had a value, the earlier one does not come back. After the beginning, the states of the
      // stream decide: a reader may have found a value that the stream sends later.
      StateStream(store.updates(by: rules)).scan(
        BoxedState(previous.state, previous: displayedPrevious)
      ) {
        BoxedState($1, previous: $1.hasLastingValue ? nil : $0.previous)
      }.map(\.value)
    case .unbacked(let state): StateStream(.just(state.currentValue, ends: true))
    }
  }

  /// Sends an element at once, and when the store has changed. Unlike ``states``, it does not end with the
  /// client.
  var changes: StreamSource<Void> {
    guard case .store(let store, let rules, _) = self else { return .just(()) }
    return StreamSource { handler in
      store.subscribe(by: rules, wantsNewest: true) { event in
        if case .stateChanged = event { handler(.element(())) }
      }
    }
  }
}

extension Binding {
  /// Binds a request to its store.
  init<Request: StatefulOperationRequest>(
    _ request: Request, in store: OperationStore<State>
  ) where Request.State == State { self = .store(store, rules: store.rules(of: request)) }

  func isSame(as other: Binding) -> Bool { store === other.store && rules?.key == other.rules?.key }
}

/// A state on the heap. What contains several states is copied quickly: without this the benchmark
/// write, per @SharedQuery is over its limit.
final class BoxedState<State: OperationState>: Sendable {
  let state: State
  /// What is displayed while the state has no value.
  let previous: BoxedState?
  /// Whether the store that this state is displayed for has had a value. A reader may have found it before the
  /// wrapper was subscribed to the store, and a stream may begin after it.
  private let wasReplaced = Atomic(false)

  init(_ state: State, previous: BoxedState? = nil) {
    self.state = state
    self.previous = previous
  }

  /// The displayed value.
  var value: State.StateValue { state.value(or: previous) }

  var isReplaced: Bool { wasReplaced.load(ordering: .acquiring) }

  /// Returns this state, if it is still displayed while the store has no value. Once the store has had one, it does
  /// not come back.
  func kept(beside new: State) -> BoxedState? {
    if new.hasLastingValue { wasReplaced.store(true, ordering: .releasing) }
    return isReplaced ? nil : self
  }

  /// Whether the displayed value is that of an earlier binding.
  var isPrevious: Bool { previous != nil && !state.hasOwnValue }
}

extension OperationState {
  /// Whether there is an own value that is not only that of optimistic edits, whose work may fail.
  var hasLastingValue: Bool { hasOwnValue && isConfirmed }

  /// The value, or that of an earlier state if this one has none.
  func value(or previous: BoxedState<Self>?) -> StateValue {
    guard let previous, !hasOwnValue else { return currentValue }
    return previous.state.currentValue
  }
}

extension Binding where State: ValueInitializedState {
  static var empty: Binding { .unbacked(State(initialValue: State.emptyValue)) }

  /// Binds a request to its store in a client, or nothing to no store.
  init<Request: StatefulOperationRequest>(
    _ request: Request?, in client: OperationClient
  ) where Request.State == State {
    self = request.map { Binding($0, in: client.store(for: $0)) } ?? .empty
  }
}
