import ReactiveStreams

/// How optimistic edits lie over the state.
///
/// The state of the machine is the confirmed one. While there are layers, a transition keeps back
/// what it has to tell, and where the values have to be computed anew, the thread has the store to
/// itself until that is done: edits are the user's, and are called without the lock.
extension StoreMachine {
  @usableFromInline typealias Layers = OptimisticLayers<State.StateValue>
  @usableFromInline typealias Show = @Sendable (inout State, State.StateValue, Int) -> Void

  /// The layers, and how the state takes a value.
  @usableFromInline struct Overlay: Sendable {
    @usableFromInline var layers: Layers
    @usableFromInline let show: Show

    @inlinable init(layers: Layers, show: @escaping Show) {
      self.layers = layers
      self.show = show
    }
  }

  /// What transitions have told while the values were not computed.
  @usableFromInline struct Withheld: Sendable {
    @usableFromInline let before: State
    @usableFromInline let valueBefore: State.StateValue
    @usableFromInline var entries: [Entry] = []
    /// Whether the values are being computed: what the edits change meanwhile is told with the rest.
    @usableFromInline var isRendering = false
    /// Puts the value that has been computed since into a state.
    @usableFromInline var complete: (@Sendable (inout State) -> Void)?

    @inlinable init(before: State, valueBefore: State.StateValue) {
      self.before = before
      self.valueBefore = valueBefore
    }

    @usableFromInline enum Entry: Sendable {
      case state(State, also: [Subscriber<Event>])
      case event(Event, also: [Subscriber<Event>])
    }
  }

  /// The state with the optimistic edits.
  @inlinable var shown: State { showing(state) }

  @inlinable func showing(_ confirmed: State) -> State {
    guard let overlay else { return confirmed }
    var shown = confirmed
    overlay.show(&shown, overlay.layers.shown, overlay.layers.pendingCount)
    return shown
  }

  /// Lays an edit over the state.
  @inlinable mutating func beginEdit(
    _ id: OperationTaskID, _ edit: @escaping Layers.Edit, show: @escaping Show
  ) {
    withhold()
    if overlay == nil {
      overlay = Overlay(layers: Layers(floor: state.currentValue), show: show)
    }
    overlay?.layers.append(id, edit)
    commit()
  }

  /// The work of an edit has ended; after a reset this changes nothing.
  @inlinable mutating func endEdit(_ id: OperationTaskID, isSuccess: Bool) {
    guard overlay != nil else { return }
    if isSuccess {
      settlementCount += 1
      let settlement = settlementCount
      overlay?.layers.settle(id, as: settlement)
    } else if let removed = overlay?.layers.remove(id) {
      release(removed)
    }
    if overlay?.layers.needsRendering == true { commit() }
  }

  /// Lets the state take in a value that was asked for when so many edits had been settled. A part
  /// that has all of them joins a value that has them, too.
  @inlinable mutating func land(
    after settlements: Int, isWhole: Bool = true, _ update: (inout State) -> Void
  ) {
    if boxedOverlay.isNone { return update(&state) }
    prepareLanding(after: settlements, isWhole: isWhole)
    update(&state)
    finishLanding(after: settlements, isWhole: isWhole)
  }

  @inlinable mutating func prepareLanding(after settlements: Int, isWhole: Bool) {
    guard let overlay, isWhole || !overlay.layers.areSettled(since: settlements) else { return }
    overlay.show(&state, overlay.layers.floor, 0)
  }

  @inlinable mutating func finishLanding(after settlements: Int, isWhole: Bool) {
    guard let layers = overlay?.layers else { return }
    release(layers.floor)
    let isWhole = isWhole || layers.areSettled(since: settlements)
    let value = state.currentValue
    overlay?.layers.land(value, after: settlements, isWhole: isWhole)
  }

  /// Whether an edit is shown whose work is under way.
  @inlinable var isOptimistic: Bool { (overlay?.layers.pendingCount ?? 0) > 0 }

  /// The state as the server gave it, to go back to.
  var base: State {
    guard let overlay else { return state }
    var base = state
    overlay.show(&base, overlay.layers.floor, 0)
    return base
  }

  @inlinable mutating func dropLayers() {
    if let overlay { release(overlay) }
    overlay = nil
  }
}

extension StoreMachine {
  /// Keeps back what transitions tell from now on, unless somebody has the store to himself: then
  /// that is told at the end of his access.
  @inlinable mutating func withhold() {
    guard withheld == nil, exclusive == nil else { return }
    withheld = Withheld(before: shown, valueBefore: state.currentValue)
  }

  /// Ends a transition: tells what it kept back, or gives what has to be computed before. Then the
  /// thread has the store to itself.
  @inlinable mutating func beginRendering(_ thread: ThreadID) -> Layers.Plan? {
    guard let withheld, !withheld.isRendering else { return nil }
    guard exclusive == nil, let layers = overlay?.layers, layers.needsRendering else {
      tellWithheld()
      return nil
    }
    self.withheld?.isRendering = true
    exclusive = ExclusiveAccess(
      owner: thread, committed: withheld.before, confirmedValue: withheld.valueBefore)
    return layers.plan(oldest: oldestSettlement)
  }

  /// How many edits had been settled when the oldest run began that may still give a value, or give
  /// one back.
  @inlinable var oldestSettlement: Int {
    guard yielding.isEmpty else { return -1 }
    // No key paths: those of a generic type are made anew each time that they are named.
    return runs.records.elements.reduce(.max) {
      $1.isStarted ? min($0, $1.payload.settlements) : $0
    }
  }

  /// Takes in what was computed; gives a plan again if the edits have changed the store.
  @inlinable
  mutating func finishRendering(_ rendering: Layers.Rendering, isLast: Bool) -> Layers.Plan? {
    release(rendering)
    guard var layers = overlay?.layers, let show = overlay?.show else { return nil }
    release(layers)
    guard let settled = layers.finish(rendering) else {
      if !isLast { return layers.plan(oldest: oldestSettlement) }
      overlay?.layers.giveUpRendering()
      return nil
    }
    show(&state, rendering.confirmed, settled)
    withheld?.complete = { [layers] in show(&$0, layers.shown, settled + layers.pendingCount) }
    overlay?.layers = layers
    if layers.isEmpty { dropLayers() }
    return nil
  }

  /// Tells what was kept back, with the values that have been computed since.
  @inlinable mutating func tellWithheld() {
    guard let withheld else { return }
    self.withheld = nil
    for entry in withheld.entries {
      switch entry {
      case .state(var state, let handlers):
        if let complete = withheld.complete {
          complete(&state)
          deliveries.append(.stateChanged(state), also: handlers)
        } else {
          tellState(state, also: handlers)
        }
      case .event(let event, let handlers):
        deliveries.append(event, also: handlers)
      }
    }
    release(withheld)
  }

  /// Tells a state with the optimistic edits, if anybody listens.
  @inlinable mutating func tellState(_ confirmed: State, also handlers: [Subscriber<Event>] = []) {
    guard deliveries.subscriberCount > 0 || !handlers.isEmpty else { return }
    let event = Event.stateChanged(showing(confirmed))
    deliveries.append(event, also: handlers)
  }

  /// Tells something that is no change of the state.
  @inlinable mutating func tell(
    _ event: @autoclosure () -> Event, also handlers: [Subscriber<Event>]
  ) {
    if withheld != nil {
      withheld?.entries.append(.event(event(), also: handlers))
    } else {
      deliveries.append(event(), also: handlers)
    }
  }
}
