import Observation
import Operation
import Synchronization

/// What the copies of one wrapper share: its binding, and the members that were read through it.
///
/// The lock of `shell` guards the machine, and the lock of `readers` the table of readers. Stores,
/// subscriptions, comparisons and the registrar are called with no lock held. Changes are committed
/// first; then readers are notified.
final class SharedQueryCore<State: OperationState>: Sendable, Observable {
  typealias StoredState = State.StoredState

  let client: OperationClient
  let projection: Projection<State>
  /// The wrapper that this one follows; `nil` for most wrappers.
  private let upstream: Upstream<StoredState>?
  private let shell: DeliveryShell<BindingMachine<StoredState>>
  private let registrar = ObservationRegistrar()
  private let readers = Mutex<[ObservedMember: MemberReaders<State>]>([:])
  private let valueKeyPath: any KeyPath<SharedQueryCore, Bool> & Sendable
  /// A Boolean value that indicates whether `readers` has an entry for the value.
  private let isValueRead = Atomic(false)

  init(
    _ binding: Binding<StoredState>, client: OperationClient, projection: Projection<State>,
    upstream: Upstream<StoredState>? = nil
  ) {
    self.client = client
    self.upstream = upstream
    self.projection = projection
    shell = DeliveryShell(BindingMachine(binding))
    valueKeyPath = Self.keyPath(of: .value)
    follow(binding, epoch: 0)
  }

  /// The binding for a reader.
  var binding: Binding<StoredState> {
    let binding = binding(isRead: true)
    noteAccess(to: binding)
    return binding
  }

  /// Returns the binding; that for the present value of the wrapper that this one follows, if it follows one.
  func binding(isRead: Bool) -> Binding<StoredState> {
    if let upstream { return made(by: upstream, isRead: isRead) }
    return shell.withLock { machine in
      if isRead { machine.noteRead() }
      return machine.binding
    }
  }

  /// Notes that a reader with exclusive access to a store reads what may never be delivered.
  private func noteAccess(to binding: Binding<StoredState>) {
    if binding.store?.isChangedByCaller == true { shell.withLock { $0.isReadAhead = true } }
  }

  /// Returns the binding for the present value of another wrapper, and makes it if it is needed.
  ///
  /// - Parameter isRead: Whether it is for a reader, which then may be ahead of the wrapper.
  private func made(by upstream: Upstream<StoredState>, isRead: Bool) -> Binding<StoredState> {
    let (present, current) = shell.withLock { machine in
      if isRead { machine.noteRead() }
      return (machine.made, machine.made?.binding ?? machine.binding)
    }
    guard let source = upstream.read(present?.source) else { return current }
    if let present, upstream.areEqual(present.source, source) {
      withExtendedLifetime(shell.withLock { $0.update(present, source) }) {}
      return present.binding
    }
    // The user's closure may read the wrapper that it makes the request for.
    guard shell.withLock({ $0.beginMaking() }) else { return current }
    var binding = upstream.bind(source)
    if upstream.keepsPrevious { binding = binding.displaying(current.kept(for: binding)) }
    let number = (present?.number ?? 0) + 1
    let new = MadeBinding(source: source, binding: binding, number: number)
    let (isOutdated, old, stored) = shell.withLock { machine in
      let isOutdated = machine.endMaking()
      let old = machine.make(new)
      if isRead { machine.noteRead() }
      return (isOutdated, old, machine.made?.binding ?? binding)
    }
    if isOutdated { followUpstream() }
    if isOutdated || old?.number == number { return made(by: upstream, isRead: isRead) }
    return stored
  }

  /// Binds the wrapper for the present value of the wrapper that it follows.
  func followUpstream() {
    guard let upstream else { return }
    let binding = made(by: upstream, isRead: false)
    rebind(to: binding) { ($0.bind(to: binding), nil, nil) }
  }

  /// The displayed value.
  var value: State.StateValue {
    guard upstream == nil else { return projection.value(binding.currentValue) }
    if let value = shell.withLock({ $0.unchangedValue }) { return projection.value(value) }
    let (binding, epoch) = shell.withLock { machine in
      machine.noteRead()
      return (machine.binding, machine.epoch)
    }
    let (value, version) = binding.versionedValue
    if version == nil { noteAccess(to: binding) }
    withExtendedLifetime(shell.withLock { $0.noteRead(value, version, epoch: epoch) }) {}
    return projection.value(value)
  }

  /// Replaces the binding after a delay, by the clock of the client, unless it is replaced before.
  ///
  /// - Parameter binding: Returns the new binding after the delay.
  func bind(
    after delay: Duration, to binding: @escaping @Sendable (SharedQueryCore) -> Binding<StoredState>
  ) {
    let timer = LateSubscription()
    shell.withLock { $0.setTimer(timer) }?.cancel()
    timer.set(
      client.clock.schedule(after: delay) { [weak self, weak timer] in
        if let self, let timer { bind(to: binding(self), after: timer) }
      })
  }

  /// Replaces the binding, until the value of the wrapper that this one follows changes. Does nothing
  /// after a timer that is not the newest one, because another binding followed while this one was made.
  func bind(to binding: Binding<StoredState>, after timer: LateSubscription? = nil) {
    // A change of the other wrapper may not have been delivered yet, and came before.
    if let upstream { _ = made(by: upstream, isRead: false) }
    rebind(to: binding) { $0.override(with: binding, after: timer) }
  }

  /// Binds the wrapper in a transition, follows the new binding if there is one, and notifies the readers:
  /// those of members that differ, or all if they may have read states that were never delivered.
  private func rebind(
    to binding: Binding<StoredState>,
    by transition: (inout BindingMachine<StoredState>) -> BindingMachine<StoredState>.Rebinding
  ) {
    // Before readers can take the new binding.
    let first = (count: binding.store?.transitionCount, state: binding.boxed)
    let (old, rebinding, wasReadAhead) = shell.commit {
      ($0.binding, transition(&$0), $0.takeReadAhead())
    }
    // A task that an observer starts does not work for the run whose request binds the wrapper.
    CurrentWork.without {
      let isSkipping = rebinding.replacement.map { follow($0, from: first) } ?? false
      if isSkipping || wasReadAhead { notifyAllReaders() }
    }
    withExtendedLifetime((old, rebinding)) {}
  }

  /// Returns whether readers may have read states that were never delivered.
  ///
  /// - Parameter first: The state of the new binding before readers could take it.
  private func follow(
    _ replacement: BindingMachine<StoredState>.Replacement,
    from first: (count: Int?, state: BoxedState<StoredState>)
  ) -> Bool {
    // Read before the subscription ends, because its end can cancel a run.
    let last = replacement.replaced.boxed
    // A delivery in progress may be of states that were undone since.
    var isSkipping = replacement.replaced.store?.isDelivering ?? false
    shell.withLock { $0.addReadStates([last, first.state]) }
    let isSame = (replacement.replaced.store == nil) == (replacement.binding.store == nil)
    readers.withLock { [$0[.binding], isSame ? nil : $0[.backing]] }.forEach { $0.map(notify) }
    if first.count != replacement.binding.store?.transitionCount {
      isSkipping = isSkipping || shell.withLock { $0.isReadWhileChanging }
    }
    follow(replacement.binding, epoch: replacement.epoch)
    let present = replacement.binding.boxed
    // The new store delivers its state late if a delivery is in progress.
    if shell.withLock({ $0.isChanging(replacement.epoch) }) {
      receive(present.state, epoch: replacement.epoch)
    }
    // After the new subscription: where both are of one store, its observers keep their run.
    defer { replacement.subscription?.cancel() }
    return isSkipping || StateChange(from: first.state, to: present).hasNewResult
      || replacement.lastNotified.map { StateChange(from: $0, to: last).hasNewResult } ?? false
  }

  /// Subscribes to the store of a binding, or takes the state of an unbacked one.
  private func follow(_ binding: Binding<StoredState>, epoch: Int) {
    guard let store = binding.store else { return receive(binding.state, epoch: epoch) }
    // A subscription to a store that was replaced meanwhile could start a run.
    guard shell.withLock({ $0.isCurrent(epoch) }) else { return }
    // The handler retains the core until `end()` or the next binding cancels the subscription.
    let subscription = store.subscribe(by: binding.rules) { [self] event in
      if case .stateChanged(let state) = event { receive(state, epoch: epoch) }
    }
    shell.withLock { $0.setSubscription(subscription, epoch: epoch) }?.cancel()
  }

  private func receive(_ state: StoredState, epoch: Int) {
    let (changes, read, wasReadAhead) = shell.withLock {
      ($0.receive(state, epoch: epoch), $0.takeLastRead(), $0.takeReadAhead())
    }
    withExtendedLifetime(read) {}
    if wasReadAhead { return notifyAllReaders() }
    if changes.isEmpty { return }
    for member in readers.withLock({ $0 }).values where changes.contains(where: member.hasChanged) {
      notify(member)
    }
  }

  /// Ends the subscription, and notifies all readers. Called when the last copy of the wrapper is
  /// released.
  func end() {
    let (ended, read) = shell.withLock { ($0.end(), $0.takeLastRead()) }
    ended.subscription?.cancel()
    withExtendedLifetime(read) {}
    notifyAllReaders()
  }

  /// Returns a source of what `source` sends for the present binding, and for each later one. When the client is
  /// shut down, the bindings end; the source of the last one ends by itself, with its store.
  func following<Element: Sendable>(
    _ source: @escaping @Sendable (Binding<StoredState>) -> StreamSource<Element>
  ) -> StreamSource<Element> {
    // A reader can outlive the wrapper, and does not retain this.
    bindings.ending(with: client.closing) { [shell] action in
      // A binding that is queued comes first.
      shell.afterDeliveries(passing: { _ in .finished }, action)
    }.flatMapLatest(source)
  }

  /// The present binding, and every later one.
  var bindings: StreamSource<Binding<StoredState>> {
    StreamSource { [self] handler in
      // A stream that begins after the end stays with the last store.
      if shell.withLock({ $0.isCurrent($0.epoch) }) { _ = binding(isRead: false) }
      return shell.subscribe(handler) {
        $0.deliveries.subscribe($1, initially: .element($0.made?.binding ?? $0.binding))
      }
    }
  }
}

extension SharedQueryCore {
  /// A property for each member. The registrar identifies readers by its key path.
  private subscript(readersOf member: ObservedMember) -> Bool { false }

  private static func keyPath(
    of member: ObservedMember
  ) -> any KeyPath<SharedQueryCore, Bool> & Sendable { \SharedQueryCore[readersOf: member] }

  /// Returns the displayed value, and registers its reader.
  func readValue() -> State.StateValue {
    if isValueRead.load(ordering: .acquiring) {
      registrar.access(self, keyPath: valueKeyPath)
    } else {
      access(
        .value,
        hasChanged: StateChange.comparing(
          { [projection] in projection.value($0.value) }, otherwise: { $0.hasNewValue }))
      isValueRead.store(true, ordering: .releasing)
    }
    return value
  }

  /// Returns a member of the state, and registers its reader.
  func readMember<Member: Sendable>(
    _ keyPath: any AnyKeyPath & Sendable, _ member: @escaping @Sendable (StoredState) -> Member
  ) -> Member {
    access(
      .keyPath(HashableKeyPath(keyPath: keyPath)),
      hasChanged: StateChange.comparing { member($0.state) })
    return member(binding.state)
  }

  /// Registers a reader of a member.
  ///
  /// - Parameter hasChanged: Returns whether a change concerns the readers; made by the first read.
  func access(
    _ member: ObservedMember,
    hasChanged: @autoclosure () -> @Sendable (StateChange<StoredState>) -> Bool
  ) {
    let present = readers.withLock { $0[member] }
    let readers =
      present ?? MemberReaders(keyPath: Self.keyPath(of: member), hasChanged: hasChanged())
    if present == nil {
      // An entry that another thread added meanwhile is equivalent.
      withExtendedLifetime(self.readers.withLock { $0.updateValue(readers, forKey: member) }) {}
    }
    registrar.access(self, keyPath: readers.keyPath)
  }

  func notifyAllReaders() {
    // A task that an observer starts does not work for the run whose request releases the wrapper.
    CurrentWork.without { for member in readers.withLock({ $0 }).values { notify(member) } }
  }

  private func notify(_ member: MemberReaders<State>) {
    registrar.withMutation(of: self, keyPath: member.keyPath) {}
  }
}

extension SharedQueryCore {
  /// Returns a request as a binding, or the empty one without a request.
  func binding<Request: StatefulOperationRequest>(
    to request: Request?, keepingPrevious: Bool
  ) -> Binding<StoredState> where Request.State == StoredState, StoredState: ValueInitializedState {
    if request != nil { client.reportIfMissing() }
    let new = Binding(request, in: client)
    return keepingPrevious && request != nil
      ? new.displaying(binding(isRead: false).kept(for: new)) : new
  }
}

/// The displayed form of a stored state.
struct Projection<State: OperationState>: Sendable {
  let state: @Sendable (State.StoredState) -> State
  let value: @Sendable (State.StoredState.StateValue) -> State.StateValue
  /// Returns the stored form of a value; `nil` if there is none, so that the value cannot be written.
  let stateValue: @Sendable (State.StateValue) -> State.StoredState.StateValue?

  /// A projection that displays a part of the value.
  static func selecting<Base, Selected>(
    _ select: @escaping @Sendable (Base.StateValue) -> Selected
  ) -> Projection where State == SelectedState<Base, Selected> {
    Projection(
      state: { SelectedState($0, select: select) }, value: select, stateValue: { _ in nil })
  }

  /// A projection that displays a default for a missing value.
  static func defaulting<Base>(to value: Base.DefaultedValue) -> Projection
  where State == DefaultState<Base> {
    Projection(
      state: { DefaultState($0, default: value) },
      value: { Base.value($0, default: value) },
      stateValue: Base.stateValue)
  }
}

extension Projection where State.StoredState == State {
  /// A projection that displays the state as it is.
  static var identity: Projection { Projection(state: { $0 }, value: { $0 }, stateValue: { $0 }) }
}
