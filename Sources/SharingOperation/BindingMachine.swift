import FoundationEssentials
import Operation

/// The value of another wrapper for which a binding was made.
struct BindingSource: Sendable {
  /// The store of the other wrapper; `nil` for the empty value of one without a store.
  let store: (any AnyObject & Sendable)?
  /// The version of the store; `nil` if not every thread reads the same state. Of a stream, the number
  /// of its element.
  let version: Int?
  /// The value; `nil` for a stream without an element.
  let value: (any Sendable)?
  let updateCount: Int
  let date: Date?
  /// The state of an earlier binding whose value is displayed.
  var previous: (any AnyObject & Sendable)?
  /// The newest optimistic edit. The edits before and after it have the same counts and dates.
  var edit: OperationTaskID?
  /// The stamp of the value; `nil` if its state has none.
  var stamp: ValueStamp?

  /// Returns the value as its type.
  func value<Value>(as type: Value.Type) -> Value? { value.flatMap { $0 as? Value } }
}

/// The newest binding that was made for a value of another wrapper.
struct MadeBinding<State: OperationState>: Sendable {
  var source: BindingSource
  var binding: Binding<State>
  /// One more than the number of the binding that it replaces.
  var number: Int
}

/// The machine of a wrapper: its binding, and the states that its readers may have read.
///
/// Every binding begins an epoch. A state or a subscription of an earlier epoch is ignored.
///
/// A wrapper that follows another one is bound when the change of that one is delivered. Until then
/// its readers and new streams use the binding in `made`.
struct BindingMachine<State: OperationState>: DeliveryMachine {
  enum Phase: Sendable {
    /// The readers were notified up to this state.
    case following(BoxedState<State>)
    /// The binding has changed, and no state was received since. Readers may have read any of these
    /// states, and others if they have read since.
    case changing([BoxedState<State>], isRead: Bool = false)
    /// The last copy of the wrapper was released.
    case ended
  }

  /// The end of a binding. All of it is released without the lock.
  struct Replacement: Sendable {
    /// The epoch of the new binding.
    let epoch: Int
    let replaced: Binding<State>
    /// The last state of the replaced store that readers were notified of; `nil` if that is not known.
    let lastNotified: BoxedState<State>?
    let binding: Binding<State>
    /// The subscription to the replaced store, to be cancelled without the lock.
    let subscription: OperationSubscription?
    let lastRead: VersionedValue?
  }

  /// What a transition has replaced, all of it to be released without the lock.
  typealias Rebinding = (
    replacement: Replacement?, made: MadeBinding<State>?, timer: LateSubscription?
  )
  /// A value, and the version of the store at which it was read. The binding retains the store.
  // If each read retained it as well, the benchmark read through @SharedQuery would be over its limit.
  typealias VersionedValue = (
    value: State.StateValue, version: Int, store: Unmanaged<OperationStore<State>>
  )

  var deliveries = DeliveryQueue<StreamSignal<Binding<State>>>()
  private(set) var binding: Binding<State>
  private(set) var epoch = 0
  /// The newest binding for a value of the wrapper that this one follows.
  private(set) var made: MadeBinding<State>?
  /// Whether `made` has another binding than the one that was delivered last.
  private var isMadeAhead = false
  /// Whether readers may have taken a binding before the wrapper was bound to it, or a state that the store may
  /// never deliver.
  var isReadAhead = false
  /// The threads that are inside the closure that makes a binding, and whether they have asked for one there.
  private var makers: [ThreadID: Bool] = [:]
  private var phase: Phase
  // Not a `LateSubscription`: with another object for each wrapper, the benchmark write per @SharedQuery costs two
  // fifths more beside 10,000 wrappers.
  private var subscription: OperationSubscription?
  /// The timer of the newest binding by hand, if it follows after a delay.
  private var timer: LateSubscription?
  /// The value that was read last, as long as the store has not delivered another state.
  private var lastRead: VersionedValue?

  init(_ binding: Binding<State>) {
    self.binding = binding
    phase = .following(binding.boxed)
  }

  /// Returns a Boolean value that indicates whether an epoch is the present one of a wrapper in use.
  func isCurrent(_ epoch: Int) -> Bool {
    if case .ended = phase { false } else { epoch == self.epoch }
  }

  /// The displayed value, without the lock of the store; `nil` if the store has changed since the last read.
  var unchangedValue: State.StateValue? {
    guard let lastRead,
      lastRead.store._withUnsafeGuaranteedRef({ $0.isAt(version: lastRead.version) })
    else { return nil }
    return lastRead.value
  }

  /// Notes a value that was read in an epoch, if it is still that of the store. Returns the one before,
  /// to be released without the lock.
  mutating func noteRead(
    _ value: State.StateValue, _ version: Int?, epoch: Int
  ) -> VersionedValue? {
    guard let version, let store = binding.store, store.isAt(version: version), isCurrent(epoch)
    else { return nil }
    return exchange(&lastRead, with: (value, version, .passUnretained(store)))
  }

  /// Forgets the value that was read last. Returns it, to be released without the lock.
  mutating func takeLastRead() -> VersionedValue? { lastRead.take() }

  /// Whether the calling thread is inside the closure that makes a binding.
  private var isMaking: Bool { makers[.current] != nil }

  /// Notes that the calling thread calls the closure that makes a binding. Returns `false` if it is inside
  /// already, and notes then that it has asked for a binding there.
  mutating func beginMaking() -> Bool {
    defer { makers[.current] = isMaking }
    return !isMaking
  }

  /// Notes that the closure has returned. Returns whether it has asked for a binding. What it has changed was
  /// not followed then.
  mutating func endMaking() -> Bool { makers.removeValue(forKey: .current) == true }

  /// Stores a binding that was made, for readers. Returns the one before, to be released without the
  /// lock, or `new` if another one was made since: the value for which it was made may be an older one.
  mutating func make(_ new: MadeBinding<State>) -> MadeBinding<State>? {
    guard new.number == (made?.number ?? 0) + 1 else { return new }
    var new = new
    new.binding = continuing(new.binding)
    if !new.binding.isSame(as: binding) { isMadeAhead = true }
    return exchange(&made, with: new)
  }

  /// Returns a binding with the previous value that the wrapper displays already, if the store and the rules
  /// stay.
  private func continuing(_ new: Binding<State>) -> Binding<State> {
    if new.isSame(as: binding) { return new.displaying(binding.previous) }
    guard let made, new.isSame(as: made.binding) else { return new }
    return new.displaying(made.binding.previous)
  }

  private var isBoundToMade: Bool { made?.binding.isSame(as: binding) != false }

  /// Notes that a reader takes the newest binding.
  mutating func noteRead() {
    if !isBoundToMade { isReadAhead = true }
    if case .changing(let states, isRead: false) = phase { phase = .changing(states, isRead: true) }
  }

  /// Returns whether readers have to be notified because they were ahead: the wrapper is bound to the
  /// newest binding now.
  mutating func takeReadAhead() -> Bool {
    guard isReadAhead, isBoundToMade else { return false }
    isReadAhead = false
    return true
  }

  /// Stores the timer of a binding by hand. Returns the one before, to be cancelled without the lock.
  mutating func setTimer(_ new: LateSubscription) -> LateSubscription? {
    exchange(&timer, with: new)
  }

  /// Replaces the binding by hand, also that for the present value of the wrapper that this one follows.
  /// Does nothing if it has waited for a timer that is not the present one. Returns what was replaced, to
  /// be released without the lock.
  mutating func override(with new: Binding<State>, after due: LateSubscription?) -> Rebinding {
    if due != nil, due !== timer { return (nil, nil, nil) }
    let old = made
    let new = continuing(new)
    made?.binding = new
    // The binding that a closure makes comes after those that it makes by hand.
    if !isMaking { made?.number += 1 }
    return (bind(to: new), old, timer.take())
  }

  /// Notes another source with an equal value, unless another binding was made since. Returns the one
  /// before, to be released without the lock.
  mutating func update(_ present: MadeBinding<State>, _ source: BindingSource) -> BindingSource? {
    guard let made, made.number == present.number else { return nil }
    self.made?.source = source
    return made.source
  }

  /// Replaces the binding. Returns `nil` if another binding was made since, if the wrapper has ended, or if
  /// the store is the same: then only the rules are replaced, which the caller releases without the lock.
  mutating func bind(to new: Binding<State>) -> Replacement? {
    guard made?.binding.isSame(as: new) != false, isCurrent(epoch) else { return nil }
    let new = made?.binding ?? new
    if new.isSame(as: binding) {
      // Followers may have read the binding that was made in between.
      if isMadeAhead { deliveries.append(.element(new)) }
      (binding, isMadeAhead) = (new, false)
      return nil
    }
    var lastNotified: BoxedState<State>?
    if case .following(let state) = phase {
      lastNotified = state
      phase = .changing([state])
    }
    defer { (binding, isMadeAhead) = (new, false) }
    epoch += 1
    deliveries.append(.element(new))
    return Replacement(
      epoch: epoch, replaced: binding, lastNotified: lastNotified, binding: new,
      subscription: subscription.take(), lastRead: takeLastRead())
  }

  /// Adds states that readers may have read before they were notified of them: a store can be read
  /// before it delivers.
  mutating func addReadStates(_ states: [BoxedState<State>]) {
    if case .changing(let earlier, let isRead) = phase {
      phase = .changing(earlier + states, isRead: isRead)
    }
  }

  /// Whether no state was received in the epoch.
  func isChanging(_ epoch: Int) -> Bool {
    if case .changing = phase { epoch == self.epoch } else { false }
  }

  /// Whether readers have read since the binding has changed.
  var isReadWhileChanging: Bool {
    if case .changing(_, let isRead) = phase { isRead } else { false }
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
    let box = BoxedState(new, previous: binding.previous?.kept(beside: new))
    defer {
      phase = .following(box)
      // The changes retain it, to be released without the lock.
      if binding.previous != nil, box.previous == nil {
        // The newest one may be for a later value of the other wrapper.
        if let made, made.binding.isSame(as: binding) {
          self.made?.binding = made.binding.displaying(nil)
        }
        binding = binding.displaying(nil)
      }
    }
    return switch phase {
    case .following(let old): [StateChange(from: old, to: box, isSameStore: true)]
    case .changing(let states, _):
      states.map { StateChange(from: $0, to: box, isSameStore: false) }
    case .ended: []
    }
  }

  /// Ends the machine. Returns the subscription, to be cancelled without the lock, and what is released
  /// without it.
  mutating func end() -> (subscription: OperationSubscription?, Phase, LateSubscription?) {
    (subscription.take(), exchange(&phase, with: .ended), timer.take())
  }
}

/// A change from a state that readers may have read to the state that replaces it.
struct StateChange<State: OperationState>: Sendable {
  let from: BoxedState<State>
  let to: BoxedState<State>
  /// Counts and dates can be compared only within one store.
  var isSameStore = true

  var old: State { from.state }
  var new: State { to.state }

  /// A Boolean value that indicates whether the displayed value was replaced by another one.
  var hasNewValue: Bool { !isSameStore || !old.hasSameValue(as: new) }

  /// A Boolean value that indicates whether there were results in between.
  var hasNewResult: Bool { hasNewValue || hasNewError }

  /// A Boolean value that indicates whether there is a new error or no error any more.
  var hasNewError: Bool {
    if old.error == nil, new.error == nil { return false }
    return !isSameStore || !old.hasSameError(as: new)
  }

  /// Returns a function that compares a member of both states.
  ///
  /// - Parameter otherwise: Returns whether a member that is not `Equatable` has changed.
  static func comparing<Member: Sendable>(
    _ member: @escaping @Sendable (BoxedState<State>) -> Member,
    otherwise: @escaping @Sendable (StateChange) -> Bool = { _ in true }
  ) -> @Sendable (StateChange) -> Bool {
    guard let areEqual = Equality<Member>.comparison else { return otherwise }
    return { !areEqual(member($0.from), member($0.to)) }
  }
}
