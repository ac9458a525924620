import ReactiveStreams

/// How optimistic edits lie over the state.
///
/// The state of the machine is the confirmed one. While there are layers, a transition keeps back
/// what it has to tell, and where the values have to be computed anew, the thread has the store to
/// itself until that is done: edits are the user's, and are called without the lock.
extension StoreMachine {
  typealias Layers = OptimisticLayers<State.StateValue>
  typealias Show = @Sendable (inout State, State.StateValue, Int) -> Void

  /// The layers, and how the state takes a value.
  struct Overlay: Sendable {
    var layers: Layers
    let show: Show

    /// Puts what is shown into a confirmed state, which lacks so many confirmed edits.
    func showAll(in state: inout State, settled: Int = 0) {
      show(&state, layers.shown, settled + layers.shownCount)
    }

    /// Puts what the server gave into a state.
    func showFloor(in state: inout State) {
      show(&state, layers.floor, 0)
    }
  }

  /// What transitions have told while the values were not computed.
  struct Withheld: Sendable {
    let before: Boxed<StateBefore<State>>
    var entries: [Entry] = []
    /// How many edits were confirmed that the values have which have been computed since.
    var settled: Int?

    init(before: Boxed<StateBefore<State>>) { self.before = before }

    enum Entry: Sendable {
      case state(State, also: [Subscriber<Event>])
      case event(Event, also: [Subscriber<Event>])
    }
  }

  /// The state with the optimistic edits.
  var shown: State { showing(state) }

  func showing(_ confirmed: State) -> State {
    if overlay.isNone { return confirmed }
    var shown = confirmed
    overlay.content.showAll(in: &shown)
    return shown
  }

  /// Lays an edit over the state, which stays as it is until the values have been computed.
  mutating func beginEdit(
    _ id: OperationTaskID, _ edit: @escaping Layers.Edit, show: @escaping Show
  ) {
    if overlay.isNone {
      overlay = .some(Overlay(layers: Layers(floor: state.currentValue), show: show))
    }
    overlay.content.layers.append(id, edit)
    if !exclusive.isNone { exclusive.content.hasChanged = true }
  }

  /// Lays the first edit over the state, and tells what it has made of a value that was read when
  /// there had been so many transitions; does nothing if there was one since.
  mutating func beginEdit(
    _ id: OperationTaskID, _ edit: @escaping Layers.Edit, show: @escaping Show,
    made shown: State.StateValue, since transitions: Int
  ) -> Bool {
    guard transitions == transitionCount else { return false }
    overlay = .some(
      Overlay(layers: Layers(floor: state.currentValue, shown: shown, id, edit), show: show))
    tellState(state)
    return true
  }

  /// What the end of an edit has replaced, to be released without the lock.
  typealias Replaced = (overlay: Boxed<Overlay>, value: State.StateValue)

  /// The work of an edit has ended; after a reset this changes nothing.
  mutating func endEdit(_ id: OperationTaskID, isSuccess: Bool) -> Replaced? {
    if overlay.isNone { return nil }
    if isSuccess {
      settlementCount += 1
      if isShownConfirmed(by: id) { return confirmShown() }
      overlay.content.layers.settle(id, as: settlementCount)
      lacksEdits = true
    } else if let removed = overlay.content.layers.remove(id) {
      release(removed)
    }
    if !exclusive.isNone, needsRendering { exclusive.content.hasChanged = true }
    return nil
  }

  /// Whether an edit was the last, and no run may give a value that lacks it: then what is shown is
  /// confirmed, and nothing has to be computed.
  func isShownConfirmed(by id: OperationTaskID) -> Bool {
    exclusive.isNone && oldestSettlement == .max && overlay.content.layers.isShownConfirmed(by: id)
  }

  /// What is shown is the value from now on, without layers.
  mutating func confirmShown() -> Replaced {
    var replaced = (overlay: Boxed<Overlay>.none, value: state.currentValue)
    swap(&replaced.overlay, &overlay)
    let layers = replaced.overlay.content.layers
    let show = replaced.overlay.content.show
    show(&state, layers.shown, layers.shownCount)
    tellState(state)
    return replaced
  }

  /// Lets the state take in a value that was asked for when so many edits had been settled. A part
  /// that has all of them joins a value that has them, too.
  mutating func land(
    after settlements: Int, part: @autoclosure () -> (any PartialResult)? = nil,
    _ update: (inout State, OperationContext) -> Void
  ) {
    if overlay.isNone {
      update(&state, context)
    } else {
      landUnderEdits(after: settlements, part: part(), update)
    }
  }

  mutating func landUnderEdits(
    after settlements: Int, part: (any PartialResult)?,
    _ update: (inout State, OperationContext) -> Void
  ) {
    let isPart = part?.isPart == true
    // What has no place in the floor stands beside what an edit has made.
    let isPlaced = !isPart || part?.fits(in: overlay.content.layers.floor) == true
    let settlements = isPlaced ? settlements : settlementCount
    let isJoined = isPart && overlay.content.layers.areSettled(since: settlements)
    if !isJoined { overlay.content.showFloor(in: &state) }
    update(&state, context)
    release(overlay.content.layers.floor)
    overlay.content.layers.land(
      state.currentValue, after: settlements, isWhole: !isPart || isJoined)
  }

  /// Whether an edit is shown whose work is under way.
  var isOptimistic: Bool {
    !overlay.isNone && overlay.content.layers.pendingCount > 0
  }

  /// The state as the server gave it, to go back to.
  var base: State {
    if overlay.isNone { return state }
    var base = state
    overlay.content.showFloor(in: &base)
    return base
  }

  mutating func dropLayers() {
    if !overlay.isNone { release(overlay) }
    overlay = .none
  }
}

extension StoreMachine {
  /// Whether the values have to be computed anew.
  var needsRendering: Bool {
    !overlay.isNone && overlay.content.layers.needsRendering
  }

  /// Keeps what there is, and keeps back what transitions tell from now on, unless somebody has the
  /// store to himself: then that is told at the end of his access.
  mutating func withhold() {
    if exclusive.isNone {
      if withheld.isNone { withheld = .some(Withheld(before: before)) }
    } else if exclusive.content.before.isNone {
      exclusive.content.before = before
    }
  }

  /// Ends a transition: tells what it kept back, or says that the values have to be computed before.
  /// Then the thread has the store to itself.
  mutating func beginRendering(_ thread: ThreadID) -> Bool {
    guard exclusive.isNone else { return false }
    guard needsRendering else {
      tellWithheld()
      return false
    }
    // What the edits change meanwhile is told with what was kept back, if that is anything.
    var access = ExclusiveAccess<State>(owner: thread, before: .none)
    if withheld.isNone { access.hasChanged = true } else { access.before = withheld.content.before }
    exclusive = .some(access)
    return true
  }

  /// Begins to compute the values, for the owner of the store; nothing if the layers are gone.
  mutating func beginComputing() -> Layers.Rendering? {
    if overlay.isNone { return nil }
    if !exclusive.isNone { exclusive.content.isComputing = true }
    return overlay.content.layers.rendering(oldest: oldestSettlement, part: partSettlement)
  }

  /// How many edits had been settled when the oldest run began that may still give a value, or give
  /// one back.
  var oldestSettlement: Int {
    yields.isEmpty ? settlementOfAllRuns : -1
  }

  /// How many settled edits every value has that may come, where a run for a further page is under
  /// way; what has been yielded does not count.
  var partSettlement: Int {
    if State.kind != .pages { return .max }
    let hasPart = runs.records.contains { $0.isStarted && !Self.isAboutWhole($0) }
    return hasPart ? settlementOfAllRuns : .max
  }

  /// How many edits had been settled when the oldest run began.
  var settlementOfAllRuns: Int {
    // No key paths: those of a generic type are made anew each time that they are named.
    runs.records.reduce(.max) { $1.isStarted ? min($0, $1.payload.settlements) : $0 }
  }

  /// Takes in what was computed, and ends the access, unless the edits have changed the store
  /// meanwhile. What gives way is in the rendering afterwards.
  mutating func finishRendering(_ rendering: inout Layers.Rendering, isLast: Bool) -> End {
    if !overlay.isNone, !takeIn(&rendering), isLast { overlay.content.layers.giveUpRendering() }
    return endExclusiveAccess()
  }

  /// Takes in what was computed, unless the edits have changed the store meanwhile.
  mutating func takeIn(_ rendering: inout Layers.Rendering) -> Bool {
    guard !overlay.isNone, let settled = overlay.content.layers.finish(&rendering) else {
      return false
    }
    let replaced = state.currentValue
    overlay.content.show(&state, rendering.confirmed, settled)
    // What a run that has yielded would take back has the edits, too, when that is done.
    if settled != 0 {
      for index in yields.indices {
        overlay.content.show(&yields[index].before, yields[index].before.currentValue, settled)
      }
    }
    rendering.confirmed = replaced
    if !withheld.isNone { withheld.content.settled = settled }
    return true
  }

  /// Tells what was kept back, with the values that have been computed since.
  mutating func tellWithheld() {
    if withheld.isNone { return }
    let kept = withheld
    withheld = .none
    tell(kept.content.entries, settled: kept.content.settled ?? 0)
    release(kept)
  }

  /// Tells what was kept back; its states lack so many confirmed edits.
  mutating func tell(_ entries: [Withheld.Entry], settled: Int = 0) {
    for entry in entries {
      switch entry {
      case .state(let state, let handlers): tellState(state, settled: settled, also: handlers)
      case .event(let event, let handlers): deliveries.append(event, also: handlers)
      }
    }
  }

  /// Tells a confirmed state, which lacks so many confirmed edits, with all the optimistic edits, if
  /// anybody listens.
  mutating func tellState(
    _ confirmed: State, settled: Int = 0, also handlers: [Subscriber<Event>] = []
  ) {
    guard deliveries.subscriberCount > 0 || !handlers.isEmpty else { return }
    var state = confirmed
    if !overlay.isNone { overlay.content.showAll(in: &state, settled: settled) }
    deliveries.append(.stateChanged(state), also: handlers)
  }

  /// Tells something that is no change of the state: for exclusive access at its end, behind that.
  mutating func tell(
    _ event: @autoclosure () -> Event, also handlers: [Subscriber<Event>]
  ) {
    if !hasNoAudience || !handlers.isEmpty { tellEvent(event(), also: handlers) }
  }

  mutating func tellEvent(_ event: Event, also handlers: [Subscriber<Event>]) {
    if !withheld.isNone {
      withheld.content.entries.append(.event(event, also: handlers))
    } else if !exclusive.isNone {
      exclusive.content.keep { $0.entries.append(.event(event, also: handlers)) }
    } else {
      deliveries.append(event, also: handlers)
    }
  }
}
