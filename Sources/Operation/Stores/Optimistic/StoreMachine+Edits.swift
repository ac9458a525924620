/// The transitions of optimistic edits.
///
/// The state of the machine is the confirmed one. While there are layers, a transition withholds its
/// notifications. If the displayed value has to be computed then, the thread has exclusive access until
/// that is done: edits are the user's code, and are called without the lock.
extension StoreMachine {
  typealias Edits = OptimisticView<State>

  /// The state with the optimistic edits.
  var displayed: State { edits.displaying(state) }

  /// Whether an edit is displayed whose work is in flight.
  var isOptimistic: Bool { edits.isOptimistic }

  /// The value and the number of transitions, if there are no edits and no exclusive access.
  var valueWithoutEdits: (value: State.StateValue, transitions: Int)? {
    isPlain ? (state.currentValue, edits.transitionCount) : nil
  }

  /// Adds an edit. The state remains as it is until the values have been computed.
  ///
  /// - Parameter first: What the edit, as the first one, makes of a value that was read after a
  ///   number of transitions. If there was no other transition since, this is displayed without a
  ///   computation.
  mutating func beginEdit(
    _ id: OperationTaskID, _ edit: @escaping Edits.Layers.Edit, show: @escaping Edits.Show,
    displaying first: (value: State.StateValue, transitions: Int)? = nil
  ) {
    let computed = first.flatMap { $0.transitions == edits.transitionCount ? $0.value : nil }
    edits.append(id, edit, over: state.currentValue, displaying: computed, show: show)
    if computed == nil { access?.noteChange() } else { notifyChange() }
  }

  /// Ends an edit whose work has ended. After a reset it changes nothing.
  mutating func endEdit(_ id: OperationTaskID, isSuccess: Bool) {
    if edits.isPlain { return }
    if !isSuccess {
      if let removed = edits.edited?.layers.remove(id) { release(removed) }
    } else if isDisplayedConfirmed(by: id) {
      return confirmDisplayed()
    } else {
      edits.settle(id)
    }
    if edits.needsComputation { access?.noteChange() }
  }

  /// Returns whether the displayed value is confirmed without a computation when an edit is settled: no other
  /// edit is pending, and every result that may come contains this one.
  private func isDisplayedConfirmed(by id: OperationTaskID) -> Bool {
    access == nil && oldestSettlement == .max && edits.layers?.isDisplayedConfirmed(by: id) == true
  }

  /// Makes the displayed value the confirmed one, without layers.
  private mutating func confirmDisplayed() {
    let view = edits
    guard let layers = edits.settleAll() else { return }
    committed.replaceValue {
      view.show(
        layers.displayed, updates: layers.displayedCount, as: layers.displayedStamp, in: &$0)
    }
    release(layers)
    notifyChange()
  }

  mutating func dropEdits() { if let removed = edits.removeAll() { release(removed) } }
}

// MARK: - Results of runs below edits

extension StoreMachine {
  /// Takes a value of the server, from a run that began when some edits were settled.
  ///
  /// A part that contains all settled edits is added to a value that contains them, too.
  mutating func land(
    after settlements: Int, part: (any PartialResult)? = nil,
    _ update: (inout State) -> Void
  ) {
    if edits.isPlain { return committed.change(update) }
    let base = edits.layers?.base
    let isPart = base.map { part?.isPart(of: $0) == true } == true
    // A part without a place in the base value is added to what an edit has made.
    let isPlaced = !isPart || base.map { part?.fits(in: $0) == true } == true
    let settlements = isPlaced ? settlements : edits.settlementCount
    // A part of nothing contains no edit, and brings none into the base value.
    let isNothing = isPart && part?.isEmpty == true
    let hasAllEdits = !isNothing && edits.layers?.hasSettled(after: settlements) == false
    // An edit may have removed the page that it would replace.
    let isJoined = isPart && hasAllEdits && part?.isPart(of: state.currentValue) == true
    let view = edits
    committed.change { state in
      if !isJoined { state = view.withBaseValue(state) }
      update(&state)
    }
    release(base)
    let value = state.currentValue
    edits.edited?.layers.land(value, after: settlements, isWhole: !isPart || hasAllEdits)
  }

  /// The number of edits that were settled when the oldest run began that may still return a value, or
  /// restore one; -1 if none is certain.
  private var oldestSettlement: Int {
    if !committed.yields.isEmpty { return -1 }
    return runs.records.reduce(.max) { $1.isStarted ? min($0, $1.payload.settlements) : $0 }
  }

  /// The greatest number of settled edits that a further page contains whose request was called and that lacks a
  /// later edit; -1 if there is none.
  private var partSettlement: Int {
    guard State.kind == .pages, let layers = edits.layers else { return -1 }
    return runs.records.reduce(-1) {
      let settlements = $1.payload.settlements
      // Where the kind was not noted, there were no edits that the page can contain.
      let isPart = $1.payload.begunKind != nil && !Self.isAboutWhole($1)
      return isPart && layers.hasSettled(after: settlements) ? max($0, settlements) : $0
    }
  }
}

// MARK: - Computing the displayed value

extension StoreMachine {
  /// Stores what is displayed, and withholds notifications from now on. In exclusive access the
  /// notifications are withheld until its end.
  mutating func withhold() {
    let snapshot = snapshot
    if access == nil {
      withheld = withheld ?? WithheldNotifications(snapshot: snapshot)
    } else if access?.snapshot == nil {
      access?.snapshot = snapshot
    }
  }

  /// Ends a transition that withheld notifications. Returns whether the values have to be computed;
  /// then the thread has exclusive access.
  mutating func beginComputing(on thread: ThreadID) -> Bool {
    guard access == nil else { return false }
    guard edits.needsComputation else {
      notifyWithheld()
      return false
    }
    // What the edits change meanwhile is notified with what was withheld.
    var access = ExclusiveAccess<State>(owner: thread, snapshot: withheld?.snapshot)
    if withheld == nil { access.noteChange() }
    self.access = access
    return true
  }

  /// Returns the computation for the owner of the store; `nil` if there are no layers any more.
  mutating func beginComputation() -> Edits.Layers.Computation? {
    guard let layers = edits.layers else { return nil }
    access?.isComputing = true
    return layers.computation(oldest: oldestSettlement, placed: partSettlement)
  }

  /// Takes the results of a computation, unless the edits have changed the store since. What the
  /// results replace is in the computation afterwards.
  @discardableResult
  mutating func finishComputation(_ computation: inout Edits.Layers.Computation) -> Bool {
    guard let settled = edits.edited?.layers.finish(&computation) else { return false }
    guard let confirmed = computation.confirmed, let layers = edits.layers else { return true }
    let view = edits
    // Without pending edits it is displayed already.
    let stamp = layers.displayedCount == 0 ? layers.displayedStamp : .next()
    committed.replaceValue {
      view.show(confirmed, updates: settled, as: settled == 0 ? nil : stamp, in: &$0)
    }
    // What a cancelled run would restore contains the edits, too, once they are settled.
    if settled != 0 {
      committed.changeYields {
        view.show($0.currentValue, updates: settled, as: .next(), in: &$0)
      }
    }
    withheld?.confirmedEdits = settled
    return true
  }

  /// Keeps the values as they are, so that exclusive access can end after the last try of a computation.
  mutating func giveUpComputation() { edits.edited?.layers.giveUpComputation() }

  /// Notifies what was withheld, with the values that have been computed since.
  mutating func notifyWithheld() {
    guard let withheld else { return }
    self.withheld = nil
    notify(withheld.notifications, settled: withheld.confirmedEdits)
    release(withheld)
  }
}
