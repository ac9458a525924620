import FoundationEssentials
import ReactiveStreams

/// The machine of a store: its state, its runs, its freshness, who listens, and who has it to
/// himself.
///
/// The one place where the state of a store changes. Every transition changes the state, appends
/// what there is to tell to the delivery queue, or leaves it to its thread to tell, and returns what
/// the shell has to do. What it returns is performed without the lock.
struct StoreMachine<State: OperationState>: DeliveryMachine {
  typealias Event = OperationEvent<State>
  typealias Output = Result<State.OperationValue, State.Failure>
  typealias Task = OperationTask<State.OperationValue, State.Failure>
  typealias Box = OperationTaskConfiguration.Box
  typealias Core = TaskCore<State.OperationValue, State.Failure>
  typealias Runs = RunTable<State.OperationValue, State.Failure, RunPayload>

  /// What a store knows of a run, beyond who holds it.
  struct RunPayload: Sendable {
    var handlers: [Subscriber<Event>]
    /// What the task in the state was made with, if the run was started with something else.
    var given: Box?
    /// The number of invalidations that there had been when the run was started.
    var generation = 0
    /// Whether the run was the first of the whole since the last invalidation.
    var isAnswer = false
    /// How many optimistic edits had been confirmed when the run was started.
    var settlements = 0

    init(handlers: [Subscriber<Event>]) {
      self.handlers = handlers
    }
  }

  /// What a run has yielded last, and how to undo it.
  struct Yield: Sendable {
    let id: OperationTaskID
    /// What the server had given before.
    var before: State
    /// The optimistic edits that were part of it already.
    var idsInFloor: Set<OperationTaskID>

    init(of id: OperationTaskID, before: State, idsInFloor: Set<OperationTaskID>) {
      self.id = id
      self.before = before
      self.idsInFloor = idsInFloor
    }
  }

  var deliveries = DeliveryQueue<Event>()
  var context: OperationContext
  var state: State
  var runs = Runs()
  var freshness = Freshness()
  var exclusive = Boxed<ExclusiveAccess<State>>.none
  /// What wants runs while somebody observes.
  var triggers: OperationSubscription?
  /// Goes up whenever somebody begins to observe, or nobody does any more.
  var observation = 0
  /// What runs that are under way have yielded since the last result that stays, in its order; one
  /// for each run.
  var yields: [Yield] = []
  /// How often a value came that stays, or the state went back to its beginning.
  var landingCount = 0
  /// Cancelled runs whose end is still to be told, because their failure cannot say "cancelled".
  var unended: [OperationTaskID: Runs.Record] = [:]
  /// What has given way, to be released without the lock, as its deinitialisers are the user's.
  var released: [any Sendable]?
  /// The optimistic edits that lie over the state, if there are any.
  var overlay = Boxed<Overlay>.none
  /// What is told when the values of the layers have been computed.
  var withheld = Boxed<Withheld>.none
  /// Whether a transition has left the state without the confirmed edits.
  var lacksEdits = false
  /// How many optimistic edits have been confirmed.
  var settlementCount = 0

  /// Whether the state is what everybody sees, and no copy of it has to be made to read it.
  private(set) var isPlain = true

  /// How many transitions there have been: what is computed of the state without the lock is good as
  /// long as there was no other.
  var transitionCount = 0

  /// What the run comes after that follows one that is under way.
  var followsAfter: [TaskDependency] = []

  /// What the controllers of the store have been told.
  var control = Control.changing

  init(
    state: State, context: OperationContext, isCounted: Bool = false, isReadOutdated: Bool = false
  ) {
    self.state = state
    self.context = context
    self.isCounted = isCounted
    freshness.isReadOutdated = isReadOutdated
  }

  /// The state as a thread may see it: nobody but the owner sees into exclusive access, and the
  /// owner sees no optimistic edits, as what he writes lies under them.
  func visibleState(to thread: ThreadID) -> State {
    !exclusive.isNone && exclusive.content.owner == thread ? state : told
  }

  /// The state as everybody has been told it.
  var told: State {
    exclusive.isNone ? shown : exclusive.content.before.value?.shown ?? shown
  }

  /// What a new subscriber is told.
  var present: State { isPlain ? state : told }

  /// The state as the calling thread may see it.
  var visibleState: State { visibleState(to: .current) }

  /// When the value came that the calling thread may see; edits leave that as it is.
  var visibleDate: Date? {
    isPlain
      ? state.valueLastUpdatedAt
      : (exclusive.stateBefore()?.shown ?? state).valueLastUpdatedAt
  }

  /// Whether the value that the calling thread may see was invalidated.
  var isVisiblyInvalidated: Bool {
    isPlain
      ? freshness.isInvalidated : exclusive.stateBefore()?.isInvalidated ?? freshness.isInvalidated
  }

  /// How many values have landed that the calling thread may see.
  var visibleLandingCount: Int {
    isPlain ? landingCount : exclusive.stateBefore()?.landingCount ?? landingCount
  }

  /// Ends whatever was done under the lock.
  mutating func notePlain() { isPlain = exclusive.isNone && overlay.isNone }

  /// Whether a change of the state is told as it is: nobody has the store to himself, and no edit
  /// lies over it.
  var isDirect: Bool { exclusive.isNone && withheld.isNone && overlay.isNone }

  /// Tells a change of the state.
  mutating func commit(for handlers: [Subscriber<Event>] = []) {
    releaseDriven()
    if hasNoAudience, handlers.isEmpty { return }
    tellChange(for: handlers)
  }

  /// Whether nobody has to hear of what happens, now or at the end of something.
  var hasNoAudience: Bool {
    deliveries.subscriberCount == 0 && isDirect
  }

  mutating func tellChange(for handlers: [Subscriber<Event>]) {
    if !isDirect { return commitIndirectly(for: handlers) }
    deliveries.append(.stateChanged(state), also: handlers)
  }

  /// Keeps what the state has driven out until the lock is open.
  mutating func releaseDriven() {
    let driven = state.takeReleased()
    if !driven.isEmpty { release(all: driven) }
  }

  /// Tells a change of the state with the edits, and for exclusive access once at its end.
  mutating func commitIndirectly(for handlers: [Subscriber<Event>]) {
    if !withheld.isNone {
      guard deliveries.subscriberCount > 0 || !handlers.isEmpty else { return }
      withheld.content.entries.append(.state(state, also: handlers))
    } else if !exclusive.isNone {
      exclusive.content.noteChange(for: handlers)
    } else {
      tellState(state, also: handlers)
    }
  }

  /// Where the store is; changes are counted by the client as long as it is in the client.
  var phase = ActivityPhase.idle
  var isCounted: Bool

  /// Notes where a transition has brought the store; gives where it was, if that is elsewhere.
  mutating func phaseChange()
    -> (from: ActivityPhase, to: ActivityPhase)?
  {
    let new: ActivityPhase =
      if !isCounted {
        .idle
      } else if state.isLoading {
        state.isPaused ? .paused : .running
      } else {
        state.error == nil ? .idle : .failed
      }
    guard new != phase else { return nil }
    defer { phase = new }
    return (phase, new)
  }

  /// Whether the client has to keep the store.
  var isUsed: Bool {
    deliveries.subscriberCount > 0 || !runs.isEmpty || isOptimistic
  }

  mutating func replaceState(with new: State) {
    release(state)
    state = new
  }

  mutating func replaceContext(with new: OperationContext) {
    let settings = context.settings
    release(context)
    context = new
    context.settings = settings
  }
}

extension StoreMachine {
  /// What a transition leaves to do without the lock.
  struct Aftermath: Sendable {
    var use: StoreUse.Change?
    var phases: (from: ActivityPhase, to: ActivityPhase)?
    /// Whether the values of the layers have to be computed before the change is told.
    var mustRender = false
    /// Whether who has the store to himself has to compute them at once, to go on with them.
    var mustRenderInside = false
    /// Whether requests that have read the value while it was out of date are to be told of the new
    /// one.
    var mustTellReaders = false
    var released: [any Sendable]?

    init() {}

    /// Whether there is anything to do beside noting the use.
    var isEmpty: Bool {
      phases == nil && !mustRender && !mustRenderInside && !mustTellReaders && released == nil
    }
  }

  /// Performs a transition for a thread that may; gives what it leaves.
  ///
  /// - Parameter isEdit: Whether it is about an optimistic edit, and does not change the state.
  mutating func perform<Output: Sendable>(
    _ transition: (inout StoreMachine) -> Output, _ thread: ThreadID, _ use: borrowing StoreUse,
    isEdit: Bool = false
  ) -> (Output, Delivery<Event>?, Aftermath) {
    if !overlay.isNone, !isEdit { withhold() }
    let wasUsed = isUsed
    let output = transition(&self)
    transitionCount &+= 1
    var aftermath = Aftermath()
    if lacksEdits {
      lacksEdits = false
      aftermath.mustRenderInside =
        !exclusive.isNone && !exclusive.content.isComputing && needsRendering
    }
    if isEdit || !withheld.isNone { aftermath.mustRender = beginRendering(thread) }
    if isUsed != wasUsed { aftermath.use = use.change(isUsed: !wasUsed) }
    aftermath.phases = phaseChange()
    let delivery = deliveries.beginDraining()
    notePlain()
    aftermath.mustTellReaders = takeReadOutdated()
    aftermath.released = released.take()
    return (output, delivery, aftermath)
  }

  mutating func release(all values: [any Sendable]) {
    if released == nil { released = values } else { released! += values }
  }

  mutating func release(_ value: some Sendable) { release(all: [value]) }
}

extension StoreMachine {
  /// Somebody sets a result, in a context over that of the store; a cancellation is none.
  mutating func write(
    _ result: Result<State.StateValue, State.Failure>, _ context: OperationContext?
  ) {
    guard case .success = result else { return writeFailure(result, context) }
    keepYields()
    landingCount += 1
    // Two calls: one context for both would be a copy of the store's.
    if let context {
      land(after: settlementCount) { $0.update(with: result, using: context.over($1)) }
    } else {
      land(after: settlementCount) { $0.update(with: result, using: $1) }
    }
    freshness.refresh(since: freshness.generation)
    commit()
  }

  mutating func writeFailure(
    _ result: Result<State.StateValue, State.Failure>, _ context: OperationContext?
  ) {
    if result.isCancellation { return }
    let context = context?.over(self.context) ?? self.context
    state.update(with: result, using: context)
    // What runs have yielded can still be taken back, and the failure is there then.
    changeBeforeYields { $0.update(with: result, using: context) }
    commit()
  }

  /// The state goes back to its beginning; every run is over.
  mutating func reset(_ context: OperationContext) -> (effect: ResetEffect, cores: [Core]) {
    let ended = takeAllRuns()
    keepYields()
    landingCount += 1
    dropLayers()
    release(state)
    let effect = state.reset(using: context)
    for record in ended { state.finishFetchTask(record.task) }
    freshness.reset()
    dropFollowsAfter()
    commit(for: ended.flatMap { $0.payload.handlers })
    for record in ended { tellCancelled(record) }
    release(all: ended)
    return (effect, ended.map { $0.core })
  }

  /// Marks the value as out of date; tells whether a run has to start now.
  @discardableResult
  mutating func invalidate() -> Bool {
    freshness.invalidate()
    return needsRerun
  }

  /// An invalidation finds a run under way: notes what the one comes after that follows it. Gives the
  /// run that is waited for, and the invalidation that is to be answered.
  mutating func follow(
    after others: [TaskDependency]
  ) -> (task: Task, generation: Int)? {
    guard deliveries.subscriberCount > 0, let task = taskToAnswer(freshness.generation) else {
      return nil
    }
    if freshness.answered < freshness.generation { followsAfter += others }
    return (task, freshness.generation)
  }

  /// The run that is to end for an invalidation to be answered: the answer, or what it follows; the
  /// oldest of several.
  func taskToAnswer(_ generation: Int) -> Task? {
    guard freshness.isInvalidated else { return nil }
    let isBegun = freshness.answered >= generation
    return runs.records.filter { record in
      record.isStarted && (!isBegun || record.payload.generation >= generation)
    }.min { $0.id < $1.id }?.task
  }

  /// Gives what the run that follows comes after.
  mutating func takeFollowsAfter() -> [TaskDependency] {
    defer { followsAfter = [] }
    return followsAfter
  }

  /// Lets go of what a run would have come after, if none follows any more.
  mutating func dropFollowsAfter() {
    if followsAfter.isEmpty || mustFollow { return }
    if runs.records.contains(where: { $0.isStarted }) { return }
    releaseFollowsAfter()
  }

  mutating func releaseFollowsAfter() {
    if followsAfter.isEmpty { return }
    release(followsAfter)
    followsAfter = []
  }

  /// Whether somebody observes, what is there is out of date, and nobody is at it. A run that is
  /// only scheduled is nobody: its handle may go away without having started it.
  var needsRerun: Bool {
    freshness.isInvalidated && deliveries.subscriberCount > 0
      && !runs.records.contains { $0.isStarted }
  }
}
