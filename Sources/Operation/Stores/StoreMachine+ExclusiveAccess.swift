/// The time in which one thread has a store to itself.
///
/// The owner changes the state in place and sees it; others see the committed state, and their
/// writes wait at the gate.
struct ExclusiveAccess<State: OperationState>: Sendable {
  let owner: ThreadID
  /// What the others see; nothing is kept as long as the state is as it was.
  var before: Boxed<StateBefore<State>>
  var depth = 1
  var hasChanged = false
  /// Whether the owner computes what the edits make of the value: what they change meanwhile has it
  /// computed anew, and not inside of that.
  var isComputing = false
  /// What is done at the end, if runs were begun or ended meanwhile.
  var kept = Boxed<Kept>.none
  var gates: [Gate] = []

  struct Kept: Sendable {
    /// Who hears of the change, before the subscribers.
    var handlers: [Subscriber<OperationEvent<State>>] = []
    /// What is told behind the change.
    var entries: [StoreMachine<State>.Withheld.Entry] = []
    /// What is done when that has been told: who waits for runs that are over goes on, and
    /// invalidations go on to what reads the store.
    var actions: [@Sendable () -> Void] = []

    init() {}
  }

  /// The state was changed, of which these hear, too.
  mutating func noteChange(for others: [Subscriber<OperationEvent<State>>]) {
    hasChanged = true
    if others.isEmpty { return }
    keep { kept in
      kept.handlers += others.filter { other in !kept.handlers.contains { $0 === other } }
    }
  }

  mutating func keep(_ change: (inout Kept) -> Void) {
    if kept.isNone { kept = .some(Kept()) }
    change(&kept.content)
  }
}

/// What there was before a change that is not told yet.
struct StateBefore<State: OperationState>: Sendable {
  let shown: State
  let confirmedValue: State.StateValue
  let isInvalidated: Bool
  let landingCount: Int
}

extension Boxed {
  /// What there was before changes that the calling thread may not see, if there are any.
  func stateBefore<State>() -> StateBefore<State>?
  where Value == ExclusiveAccess<State> {
    isNone || content.owner == .current ? nil : content.before.value
  }
}

extension StoreMachine {
  var before: Boxed<StateBefore<State>> {
    .some(
      StateBefore(
        shown: shown, confirmedValue: state.currentValue, isInvalidated: freshness.isInvalidated,
        landingCount: landingCount))
  }

  /// Gives a gate to wait at, if another thread has the store to itself.
  mutating func gate(for thread: ThreadID) -> Gate? {
    guard !exclusive.isNone, exclusive.content.owner != thread else { return nil }
    let gate = Gate()
    exclusive.content.gates.append(gate)
    return gate
  }

  mutating func beginExclusiveAccess(_ thread: ThreadID) {
    if exclusive.isNone {
      let before = withheld.isNone ? before : withheld.content.before
      exclusive = .some(ExclusiveAccess(owner: thread, before: before))
      withheld = .none
    } else {
      exclusive.content.depth += 1
    }
  }

  /// Gives the cancellations to be performed now: none in exclusive access, at whose end they are.
  mutating func behindAccess(
    _ cancellations: [@Sendable () -> Void]
  ) -> [@Sendable () -> Void] {
    if exclusive.isNone { return cancellations }
    if !cancellations.isEmpty { exclusive.content.keep { $0.actions += cancellations } }
    return []
  }

  enum End: Sendable {
    /// The values of the optimistic layers have to be computed first.
    case render
    /// The others may go on, if this was the end; what is over is to be released without the lock.
    case open(Boxed<ExclusiveAccess<State>>, Boxed<Overlay>)
  }

  /// Tells the change, and what was kept.
  mutating func tellKept(_ access: ExclusiveAccess<State>) {
    if access.hasChanged { tellState(state, also: access.kept.content.handlers) }
    tell(access.kept.content.entries)
  }

  /// Ends the access, and tells the change, if there was one.
  mutating func endExclusiveAccess() -> End {
    guard exclusive.content.depth == 1 else {
      exclusive.content.depth -= 1
      return .open(.none, .none)
    }
    if needsRendering { return .render }
    let access = exclusive
    exclusive = .none
    tellWithheld()
    if access.content.kept.isNone {
      if access.content.hasChanged { tellState(state) }
    } else {
      tellKept(access.content)
    }
    var over = Boxed<Overlay>.none
    if !overlay.isNone, overlay.content.layers.isEmpty { swap(&over, &overlay) }
    return .open(access, over)
  }
}
