import FoundationEssentials

/// The invalidations of a store, and the runs that answer them.
struct Freshness: Sendable {
  private(set) var isInvalidated = false
  private(set) var invalidationCount = 0
  /// The number of invalidations when a run of the whole value was started last.
  private(set) var answeredCount = 0
  /// The date of the initial value; `nil` if the state began without one.
  var initialDate: Date?
  /// Whether the run of another request read the value while it was stale, so that it has to be
  /// notified of a new one.
  var wasReadStale = false
  /// Whether runs of other stores may wait for any run of this one.
  fileprivate(set) var hasFollowers = false
  /// What the follow-up of the run in flight waits for.
  fileprivate(set) var followUpDependencies: [TaskDependency] = []

  var isAnswered: Bool { answeredCount == invalidationCount }

  mutating func invalidate() {
    isInvalidated = true
    invalidationCount += 1
  }

  /// A run of the whole value is started. Returns whether it is the first since the last invalidation.
  mutating func answer() -> Bool {
    if isAnswered { return false }
    answeredCount = invalidationCount
    return true
  }

  /// The run that answered the last invalidation was cancelled.
  mutating func withdrawAnswer() { answeredCount -= 1 }

  /// A value came from a run that was started after some invalidations.
  mutating func refresh(since count: Int) {
    let isOld = count < invalidationCount
    // An older run has replaced the value of the run that answered the last invalidation, so another answer
    // is needed.
    if isOld, !isInvalidated { answeredCount = count }
    isInvalidated = isOld
  }

  /// The value that was fresh until a run of before the last invalidation yielded is displayed again.
  mutating func restore() { (isInvalidated, answeredCount) = (false, invalidationCount) }

  mutating func reset() { isInvalidated = false }

  /// The saved value was invalidated before it was restored. The count stays, so that any run of the whole value
  /// makes it fresh.
  mutating func restoreInvalidated() { isInvalidated = true }

  mutating func takeFollowUp() -> [TaskDependency] { exchange(&followUpDependencies, with: []) }
}

extension StoreMachine {
  /// Returns the value for the run of another request, and notes if it is stale.
  mutating func readForRun() -> State.StateValue {
    if isVisiblyInvalidated { freshness.wasReadStale = true }
    return confirmedValue
  }

  /// Returns `true` once, when there is a new value after a stale one was read. What is written in exclusive
  /// access counts at its end.
  mutating func takeReadStale() -> Bool {
    guard freshness.wasReadStale, !freshness.isInvalidated, hasNoOwner,
      state.valueLastUpdatedAt != nil
    else { return false }
    freshness.wasReadStale = false
    return true
  }

  /// Marks the value as stale. Returns what else the invalidation has to do.
  ///
  /// - Parameter isRead: Whether other requests may depend on this one.
  mutating func mark(isRead: Bool) -> InvalidationOutcome {
    freshness.invalidate()
    if let access, access.owner == .current { return .inAccess }
    return isRead || deliveries.subscriberCount > 0 ? .marked : .done
  }

  /// Whether the store is observed, its value is invalidated, and no run is in flight. A run that is
  /// only scheduled does not count: its handle may be released without starting it.
  var needsRerun: Bool {
    freshness.isInvalidated && deliveries.subscriberCount > 0
      && !runs.records.contains { $0.isStarted }
  }

  /// Whether a run has to follow one that has ended: none of the whole value was started since the last
  /// invalidation.
  var mustFollow: Bool { needsRerun && !freshness.isAnswered }

  /// An invalidation finds a run in flight. Notes what the run that follows it waits for, and returns
  /// the run that has to end before the invalidation is answered.
  mutating func planRun(after others: [TaskDependency]) -> (task: Task, invalidationCount: Int)? {
    guard deliveries.subscriberCount > 0, let task = taskToAnswer(freshness.invalidationCount)
    else { return nil }
    freshness.hasFollowers = true
    if !freshness.isAnswered {
      release(freshness.followUpDependencies)
      // A wait for a later answer of a run's store is one for the earlier ones as well.
      freshness.followUpDependencies.removeAll { old in others.contains { $0.node === old.node } }
      freshness.followUpDependencies += others
    }
    return (task, freshness.invalidationCount)
  }

  /// The run that answers an invalidation, or the one that it follows; the oldest of several.
  func taskToAnswer(_ invalidationCount: Int) -> Task? {
    guard freshness.isInvalidated else { return nil }
    let isStarted = freshness.answeredCount >= invalidationCount
    return runs.records.first { record in
      record.isStarted && (!isStarted || record.payload.invalidationCount >= invalidationCount)
    }?.task
  }

  /// Releases what a run would have waited for, if none follows any more.
  mutating func dropFollowUp() {
    if freshness.followUpDependencies.isEmpty || mustFollow { return }
    if runs.records.contains(where: { $0.isStarted }) { return }
    releaseFollowUp()
  }

  mutating func releaseFollowUp() {
    let dependencies = freshness.takeFollowUp()
    if !dependencies.isEmpty { release(dependencies) }
  }
}
