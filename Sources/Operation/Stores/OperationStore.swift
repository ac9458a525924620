import ReactiveStreams
import Synchronization

/// Runs a request, holds its state, and tells everyone who watches.
///
/// ```swift
/// let store = client.store(for: PlayerQuery(id: 7))
/// let player = try await store.run()
/// for await player in store.values { print(player?.name ?? "…") }
/// ```
///
/// A store can be used from any thread. The members of its state are members of the store, too.
/// Reads never wait for a handler, a run, or somebody's exclusive access.
@dynamicMemberLookup
public final class OperationStore<State: OperationState>: Sendable {
  typealias Machine = StoreMachine<State>
  typealias Value = State.OperationValue
  typealias Failure = State.Failure

  // Both beside the head of the object, as that is what a look-up touches.
  /// The type of the request that the store was made for.
  let requestType: any Any.Type
  let use = StoreUse()
  /// Where a client keeps the store.
  public let path: OperationPath

  /// The lock guards the machine. Requests, handlers, continuations and cancellations are outside
  /// of it; the state's own members are inside.
  ///
  /// It would be private, like most of what a read, a write or a run goes through, were all that not
  /// to be inlined: generic code that stays in its module asks the runtime for its types at each step,
  /// and copies values through their witnesses. What is rare is not inlinable.
  let machine: Mutex<Machine>
  /// The thread that is inside the machine, so that what a state does to tasks is not waited for.
  let threadInside = Atomic<UInt>(0)
  let deferred: Mutex<[Deferred]>
  let hasDeferred = Atomic(false)
  /// What the store has in common with the others of its client, whatever context is passed to a
  /// run; without a client it has a hub of its own.
  let hub: StoreHub
  let isControlled: Bool
  /// Makes the Swift task of a run.
  let makeTask:
    @Sendable (OperationStore, Machine.Core, Machine.Box, Prelude?) -> Task<Void, Never>

  init<Request: StatefulOperationRequest>(
    _ request: Request, state: State, context: OperationContext, hub: StoreHub? = nil,
    isCounted: Bool = false
  ) where Request.State == State {
    var context = context
    request.setupState(context: &context)
    request.setup(context: &context)
    // The stores of a client share their settings where their requests change none.
    if !context.settings.values.isStored { context.settings.values.isStored = true }
    var state = state
    state.prepareInitialValue(in: context)
    requestType = request.requestType
    path = request.path
    self.hub = hub ?? StoreHub()
    isControlled = !context.settings.values.controllers.isEmpty
    // The one that was here before may have been read while it was out of date. In one step, as a
    // machine that has a name is copied.
    machine = Mutex(
      Machine(
        state: state, context: context, isCounted: isCounted, isReadOutdated: self.hub.hasReaders))
    // Here, as an initial value of the property would ask the runtime for its type.
    deferred = Mutex([])
    let requests = RequestBox(request)
    makeTask = { $0.makeTask(running: requests, $1, $2, $3) }
  }

  /// Creates a store without a client: no defaults apply to it, and nobody else finds it.
  public static func detached<Request: StatefulOperationRequest>(
    operation: Request, initialState: State, initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State {
    var context = initialContext.leavingRun()
    // They are those of whatever run or store the context comes from.
    context.settings = RunSettings()
    let store = OperationStore(operation, state: initialState, context: context)
    store.attachControllers()
    return store
  }

  /// Creates a store for a query without a client: no defaults apply to it, and nobody else finds
  /// it.
  public static func detached<Request: QueryRequest>(
    query: Request, initialValue: State.StateValue = State.emptyValue,
    initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State, State: ValueInitializedState {
    detached(
      operation: query, initialState: State(initialValue: initialValue),
      initialContext: initialContext)
  }

  /// Creates a store for a mutation without a client: no defaults apply to it, and nobody else finds
  /// it.
  public static func detached<Request: StatefulOperationRequest>(
    mutation: Request, initialValue: State.StateValue = State.emptyValue,
    initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State, State: ValueInitializedState {
    detached(
      operation: mutation, initialState: State(initialValue: initialValue),
      initialContext: initialContext)
  }

  /// Performs a transition when no other thread has the store to itself, and the deliveries that it
  /// left.
  ///
  /// What gives way is kept until the lock is open, because its deinitialiser is the user's. Pages,
  /// which are changed in place and would be copied, say themselves what that is.
  func commit<Output: Sendable>(
    isEdit: Bool = false, _ transition: (inout Machine) -> Output
  ) -> Output {
    let thread = ThreadID.current
    while true {
      var gate: Gate?
      var value: State.StateValue?
      var error: State.Failure?
      var delivery: Delivery<OperationEvent<State>>?
      var aftermath = Machine.Aftermath()
      let output = machine.withLock { machine -> Output? in
        if !machine.exclusive.isNone {
          gate = machine.gate(for: thread)
          if gate != nil { return nil }
        }
        if State.kind != .pages { value = machine.state.currentValue }
        error = machine.state.error
        threadInside.store(thread.rawValue, ordering: .relaxed)
        let output: Output
        (output, delivery, aftermath) = machine.perform(transition, thread, use, isEdit: isEdit)
        threadInside.store(0, ordering: .relaxed)
        return output
      }
      if let output {
        // Before anybody is told: who takes his time must not make the last use an old one.
        if let change = aftermath.use, !change.isUsed { hub.noteEnd(change, of: use) }
        if let delivery { self.machine.drain(from: delivery) }
        if !aftermath.isEmpty || aftermath.use != nil && use.isWatched { settle(aftermath) }
        // Released without the lock, because their deinitialisers are the user's.
        withExtendedLifetime((value, error)) {}
        if hasDeferred.load(ordering: .relaxed) { performDeferred() }
        return output
      }
      gate?.wait()
    }
  }

  /// Does what a transition has left to do.
  func settle(_ aftermath: Machine.Aftermath) {
    if aftermath.mustRender { render() }
    if aftermath.mustRenderInside { renderInside() }
    if aftermath.mustTellReaders { hub.invalidateOutdatedReaders(of: path, isWritten: true) }
    if let change = aftermath.use, use.isWatched {
      hub.useChanged(of: OpaqueOperationStore(self), change)
    }
    if let (old, new) = aftermath.phases { hub.activity.move(State.kind, from: old, to: new) }
    withExtendedLifetime(aftermath.released) {}
  }

  /// Computes what the optimistic layers show, while this thread has the store to itself, and tells
  /// it.
  func render() { finish(rendered()) }

  /// Computes what is confirmed, for the thread that has the store to itself and goes on with it.
  func renderInside() {
    guard var rendering = machine.withLock({ $0.beginComputing() }) else { return }
    rendering.perform()
    let released = machine.withLock { machine in
      machine.exclusive.content.isComputing = false
      _ = machine.takeIn(&rendering)
      machine.notePlain()
      return machine.released.take()
    }
    withExtendedLifetime((rendering, released)) {}
  }

  /// Ends the time in which the thread has the store to itself, and tells what was changed.
  func endExclusiveAccess() { finish(opened()) }

  /// What is left to do when the other writers have been let in.
  struct Left: Sendable {
    let delivery: Delivery<OperationEvent<State>>?
    let access: Boxed<ExclusiveAccess<State>>
    let overlay: Boxed<Machine.Overlay>
    let released: [any Sendable]?
    let mustTellReaders: Bool
  }

  /// Tells what was changed, and releases what gave way.
  func finish(_ left: Left) {
    if let delivery = left.delivery { machine.drain(from: delivery) }
    if !left.access.isNone, !left.access.content.kept.isNone {
      for act in left.access.content.kept.content.actions { act() }
    }
    if left.mustTellReaders { hub.invalidateOutdatedReaders(of: path, isWritten: true) }
    withExtendedLifetime(left) {}
  }

  /// Lets the other writers in, who are told of nothing yet.
  func opened() -> Left { leave { $0.endExclusiveAccess() } ?? rendered() }

  /// Computes what the optimistic layers show, and lets the other writers in.
  func rendered() -> Left {
    var round = 0
    while true {
      // A handler may have reset the store.
      guard var rendering = machine.withLock({ $0.beginComputing() }) else { return opened() }
      rendering.perform()
      round += 1
      // Edits that change their own store have it computed anew, but not for ever.
      if let left = leave({ $0.finishRendering(&rendering, isLast: round == 8) }) { return left }
    }
  }

  /// Ends the time in which the thread has the store to itself, unless something is to be computed
  /// before, and lets the other writers in.
  func leave(_ transition: (inout Machine) -> Machine.End) -> Left? {
    let (end, delivery, released, mustTellReaders) = machine.withLock { machine in
      let end = transition(&machine)
      machine.notePlain()
      var delivery: Delivery<OperationEvent<State>>?
      if case .open = end { delivery = machine.deliveries.beginDraining() }
      return (end, delivery, machine.released.take(), machine.takeReadOutdated())
    }
    guard case .open(let access, let overlay) = end else { return nil }
    if !access.isNone { for gate in access.content.gates { gate.open() } }
    return Left(
      delivery: delivery, access: access, overlay: overlay, released: released,
      mustTellReaders: mustTellReaders)
  }

  func read<Output: Sendable>(_ body: (borrowing Machine) -> Output) -> Output {
    machine.withLock { body($0) }
  }

  /// What a state does to a task while its store is locked, and is done behind the lock.
  enum Deferred: Sendable {
    case cancellation(OperationTaskID)
    case report(OperationIssue)
  }

  func cancel(_ id: OperationTaskID) { perform(.cancellation(id)) }

  func report(_ issue: OperationIssue) { perform(.report(issue)) }

  /// Does it, or leaves it to the thread that is inside the machine, if that is this one.
  private func perform(_ step: Deferred) {
    guard threadInside.load(ordering: .relaxed) != ThreadID.current.rawValue else {
      deferred.withLock { $0.append(step) }
      return hasDeferred.store(true, ordering: .relaxed)
    }
    switch step {
    case .cancellation(let id):
      commitCancelling { $0.cancel(id).map { core in [{ core.cancelRun() }] } ?? [] }
    case .report(let issue): issue.report()
    }
  }

  /// Performs a transition and what it cancels, which in exclusive access is done at its end.
  func commitCancelling(
    _ transition: (inout Machine) -> [@Sendable () -> Void]
  ) {
    let cancellations = commit { machine in
      let cancellations = transition(&machine)
      return machine.behindAccess(cancellations)
    }
    for cancel in cancellations { cancel() }
  }

  func performDeferred() {
    let steps = deferred.withLock { steps -> [Deferred] in
      hasDeferred.store(false, ordering: .relaxed)
      if steps.isEmpty { return [] }
      defer { steps = [] }
      return steps
    }
    for step in steps { perform(step) }
  }
}

extension StatefulOperationRequest {
  /// Runs the request with the retries of the client's defaults, unless a modifier makes its own.
  func runInStore(
    in context: OperationContext, with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    guard context.settings.isRetriedByStore else {
      return try await run(isolation: nil, in: context, with: continuation)
    }
    return try await runAgain(isolation: nil, in: context, with: continuation) { _ in true }
  }
}
