import Dispatch
import ReactiveStreams
public import Synchronization

/// Runs a request, holds its state, and notifies its subscribers.
///
/// ```swift
/// let store = client.store(for: PlayerQuery(id: 7))
/// let player = try await store.run()
/// for await player in store.values { print(player?.name ?? "…") }
/// ```
///
/// A store can be used from any thread. The members of its state are members of the store, too.
/// Reads never wait for a handler, a run, or exclusive access.
@dynamicMemberLookup
public final class OperationStore<State: OperationState>: Sendable {
  typealias Machine = StoreMachine<State>
  typealias Failure = State.Failure
  fileprivate typealias Effects = StoreEffects<OperationEvent<State>>
  typealias Continuation = OperationContinuation<State.OperationValue, Failure>

  // First what an invalidation reads, so that it touches few cache lines of each store.
  /// Performs a step of an invalidation. A closure, because callers do not know the type of the state:
  /// without it the benchmarks of invalidation along a chain and along a fan are over their limits, and
  /// that of clearing costs twice as much.
  let invalidationStep: @Sendable (OperationStore, InvalidationStep) -> InvalidationOutcome
  /// Whether other requests may depend on this one. A run sets it before it reads the value, and an
  /// invalidation reads it under the lock when it marks the value. So one of both notices the other.
  let isRead: Atomic<Bool>
  /// The version of the machine, to be read without the lock; -1 for none. Annotated for ``isAt(version:)``.
  @usableFromInline let version = Atomic(0)
  /// What the store shares with the others of its client, whatever context is passed to a run. A store
  /// without a client has a hub of its own.
  let hub: StoreHub
  /// Saves the value; `nil` if it is not saved.
  let persistence: StorePersistence<State>?
  private let deferredActions = DeferredActions()
  /// The lock guards the machine. Requests, handlers, continuations and cancellations are outside of
  /// it. The state's own members are inside.
  private let machine: Mutex<Machine>
  let use = StoreUse()
  /// The path of the store in its client.
  public let path: OperationPath
  let types: RequestTypes
  /// What modifiers and defaults set. A context that is set later does not change them.
  let settings: RunSettings
  /// Calls the request, with the retries of the client's defaults.
  let request: RequestRules<State>.Call

  init<Request: StatefulOperationRequest>(
    _ request: Request, state: consuming State, context: OperationContext,
    hub: StoreHub? = nil
  ) where Request.State == State {
    let baseContext = context
    let context = request.settingUp(baseContext)
    state.prepareInitialValue(in: context)
    let hub = hub ?? StoreHub()
    types = RequestTypes(plain: request.requestType, modified: Request.self)
    path = request.path
    settings = context.settings
    self.hub = hub
    // Most values are not saved. An object whose initialiser fails is made and released: the benchmark creation
    // would be further over its limit.
    let saving = settings.values.persistence
    persistence = if let saving { StorePersistence(at: path, saving, hub.valueWriter) } else { nil }
    persistence?.begin(&state)
    self.request = request.storeCall
    invalidationStep = { $0.perform($1) }
    // An earlier store on the path may have been read, also while it was stale.
    let wasRead = hub.isRead(path)
    isRead = Atomic(wasRead)
    let initialDate = state.hasInitialValue ? context.now() : nil
    machine = Mutex(
      Machine(
        state: state, context: context, baseContext: baseContext, wasReadStale: wasRead,
        initialDate: initialDate))
  }

  deinit {
    // A store that its client retains is released with the client, or was removed from it.
    if use.isEvicted { hub.client?.wasReleased(ObjectIdentifier(self), at: path) }
  }

  /// Creates a store without a client. No defaults apply to it, and it is found by no path.
  public static func detached<Request: StatefulOperationRequest>(
    operation: Request, initialState: State, initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State {
    var context = initialContext.leavingRun()
    // The settings are those of the run or store that the context comes from.
    context.settings = RunSettings()
    let store = OperationStore(operation, state: initialState, context: context)
    store.attachControllers()
    return store
  }

  /// Creates a store for a query without a client. No defaults apply to it, and it is found by no path.
  public static func detached<Request: QueryRequest>(
    query: Request, initialValue: State.StateValue = State.emptyValue,
    initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State> where Request.State == State, State: ValueInitializedState {
    detached(
      operation: query, initialState: State(initialValue: initialValue),
      initialContext: initialContext)
  }

  /// Creates a store for a paginated request without a client. No defaults apply to it, and it is found by
  /// no path.
  public static func detached<Request: PaginatedRequest, PageID, PageValue, PageFailure>(
    paginated: Request, initialValue: PaginatedPages<PageID, PageValue> = [],
    initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State>
  where Request.State == State, State == PaginatedState<PageID, PageValue, PageFailure> {
    detached(
      operation: paginated, initialState: State(initialValue: initialValue),
      initialContext: initialContext)
  }

  /// Creates a store for a mutation without a client. No defaults apply to it, and it is found by no
  /// path.
  public static func detached<Request: MutationRequest, Arguments, MutateValue, MutateFailure>(
    mutation: Request, initialValue: MutateValue? = nil,
    initialContext: OperationContext = OperationContext()
  ) -> OperationStore<State>
  where Request.State == State, State == MutationState<Arguments, MutateValue, MutateFailure> {
    detached(
      operation: mutation, initialState: State(initialValue: initialValue),
      initialContext: initialContext)
  }
}

// MARK: - The lock

extension OperationStore {
  /// Performs a transition when no other thread has exclusive access, and then what it leaves to do.
  ///
  /// This is the only way to change the machine, except for the end of exclusive access: it marks the thread
  /// that holds the lock, delivers, does what else is left, and releases what was replaced.
  @discardableResult
  func commit<Output: Sendable>(
    as kind: Machine.TransitionKind = .change, _ transition: (inout Machine) -> Output
  ) -> Output {
    var replaced = ReplacedValues<State>()
    var effects = Effects()
    let output = perform(kind, replacing: &replaced, leaving: &effects, transition)
    finish(&effects)
    // Not before: deinitialisers of values are the user's code.
    withExtendedLifetime(replaced) {}
    return output
  }

  /// Performs a transition. The caller has to finish the effects, and to release what was replaced.
  private func perform<Output: Sendable>(
    _ kind: Machine.TransitionKind, replacing replaced: inout ReplacedValues<State>,
    leaving effects: inout Effects, _ transition: (inout Machine) -> Output
  ) -> Output {
    let thread = ThreadID.current
    while true {
      var gate: Gate?
      var output: Output?
      machine.withLock { machine in
        if kind != .note { gate = machine.gate(for: thread) }
        if gate != nil { return }
        deferredActions.begin(on: thread)
        output = machine.perform(kind, on: thread, use: use, leaving: &effects, transition)
        version.store(machine.version ?? -1, ordering: .releasing)
        machine.committed.moveReplaced(into: &replaced)
        deferredActions.end()
      }
      if let output { return output }
      gate?.wait()
    }
  }

  /// Does what a transition has left to do.
  private func finish(
    _ effects: inout Effects, afterDelivery actions: [@Sendable () -> Void] = []
  ) {
    // First: a slow handler must not delay the end of a use, and a store that is retained again is reported
    // before its handlers are called.
    if let change = effects.use, change.isUsed { report(change) }
    if let change = effects.use, !change.isUsed {
      // The time of use of a store that no client retains does not count.
      use.noteEnd(change, at: use.isRetained ? hub.elapsed() : use.lastUse)
    }
    if hub.events.hasReader { hub.events.changes.append(self) }
    // Before subscribers are notified, one of which may flush.
    if let persistence, effects.mayHaveChanged { persistence.noteChange(of: self) }
    if effects.delivery.hasEvent {
      // A task that a handler starts does not work for the run whose request has called it.
      CurrentWork.without { machine.drain(&effects.delivery) }
      if effects.delivery.hasEvent { handOver(effects.delivery) }
    }
    for action in actions { action() }
    if effects.mustCompute { computeDisplayedValue().finish() }
    if effects.mustComputeInside { computeConfirmedValue() }
    if effects.mustNotifyReaders { hub.invalidateOutdatedReaders(of: path, isWritten: true) }
    if let change = effects.use, !change.isUsed { report(change) }
    if let (old, new) = effects.activity { hub.activity.move(State.kind, from: old, to: new) }
    deferredActions.perform()
  }

  private func report(_ change: StoreUse.Change) {
    if use.isWatched { hub.client?.useChanged(of: OpaqueOperationStore(self), change) }
  }

  package func drain(_ delivery: inout Delivery<Event>) { machine.drain(&delivery) }

  /// Reads the machine in place. Only ``commit(as:_:)`` may change it: `body` is passed an `inout` parameter
  /// because a borrowed one is copied.
  func read<Output: Sendable>(_ body: (inout Machine) -> Output) -> Output {
    machine.withLock { body(&$0) }
  }
}

extension OperationStore: DeliveryDrainer {
  package typealias Event = OperationEvent<State>
  package var drainExecutor: (any TaskExecutor)? { context.executor }
}

// MARK: - Exclusive access

extension OperationStore {
  /// What is left to do when exclusive access has ended, and other writers have continued.
  struct EndedAccess {
    fileprivate let store: OperationStore
    fileprivate let effects: Effects
    fileprivate let access: ExclusiveAccess<State>?
    fileprivate let replaced: ReplacedValues<State>

    /// Notifies what was changed, and does what was postponed.
    func finish() {
      var effects = effects
      store.finish(&effects, afterDelivery: access?.actions ?? [])
      withExtendedLifetime(self) {}
    }
  }

  func beginExclusiveAccess() { commit { $0.beginExclusiveAccess(.current) } }

  /// Ends exclusive access, and lets other writers continue. ``EndedAccess/finish()`` notifies subscribers.
  func endAccess() -> EndedAccess { tryEnd { $0.endExclusiveAccess() } ?? computeDisplayedValue() }

  /// Computes the value that the optimistic edits display, and ends exclusive access.
  private func computeDisplayedValue() -> EndedAccess {
    var round = 0
    while true {
      // A handler may have reset the store.
      guard var computation = commit(as: .access, { $0.beginComputation() }) else {
        return endAccess()
      }
      computation.perform()
      round += 1
      // Edits that change their own store make it compute again, but not forever.
      let ended = tryEnd { machine in
        if !machine.finishComputation(&computation), round == 8 { machine.giveUpComputation() }
        return machine.endExclusiveAccess()
      }
      if let ended { return ended }
    }
  }

  /// Computes the confirmed value for the thread that has exclusive access and continues with it.
  private func computeConfirmedValue() {
    guard var computation = commit(as: .access, { $0.beginComputation() }) else { return }
    computation.perform()
    commit(as: .access) { machine in
      machine.access?.isComputing = false
      machine.finishComputation(&computation)
    }
  }

  /// Ends exclusive access. Returns `nil` if the displayed value has to be computed first.
  private func tryEnd(_ transition: (inout Machine) -> Machine.AccessEnd) -> EndedAccess? {
    var replaced = ReplacedValues<State>()
    var effects = Effects()
    let end = perform(.access, replacing: &replaced, leaving: &effects, transition)
    guard case .ended(let access) = end else {
      finish(&effects)
      return nil
    }
    for gate in access?.gates ?? [] { gate.signal() }
    return EndedAccess(store: self, effects: effects, access: access, replaced: replaced)
  }
}

// MARK: - Deferred actions

/// What a state causes while its store is locked: cancellations, reports and searches for cycles. They are done
/// after the lock.
struct DeferredActions: ~Copyable, Sendable {
  /// The thread that holds the lock of the store; zero if there is none.
  private let thread = Atomic<UInt>(0)
  private let actions = Mutex<[@Sendable () -> Void]>([])
  private let isEmpty = Atomic(true)

  func begin(on thread: ThreadID) { self.thread.store(thread.rawValue, ordering: .relaxed) }
  func end() { thread.store(0, ordering: .relaxed) }

  /// Defers an action of the thread that holds the lock. Returns whether it was deferred.
  func append(_ action: @escaping @Sendable () -> Void) -> Bool {
    guard thread.load(ordering: .relaxed) == ThreadID.current.rawValue else { return false }
    actions.withLock { $0.append(action) }
    isEmpty.store(false, ordering: .relaxed)
    return true
  }

  /// Performs the actions, without the lock of the store.
  func perform() {
    if isEmpty.load(ordering: .relaxed) { return }
    let deferred = actions.withLock { actions in
      isEmpty.store(true, ordering: .relaxed)
      return exchange(&actions, with: [])
    }
    for action in deferred { action() }
  }
}

extension OperationStore {
  func cancel(_ id: OperationTaskID) {
    performUnlocked { [self] in
      commitCancelling { $0.cancel(id).map { [$0.cancelRun] } ?? [] }.forEach { $0() }
    }
  }

  func performUnlocked(_ action: @escaping @Sendable () -> Void) {
    if !deferredActions.append(action) { action() }
  }

  /// Performs a transition, and returns its cancellations for the caller to perform. In exclusive access it
  /// returns none: they follow at its end.
  func commitCancelling(
    _ transition: (inout Machine) -> [@Sendable () -> Void]
  ) -> [@Sendable () -> Void] {
    commit { machine in
      let cancellations = transition(&machine)
      return machine.atEndOfAccess(of: .current, cancellations) ? [] : cancellations
    }
  }
}
