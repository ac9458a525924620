import Observation
import Operation
import Synchronization

/// What the copies of one wrapper share: what is behind it, and who has read what.
///
/// The lock guards the machine. Stores, subscriptions and the registrar are called without it, but
/// for the value of a store, which calls nobody: commits come first, and the registrar is told after
/// them.
final class SharedQueryCore<State: OperationState>: Sendable, Observable {
  let client: OperationClient
  let machine: Mutex<BindingMachine<State>>
  let tracker = ReadTracker<State>()
  let registrar = ObservationRegistrar()
  let upstream = Mutex<OperationSubscription?>(nil)
  let empty: State?
  /// The store that was behind the wrapper first, which is kept as long as the wrapper.
  let first: OperationStore<State>?
  /// The same one, for reads without the lock, as long as it is behind the wrapper.
  let unretainedFirst: Unmanaged<OperationStore<State>>?
  /// Whether something else has been, or is being, put behind the wrapper.
  let isRebound = Atomic(false)

  /// Inlined, like what its store calls with each change: generic code that stays in its module asks
  /// the runtime for its types at each step.
  init(_ binding: Binding<State>, client: OperationClient) {
    self.client = client
    first = binding.store
    unretainedFirst = first.map { .passUnretained($0) }
    machine = Mutex(BindingMachine(binding))
    if case .none(let state) = binding { empty = state } else { empty = nil }
    if case .store(let store) = binding { follow(store, epoch: 0) }
  }

  /// The value that is shown, without a copy of all that is.
  var currentValue: State.StateValue {
    if let unretainedFirst, !isRebound.load(ordering: .acquiring) {
      let value = unretainedFirst._withUnsafeGuaranteedRef { $0.currentValue }
      // Otherwise it may have come after what readers may have seen was noted.
      if !isRebound.load(ordering: .acquiring) { return value }
    }
    return machine.withLock { $0.binding.currentValue }
  }

  var binding: Binding<State> { machine.withLock { $0.binding } }

  /// Puts a store, or nothing, behind the wrapper, and tells those who read what differs.
  func bind(to store: OperationStore<State>?) {
    guard let binding = store.map(Binding.store) ?? empty.map(Binding.none) else { return }
    // What is there already ends no reads without the lock.
    if let store, store === first, !isRebound.load(ordering: .acquiring) { return }
    isRebound.store(true, ordering: .releasing)
    guard let change = machine.commit({ $0.bind(binding) }) else { return }
    // Before its subscription ends, which may end its run.
    let left = change.left.state
    change.subscription?.cancel()
    let seen = [left, binding.state]
    machine.withLock { $0.glimpse(seen) }
    tracker.read(of: .binding).map(tell)
    if let store {
      follow(store, epoch: change.epoch)
    } else {
      receive(binding.state, epoch: change.epoch)
    }
  }

  func follow(_ store: OperationStore<State>, epoch: Int) {
    // A store that was left meanwhile is not made to run.
    guard machine.withLock({ $0.epoch == epoch }) else { return }
    let subscription = store.subscribe { [weak self] event in
      if case .stateChanged(let state) = event { self?.receive(state, epoch: epoch) }
    }
    machine.withLock { $0.setSubscription(subscription, epoch: epoch) }?.cancel()
  }

  func receive(_ state: State, epoch: Int) {
    let steps = machine.withLock { $0.receive(state, epoch: epoch) }
    if steps.isEmpty { return }
    for read in tracker.all.values where steps.contains(where: read.hasChanged) { tell(read) }
  }

  /// Binds to what the values of another wrapper give.
  func depend(on subscription: OperationSubscription) {
    upstream.withLock { $0 = subscription }
  }

  /// The last copy of the wrapper is gone: its subscriptions end, and its readers are told.
  func retire() {
    upstream.withLock { $0.take() }?.cancel()
    machine.withLock { $0.retire() }?.cancel()
    tellEverybody()
  }

  func tellEverybody() {
    for read in tracker.all.values { tell(read) }
  }
}

extension SharedQueryCore {
  /// Where the registrar keeps the readers of one member.
  subscript(member key: MemberKey) -> Bool { false }

  /// Notes that a member is read; what `hasChanged` gives tells whether a step changes it.
  func access(
    _ key: MemberKey, hasChanged: () -> @Sendable (StateStep<State>) -> Bool
  ) {
    let read = tracker.read(key) {
      ReadTracker.Read(keyPath: \SharedQueryCore[member: key], hasChanged: hasChanged())
    }
    access(read.keyPath)
  }

  func access(_ keyPath: KeyPath<SharedQueryCore, Bool>) {
    registrar.access(self, keyPath: keyPath)
  }

  /// Notes that it is read what is behind the wrapper.
  func accessBinding() {
    access(.binding) { { _ in false } }
  }

  func tell(_ read: ReadTracker<State>.Read) {
    registrar.withMutation(of: self, keyPath: read.keyPath) {}
  }

  /// What is behind the wrapper, and what comes after it.
  private var bindings: StreamSource<Binding<State>> {
    StreamSource { [self] handler in
      let subscriber = Subscriber(handler)
      let id = machine.commit {
        $0.deliveries.subscribe(subscriber, initially: .element($0.binding))
      }
      return OperationSubscription { [self] in
        let removed = machine.withLock { $0.deliveries.unsubscribe(id) }
        withExtendedLifetime(removed) {}
      }
    }
  }

  /// A stream of each store that is behind the wrapper, one after the other.
  func stream<Element: Sendable>(
    of stream: @escaping @Sendable (OperationStore<State>) -> StateStream<Element>,
    unbacked: @escaping @Sendable (State) -> Element
  ) -> StateStream<Element> {
    StateStream(
      bindings.flatMapLatest { binding in
        switch binding {
        case .store(let store): stream(store).source
        case .none(let state): .just(unbacked(state))
        }
      })
  }
}

/// What a wrapper holds: one word, because it is copied with each read.
enum SharedQueryHold<State: OperationState>: Sendable {
  case place(SharedQueryPlace<State>)
  /// A projected value: one that is still about, for a fetch that is under way, does not keep readers
  /// from hearing that another wrapper stands in the property.
  case projection(SharedQueryAnchor<State>)
}

/// What the properties hold that the wrapper stands in, and what else is a whole copy of it; with
/// the last of them those who read it are told.
final class SharedQueryPlace<State: OperationState>: Sendable {
  let anchor: SharedQueryAnchor<State>

  init(_ anchor: SharedQueryAnchor<State>) {
    self.anchor = anchor
  }

  deinit {
    anchor.core.tellEverybody()
  }
}

/// What all copies of a wrapper hold; with the last of them the wrapper is gone.
final class SharedQueryAnchor<State: OperationState>: Sendable {
  typealias Core = SharedQueryCore<State.StoredState>

  let core: Core
  let projection: Projection<State>
  let valueKeyPath: any KeyPath<Core, Bool> & Sendable
  /// Whether the tracker knows that the value is read.
  let isValueRead = Atomic(false)

  init(_ core: Core, _ projection: Projection<State>) {
    self.core = core
    self.projection = projection
    valueKeyPath = \Core[member: .value]
  }

  deinit {
    core.retire()
  }

  /// The value that is shown, which is what is read most; it is noted that it is read.
  var value: State.StateValue {
    if !isValueRead.load(ordering: .acquiring) { noteValue() }
    core.access(valueKeyPath)
    return projection.value(core.currentValue)
  }

  func noteValue() {
    _ = core.tracker.read(.value) { [projection] in
      let areEqual = Equality<State.StateValue>.comparison
      return ReadTracker.Read(keyPath: valueKeyPath) { step in
        guard let areEqual else { return step.hasNewValue }
        return !areEqual(
          projection.value(step.old.currentValue), projection.value(step.new.currentValue))
      }
    }
    isValueRead.store(true, ordering: .releasing)
  }
}
