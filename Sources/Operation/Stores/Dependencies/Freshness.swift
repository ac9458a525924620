/// Whether the value that is there is known to be out of date.
struct Freshness: Sendable {
  var isInvalidated = false
  /// How many invalidations there have been.
  var generation = 0
  /// How many there had been when a run of the whole was started last.
  var answered = 0
  /// Whether a run of another request has read the value while it was out of date, and is to be told
  /// when a new one has come.
  var isReadOutdated = false

  mutating func invalidate() {
    isInvalidated = true
    generation += 1
  }

  /// A run of the whole is started; tells whether it is the first since the last invalidation.
  mutating func answer() -> Bool {
    if answered == generation { return false }
    answered = generation
    return true
  }

  /// A value came that was asked for when there had been `generation` invalidations.
  mutating func refresh(since generation: Int) {
    let isOld = generation < self.generation
    // Behind what has answered the last invalidation, it takes another answer.
    if isOld, !isInvalidated { answered = generation }
    isInvalidated = isOld
  }

  mutating func reset() {
    isInvalidated = false
  }
}

extension StoreMachine {
  /// Gives the value for a run of another request, and notes if it is out of date.
  mutating func readForRun() -> State.StateValue {
    if isVisiblyInvalidated { freshness.isReadOutdated = true }
    return visibleState.currentValue
  }

  /// Tells once that there is a new value where an outdated one was read; what is written in
  /// exclusive access is there at its end.
  mutating func takeReadOutdated() -> Bool {
    guard freshness.isReadOutdated, !freshness.isInvalidated, exclusive.isNone,
      state.valueLastUpdatedAt != nil
    else { return false }
    freshness.isReadOutdated = false
    return true
  }
}
