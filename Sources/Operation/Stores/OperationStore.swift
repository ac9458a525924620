import ReactiveStreams
public import Synchronization

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
  @usableFromInline typealias Machine = StoreMachine<State>
  typealias Value = State.OperationValue
  typealias Failure = State.Failure

  /// Where a client keeps the store.
  public let path: OperationPath

  /// The lock guards the machine. Requests, handlers, continuations and cancellations are outside
  /// of it; the state's own members are inside. It would be private, were reads not specialised
  /// for the states of other modules, where they are.
  @usableFromInline let machine: Mutex<Machine>
  /// The thread that is inside the machine, so that a state that cancels a task is not waited for.
  private let threadInside = Atomic<UInt>(0)
  private let deferredCancellations = Mutex<[OperationTaskID]>([])
  /// What the store has in common with the others of its client, whatever context is passed to a
  /// run; without a client it has a hub of its own.
  let hub: StoreHub
  let use = StoreUse()
  let isControlled: Bool
  let operation:
    @Sendable (OperationContext, OperationContinuation<Value, Failure>) async -> Machine.Output

  init<Request: StatefulOperationRequest>(
    _ request: Request, state: State, context: OperationContext, isCounted: Bool = false
  ) where Request.State == State {
    var context = context
    request.setupState(context: &context)
    request.setup(context: &context)
    // The stores of a client share their settings where their requests change none.
    if !context.settings.values.isStored { context.settings.values.isStored = true }
    var state = state
    state.prepareInitialValue(in: context)
    path = request.path
    hub = context.hub ?? StoreHub()
    isControlled = !context.settings.values.controllers.isEmpty
    machine = Mutex(Machine(state: state, context: context, isCounted: isCounted))
    operation = { context, continuation in
      do throws(Failure) {
        return .success(
          try await request.runInStore(in: context, with: continuation))
      } catch {
        return .failure(error)
      }
    }
  }

  /// Creates a store without a client: no defaults apply to it, and nobody else finds it.
  public static func detached<Request: StatefulOperationRequest>(
    operation: Request, initialState: State, initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State {
    let store = OperationStore(operation, state: initialState, context: initialContext)
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
  func commit<Output: Sendable>(_ transition: (inout Machine) -> Output) -> Output {
    let thread = ThreadID.current
    while true {
      let (step, gate, old) = machine.commit { machine -> (Step<Output>?, Gate?, Old?) in
        if let gate = machine.gate(for: thread) { return (nil, gate, nil) }
        threadInside.store(thread.rawValue, ordering: .relaxed)
        defer { threadInside.store(0, ordering: .relaxed) }
        let value = State.kind == .pages ? nil : machine.state.currentValue
        let error = machine.state.error
        if machine.overlay != nil { machine.withhold() }
        let wasUsed = machine.isUsed
        let output = transition(&machine)
        let step = Step(
          output: output, plan: machine.beginRendering(thread),
          use: machine.isUsed == wasUsed ? nil : use.change(isUsed: !wasUsed),
          phases: machine.phaseChange())
        machine.notePlain()
        return (step, nil, Old(value: value, error: error, others: machine.takeReleased()))
      }
      if let step {
        if let plan = step.plan { render(plan) }
        withExtendedLifetime(old) {}
        if let change = step.use { useChanged(change) }
        if let (old, new) = step.phases { hub.activity.move(State.kind, from: old, to: new) }
        performDeferredCancellations()
        return step.output
      }
      gate?.wait()
    }
  }

  private struct Step<Output: Sendable>: Sendable {
    let output: Output
    let plan: Machine.Layers.Plan?
    let use: StoreUse.Change?
    let phases: (from: ActivityPhase, to: ActivityPhase)?
  }

  private func useChanged(_ change: StoreUse.Change) {
    if !change.isUsed { use.lastUse = StoreUse.Moment(hub.clock.now()) }
    if use.isWatched { hub.useChanged(of: OpaqueOperationStore(self), change) }
  }

  /// Computes what the optimistic layers show, while this thread has the store to itself.
  private func render(_ plan: Machine.Layers.Plan) {
    var plan = Optional(plan)
    var round = 0
    while let current = plan {
      round += 1
      let rendering = current.perform()
      plan = machine.withLock { [round] machine in
        // Edits that change their own store have it computed anew, but not for ever.
        defer { machine.notePlain() }
        return machine.finishRendering(rendering, isLast: round == 8)
      }
    }
    endExclusiveAccess()
  }

  /// Lets the other writers in, and then releases what gave way, and tells what the exclusive access
  /// changed.
  func endExclusiveAccess() {
    let (end, released) = machine.withLock { machine in
      defer { machine.notePlain() }
      return (machine.endExclusiveAccess(), machine.takeReleased())
    }
    switch end {
    case .render(let plan): render(plan)
    case .open(let gates):
      for gate in gates { gate.open() }
      machine.commit { _ in }
    }
    withExtendedLifetime(released) {}
  }

  /// What gave way in a transition.
  private struct Old: Sendable {
    let value: State.StateValue?
    let error: Failure?
    let others: [any Sendable]
  }

  func read<Output: Sendable>(_ body: (borrowing Machine) -> Output) -> Output {
    machine.withLock { body($0) }
  }

  /// Cancels a task, or leaves that to the thread that is inside the machine, which is this one: a
  /// state may cancel tasks.
  func cancel(_ id: OperationTaskID) {
    if threadInside.load(ordering: .relaxed) == ThreadID.current.rawValue {
      deferredCancellations.withLock { $0.append(id) }
    } else {
      commit { $0.cancel(id) }?.cancelRun()
    }
  }

  private func performDeferredCancellations() {
    let ids = deferredCancellations.withLock { ids -> [OperationTaskID] in
      if ids.isEmpty { return [] }
      defer { ids = [] }
      return ids
    }
    for id in ids { cancel(id) }
  }
}

extension StatefulOperationRequest {
  /// Runs the request with the retries of the client's defaults, unless a modifier makes its own.
  func runInStore(
    in context: OperationContext, with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    let settings = context.settings.values
    guard !settings.isRetryPlaced, settings.retryLimit > 0 else {
      return try await run(isolation: nil, in: context, with: continuation)
    }
    return try await runRetrying(isolation: nil, in: context, with: continuation) { _ in true }
  }
}
