import Dispatch
import FoundationEssentials
import ReactiveStreams

/// The machine of a store: its state, its runs, its freshness, its subscribers, and exclusive access.
///
/// Every transition changes the state, through ``CommittedState``, queues notifications, and returns what the
/// shell has to do without the lock.
struct StoreMachine<State: OperationState>: DeliveryMachine {
  typealias Event = OperationEvent<State>
  typealias Handlers = [Subscriber<Event>]
  typealias Output = Result<State.OperationValue, State.Failure>
  typealias Task = OperationTask<State.OperationValue, State.Failure>
  typealias Box = OperationTaskConfiguration.Box
  typealias Core = TaskCore<State.OperationValue, State.Failure>
  typealias Runs = RunTable<State.OperationValue, State.Failure, RunPayload>
  typealias Lease = RunLease

  /// What a store knows about a run, beyond its leases.
  struct RunPayload: Sendable {
    var handlers: Handlers
    /// The number of restarts. What an earlier launch yields and returns is dropped.
    var launch = 0
    /// The retry that the run waits for. The failure is released with it, and not under the lock.
    @Indirect var retry: OperationRetry<State.Failure>? = nil
    /// The configuration that the task in the state was made with, if the run was started with another
    /// one. It is released with the run, and not under the lock.
    var scheduledBox: Box?
    /// The number of invalidations whose dependencies the run has waited for.
    var invalidationCount = 0
    /// Whether the run was the first of the whole value since the last invalidation.
    var isAnswer = false
    /// The pages that the request was called for. `nil` before the call, and where it need not be noted: there
    /// were no edits, and the pages are those that the run was scheduled for.
    var begunKind: PaginatedRunKind?
    /// The number of optimistic edits that were settled before the request was called.
    var settlements = 0
  }

  // First what an invalidation changes, so that it touches few cache lines of each store.
  var edits = OptimisticView<State>()
  var deliveries = DeliveryQueue<Event>()
  /// `nil` while no thread has exclusive access.
  @Indirect var access: ExclusiveAccess<State>?
  var freshness = Freshness()
  private(set) var contexts: StoreContexts
  var committed: CommittedState<State>
  var runs = Runs()
  /// Cancelled runs whose end is notified when their requests return, because their failure cannot be
  /// a cancellation.
  var cancelledRuns: [OperationTaskID: Runs.Record] = [:]
  /// `nil` while notifications are delivered at once.
  @Indirect var withheld: WithheldNotifications<State>?
  var observation = StoreObservation<State>()
  var activity = CountedActivity()

  init(
    state: State, context: OperationContext, baseContext: OperationContext = OperationContext(),
    wasReadStale: Bool = false, initialDate: Date? = nil
  ) {
    committed = CommittedState(state)
    contexts = StoreContexts(own: context, base: baseContext)
    freshness.wasReadStale = wasReadStale
    freshness.initialDate = initialDate
  }

  /// The confirmed state.
  var state: State { _read { yield committed.state } }

  /// Whether the client has to retain the store.
  var isUsed: Bool { deliveries.subscriberCount > 0 || !runs.isEmpty || isOptimistic }

  /// The context that runs begin with.
  var context: OperationContext { contexts.own }

  mutating func replaceContext(with new: OperationContext) {
    release(contexts)
    contexts.replace(with: new)
  }

  /// Whether no thread has exclusive access.
  var hasNoOwner: Bool { _access.isNil }

  /// Whether every thread reads the confirmed state: there are neither edits nor exclusive access.
  var isPlain: Bool { _access.isNil && edits.isPlain }

  /// The number of transitions; `nil` while not every thread reads the same state.
  var version: Int? { isPlain ? edits.transitionCount : nil }

  /// Keeps a value until the lock is released, because its deinitialiser may be the user's code.
  mutating func release(_ value: some Sendable) { committed.release(value) }
}

// MARK: - Entry and exit

extension StoreMachine {
  /// The kinds of transitions.
  enum TransitionKind {
    /// Changes the state, the runs or the subscribers.
    case change
    /// Changes an optimistic edit, and not the state itself.
    case edit
    /// Computes the displayed value for the owner of exclusive access, or ends the access.
    case access
    /// Changes neither the state nor the use, and notifies no subscriber. It marks the value as stale, or reads
    /// the machine after the exclusive access of another thread.
    case silent
    /// Notes something that no reader sees. It does not wait for exclusive access.
    case note
  }

  /// Performs a transition for a thread that need not wait for exclusive access.
  ///
  /// - Parameter effects: What the transition leaves to do without the lock.
  mutating func perform<Output: Sendable>(
    _ kind: TransitionKind, on thread: ThreadID, use: borrowing StoreUse,
    leaving effects: inout StoreEffects<Event>, _ transition: (inout StoreMachine) -> Output
  ) -> Output {
    if kind == .change, !edits.isPlain { withhold() }
    let wasUsed = kind != .silent && isUsed
    let output = transition(&self)
    edits.noteTransition()
    if kind == .silent { return output }
    if kind == .change || kind == .edit {
      let lacksEdits = edits.takeMissingEdits()
      effects.mustComputeInside =
        lacksEdits && access?.isComputing == false && edits.needsComputation
      if kind == .edit || !_withheld.isNil { effects.mustCompute = beginComputing(on: thread) }
    }
    if isUsed != wasUsed { effects.use = use.change(isUsed: !wasUsed) }
    effects.mayHaveChanged = kind != .note
    effects.activity = activity.change(to: committed.state, isRetained: use.isRetained)
    effects.mustNotifyReaders = takeReadStale()
    effects.delivery = deliveries.beginDraining()
    return output
  }
}

/// What a transition leaves to do without the lock.
struct StoreEffects<Event: Sendable>: Sendable {
  /// The first delivery of the thread, if it drains the queue.
  var delivery = Delivery<Event>()
  /// Whether the displayed value has to be computed before the change is notified.
  var mustCompute = false
  /// Whether the owner of exclusive access has to compute the value at once, to continue with it.
  var mustComputeInside = false
  /// Whether requests that read a stale value are notified of the new one.
  var mustNotifyReaders = false
  /// Whether the confirmed value may be another one.
  var mayHaveChanged = false
  var use: StoreUse.Change?
  var activity: CountedActivity.Change?
}

// MARK: - Reading

extension StoreMachine {
  /// The state that a thread may read: the owner of exclusive access reads its changes, without
  /// optimistic edits, because those are on top of what it writes.
  func visibleState(to thread: ThreadID) -> State {
    access?.owner == thread ? state : notifiedState
  }

  /// The state as of the last notification.
  var notifiedState: State { isPlain ? state : access?.snapshot?.displayed ?? displayed }

  /// What is displayed now, for other threads to read.
  var snapshot: StateSnapshot<State> {
    StateSnapshot(
      displayed: displayed, confirmedValue: state.currentValue, valueDate: valueDate,
      isInvalidated: freshness.isInvalidated, resultCount: committed.resultCount,
      confirmedVersion: confirmedVersion)
  }

  /// What the calling thread reads, if another one has exclusive access.
  private var snapshotForCaller: StateSnapshot<State>? {
    guard !isPlain, let access, access.owner != .current else { return nil }
    return access.snapshot
  }

  /// The date of the value, or of the initial one; `nil` if there is none. Edits leave it as it is.
  private var valueDate: Date? {
    // Without a date it is the initial value, perhaps with confirmed edits.
    state.hasValue ? state.valueLastUpdatedAt ?? freshness.initialDate : nil
  }

  /// The date of the value that the calling thread may read.
  var visibleDate: Date? {
    isPlain ? valueDate : snapshotForCaller.map { $0.valueDate } ?? valueDate
  }

  /// Whether the last run failed, in what the calling thread may read.
  private var hasVisibleFailure: Bool { (snapshotForCaller?.displayed ?? state).error != nil }

  /// Whether there is a value that was not invalidated.
  var hasValidValue: Bool { !isVisiblyInvalidated && visibleDate != nil }

  /// Whether the value is missing, invalidated, or out of date by a rule; `nil` if that depends on the
  /// clock or the user's predicate, which are called without the lock.
  func isStale(by rule: Staleness) -> Bool? {
    guard hasValidValue else { return true }
    switch rule {
    case .always: return true
    case .never: return false
    case .after, .when: return hasVisibleFailure ? true : nil
    }
  }

  /// Whether the value serves a caller that asks for no new one; `nil` as for ``isStale(by:)``.
  func isUsable(by rule: Staleness) -> Bool? {
    guard case .always = rule else { return isStale(by: rule).map { !$0 } }
    return hasValidValue && !hasVisibleFailure
  }

  var isVisiblyInvalidated: Bool {
    isPlain ? freshness.isInvalidated : snapshotForCaller?.isInvalidated ?? freshness.isInvalidated
  }

  var visibleResultCount: Int { snapshotForCaller?.resultCount ?? committed.resultCount }

  /// The version of the value without pending edits. It changes with each result, each yield, each yield that
  /// is undone, and each edit that is settled.
  var confirmedVersion: Int {
    snapshotForCaller?.confirmedVersion ?? committed.changeCount &+ edits.settlementCount
  }

  /// The value without pending edits.
  var confirmedValue: State.StateValue { snapshotForCaller?.confirmedValue ?? state.currentValue }
}

// MARK: - Notifying

extension StoreMachine {
  /// Notifies a change of the state. In exclusive access it is notified once, at the end.
  mutating func notifyChange(also handlers: Handlers = []) {
    // Most stores have no subscribers, so their states are not copied.
    let isObserved = deliveries.subscriberCount > 0 || !handlers.isEmpty
    if !_withheld.isNil {
      guard isObserved else { return }
      let state = state
      withheld?.notifications.append((.stateChanged(state), handlers))
    } else if !_access.isNil {
      access?.noteChange(for: handlers)
    } else if isObserved {
      let replaced = deliveries.append(
        state: .stateChanged(edits.isPlain ? state : edits.displaying(state)), also: handlers)
      if let replaced { release(replaced) }
    }
  }

  /// Notifies an event that is no change of the state. In exclusive access it follows the change.
  mutating func notify(_ event: @autoclosure () -> Event, also handlers: Handlers) {
    if !_withheld.isNil {
      withheld?.notifications.append((event(), handlers))
    } else if !_access.isNil {
      access?.events.append((event(), handlers))
    } else {
      deliveries.append(event(), also: handlers)
    }
  }

  /// Notifies what was withheld. Its states lack some settled edits.
  mutating func notify(_ notifications: [ExclusiveAccess<State>.Notification], settled: Int = 0) {
    for (event, handlers) in notifications {
      if case .stateChanged(let state) = event {
        let replaced = deliveries.append(
          state: .stateChanged(edits.displaying(state, settled: settled)), also: handlers)
        if let replaced { release(replaced) }
      } else {
        deliveries.append(event, also: handlers)
      }
    }
  }
}

// MARK: - Exclusive access

extension StoreMachine {
  /// Returns a gate to wait at, if another thread has exclusive access.
  mutating func gate(for thread: ThreadID) -> Gate? {
    guard !_access.isNil, let access, access.owner != thread else { return nil }
    let gate = Gate(value: 0)
    self.access?.gates.append(gate)
    return gate
  }

  mutating func beginExclusiveAccess(_ thread: ThreadID) {
    if access == nil {
      access = ExclusiveAccess(owner: thread, snapshot: withheld?.snapshot ?? snapshot)
      withheld = nil
      // The owner reads the value without the edits. Whoever has used that value is notified at the end, also
      // if nothing was written.
      if isOptimistic { access?.noteChange() }
    } else {
      access?.depth += 1
    }
  }

  /// Has actions performed at the end of exclusive access. Returns `false` if the thread has none.
  mutating func atEndOfAccess(
    of thread: ThreadID, _ actions: [@Sendable () -> Void]
  ) -> Bool {
    guard access?.owner == thread else { return false }
    access?.actions += actions
    return true
  }

  enum AccessEnd: Sendable {
    /// The displayed value has to be computed first.
    case mustCompute
    /// The access has ended. Its gates are opened, and its actions performed, without the lock. `nil` is
    /// the end of an inner one, after which the access continues.
    case ended(ExclusiveAccess<State>?)
  }

  mutating func endExclusiveAccess() -> AccessEnd {
    guard let access else { preconditionFailure("exclusive access was ended twice") }
    guard access.depth == 1 else {
      self.access?.depth -= 1
      return .ended(nil)
    }
    if edits.needsComputation { return .mustCompute }
    self.access = nil
    notifyWithheld()
    notify(access.notifications(with: state))
    if edits.layers?.isEmpty == true { dropEdits() }
    return .ended(access)
  }
}

// MARK: - Writing

extension StoreMachine {
  /// Sets a result, in a context over that of the store. A cancellation is no result.
  mutating func write(
    _ result: Result<State.StateValue, State.Failure>, _ context: OperationContext?
  ) {
    if result.isCancellation { return }
    let context = context?.over(self.context) ?? self.context
    switch result {
    case .success:
      committed.confirmYields()
      committed.noteResult()
      land(after: edits.settlementCount) { $0.update(with: result, using: context) }
      freshness.refresh(since: freshness.invalidationCount)
    case .failure:
      // What runs have yielded can still be undone, and then the failure is in the state.
      let update = { @Sendable [context = context.dated] (state: inout State) in
        state.update(with: result, using: context)
      }
      committed.confirmYields(of: nil, update)
      committed.change(update)
    }
    notifyChange()
  }

  /// Resets the state, and ends every run.
  mutating func reset(_ context: OperationContext) -> (effect: ResetEffect, cores: [Core]) {
    let ended = runs.ids.compactMap { remove($0) }
    committed.confirmYields()
    committed.noteResult()
    dropEdits()
    release(state)
    let effect = committed.change { state in
      let effect = state.reset(using: context)
      for record in ended { state.finishFetchTask(record.task) }
      return effect
    }
    freshness.reset()
    dropFollowUp()
    notifyChange(also: ended.flatMap { $0.payload.handlers })
    for record in ended { notifyCancelled(record) }
    release(ended)
    return (effect, ended.map { $0.core })
  }
}

extension Result {
  var isCancellation: Bool {
    if case .failure(let error) = self { error is CancellationError } else { false }
  }
}
