/// The time in which one thread has a store to itself.
///
/// The owner changes the state in place and sees it; others see the committed state, and their
/// writes wait at the gate.
@usableFromInline struct ExclusiveAccess<State: OperationState>: Sendable {
  @usableFromInline let owner: ThreadID
  @usableFromInline let committed: State
  @usableFromInline let confirmedValue: State.StateValue
  @usableFromInline var depth = 1
  @usableFromInline var hasChanged = false
  @usableFromInline var gates: [Gate] = []

  @inlinable init(owner: ThreadID, committed: State, confirmedValue: State.StateValue) {
    self.owner = owner
    self.committed = committed
    self.confirmedValue = confirmedValue
  }
}

extension StoreMachine {
  /// Gives a gate to wait at, if another thread has the store to itself.
  @usableFromInline mutating func gate(for thread: ThreadID) -> Gate? {
    guard !boxedExclusive.isNone, let owner = exclusive?.owner, owner != thread else { return nil }
    let gate = Gate()
    exclusive?.gates.append(gate)
    return gate
  }

  mutating func beginExclusiveAccess(_ thread: ThreadID) {
    if exclusive == nil {
      exclusive = ExclusiveAccess(
        owner: thread, committed: shown, confirmedValue: state.currentValue)
    } else {
      exclusive?.depth += 1
    }
  }

  @usableFromInline enum End: Sendable {
    /// The values of the optimistic layers have to be computed first.
    case render(Layers.Plan)
    /// The others may go on.
    case open([Gate])
  }

  /// Ends the access, and tells the change, if there was one.
  @inlinable mutating func endExclusiveAccess() -> End {
    exclusive?.depth -= 1
    guard let access = exclusive, access.depth == 0 else { return .open([]) }
    if let layers = overlay?.layers, layers.needsRendering {
      exclusive?.depth = 1
      return .render(layers.plan(oldest: oldestSettlement))
    }
    exclusive = nil
    release(access)
    tellWithheld()
    if access.hasChanged { tellState(state) }
    return .open(access.gates)
  }
}
