import ReactiveStreams
import Synchronization

extension OperationStore {
  /// A handler of the events of one run.
  public typealias EventHandler = @Sendable (OperationEvent<State>) -> Void

  /// Runs the request, or joins a run in flight that is the same, and returns its result.
  ///
  /// The caller holds a lease while it waits. The run is cancelled when its last lease is released. A
  /// cancelled caller returns at once with `CancellationError` if the failure is `any Error`; with
  /// another failure it receives what the run ends with.
  ///
  /// A request must not await its own run, also not in a child task, or a run that waits for it. That would
  /// never end, so this throws ``OperationDependencyError``, or, with another failure, makes a report.
  ///
  /// - Parameters:
  ///   - context: Overrides the context of the store for this run.
  ///   - handler: Called with the events of this run only: its start, its yields, its changes of the
  ///     state, and its end. The last ones can follow after this has returned, if another thread delivers
  ///     them.
  /// - Throws: The failure of the run.
  @_disfavoredOverload
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(box(context), handler: handler)
  }

  /// Runs the request, as `run(using:handler:)` does, under the name that suits queries and pages.
  @_disfavoredOverload
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(using: context, handler: handler)
  }

  /// Joins a run in flight that is the same, also one from before an invalidation, cancels its request, and calls
  /// the request again for all callers of the run. Without such a run, it starts one.
  ///
  /// A request that ignores cancellation works on beside its second call, also in a serialized or limited scope: the
  /// run has one place there.
  ///
  /// - Parameters:
  ///   - isRestarting: Whether a request that was called already is called again. With `false`, this is
  ///     `fetch(using:handler:)`.
  ///   - context: Overrides the context of the store for a new run.
  /// - Throws: The failure of the run.
  @_disfavoredOverload
  @discardableResult
  nonisolated(nonsending) public func fetch(
    restarting isRestarting: Bool, using context: OperationContext? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(box(context), isRestarting: isRestarting)
  }

  /// Runs the request with a name, a priority and a context, as `run(using:handler:)` does.
  @_disfavoredOverload
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using configuration: OperationTaskConfiguration, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(Machine.Box(configuration), handler: handler)
  }

  /// Schedules a run without starting it, or joins one that is the same.
  ///
  /// The task is in the state from now on. If it is released before it was started, it is removed
  /// without a trace.
  @_disfavoredOverload
  public func runTask(
    using context: OperationContext? = nil
  ) -> OperationTask<State.OperationValue, State.Failure> { runTask(box(context)) }

  /// Schedules a run with a name, a priority and a context, without starting it.
  @_disfavoredOverload
  public func runTask(
    using configuration: OperationTaskConfiguration
  ) -> OperationTask<State.OperationValue, State.Failure> { runTask(Machine.Box(configuration)) }

  /// Cancels all runs of the store for all callers. What their yields had replaced is restored.
  public func cancel() { removeRuns().forEach { $0() } }

  func removeRuns() -> [@Sendable () -> Void] {
    commitCancelling { $0.cancelAll().map { core in { core.cancelRun() } } }
  }

  /// The number of callers and subscribers that hold a run of this store.
  public var leaseCount: Int { read { $0.leaseCount } }
}

// MARK: - Starting and joining

extension OperationStore {
  package func box(_ context: OperationContext?) -> OperationTaskConfiguration.Box {
    if let context { Machine.Box(context) } else { .empty }
  }

  /// Runs the request, as `run(using:handler:)` does, by the rules of a request that was passed.
  nonisolated(nonsending) package func run(
    _ box: OperationTaskConfiguration.Box, by rules: RequestRules<State>? = nil,
    input: (any RunInput)? = nil, isRestarting: Bool = false, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    // A caller that is cancelled already disturbs no other one.
    let isRestarting = isRestarting && !Task.isCancelled
    var new = newRun(box, by: rules, cause: .fetch, lease: .awaiter, input: input, handler: handler)
    new.restarts = isRestarting
    var run = mustAdmit(new)
    defer { if let handler = new.handler { release(handler, of: run.core) } }
    let wait = try begin(&run, restarting: isRestarting ? new : nil)
    defer { wait?.end() }
    return try value(of: await run.core.result(), by: rules)
  }

  /// Runs the request, or joins any run in an equivalent context. Returns `nil` if the store has had another
  /// result since its result count was `results`.
  nonisolated(nonsending) func run(
    by rules: RequestRules<State>? = nil, input: (any RunInput)? = nil,
    unlessNewerThan results: Int, joiningOutdated: Bool = false, ignoringAge: Bool = false
  ) async throws(State.Failure) -> State.OperationValue? {
    var new = newRun(
      .empty, by: rules, cause: .fetch, lease: .awaiter, input: input, seenResults: results,
      ignoringAge: ignoringAge)
    new.joinsOutdated = joiningOutdated
    guard var run = admit(new) else { return nil }
    let wait = try begin(&run)
    defer { wait?.end() }
    return try value(of: await run.core.result(), by: rules)
  }

  /// Forgets the handler of a caller that does not wait for the end of its run.
  private func release(_ handler: Subscriber<Machine.Event>, of core: Machine.Core) {
    if core.progress.isEnded { return }
    handler.deactivate()
    commit(as: .note) { $0.release(handler, of: core.id) }
  }

  /// Prepares the wait of a caller for a run on which it holds a lease, and launches the run if the caller has
  /// started it.
  ///
  /// - Parameter new: The run that the caller requested, to restart the request of the run that it has joined;
  ///   `nil` leaves that request alone. If the joined run has ended meanwhile, `new` is admitted again.
  private func begin(
    _ run: inout AdmittedRun, restarting new: Machine.NewRun? = nil
  ) throws(State.Failure) -> RunWait? {
    var wait = RunWait(for: run.core.node)
    // A request that restarts itself would never end.
    while let new, !run.mustLaunch, wait?.cycle == nil, !restart(run.core) {
      wait?.end()
      run = mustAdmit(new)
      wait = RunWait(for: run.core.node)
    }
    if let failure = run.core.failure(of: wait) {
      releaseLease(on: run.core.id)
      // Another caller may have joined it. Otherwise it gives up its place in the queue.
      if run.mustLaunch { launch(run) }
      throw failure
    }
    if run.mustLaunch {
      launch(run)
    } else {
      run.core.node.escalate()
      send(.joined(run.context.eventRun), in: run.context)
    }
    return wait
  }

  /// Returns the value of a result. Instead of a failure it returns the cached value, if the request's rules
  /// allow that.
  private func value(
    of result: Machine.Output, by rules: RequestRules<State>?
  ) throws(State.Failure) -> State.OperationValue {
    guard case .failure(let error) = result, error.canBeRetried, State.kind == .query,
      let limit = setting(by: rules, { $0.staleIfError })
    else { return try result.get() }
    let (value, date, context) = read {
      ($0.confirmedValue, $0.visibleDate, $0.contexts.context(by: rules))
    }
    guard let age = date.map({ context.now().duration(since: $0) }), age >= .zero, age < limit,
      let value = value as? State.OperationValue
    else { throw error }
    return value
  }

  /// Whether a run by some rules may return the cached value instead of a failure.
  func mayReturnOld(by rules: RequestRules<State>?) -> Bool {
    setting(by: rules) { $0.staleIfError } != nil
  }

  /// Schedules a run, as `runTask(using:)` does, by the rules of a request that was passed.
  package func runTask(
    _ box: OperationTaskConfiguration.Box, by rules: RequestRules<State>? = nil,
    input: (any RunInput)? = nil
  ) -> OperationTask<State.OperationValue, State.Failure> {
    let run = mustAdmit(newRun(box, by: rules, cause: .fetch, lease: .handle, input: input))
    let id = run.core.id
    return run.task.keeping(
      OperationSubscription { [weak self] in self?.commit { $0.dropHandle(id) }?.cancelRun() })
  }

  /// Starts a run that the subscribers hold together.
  ///
  /// - Parameters:
  ///   - rules: The rules of the observers that the run is for; `nil` if they are those of the store.
  ///   - others: The tasks that end before the run calls its request.
  ///   - results: See `NewRun.seenResults`.
  /// - Returns: The run; `nil` if it must not run by itself, or if none is needed.
  @discardableResult
  func runForObservers(
    by rules: RequestRules<State>? = nil, cause: OperationRun.Cause,
    after others: [TaskDependency] = [], unlessNewerThan results: Int? = nil
  ) -> OperationTask<State.OperationValue, State.Failure>? {
    // After a shutdown no caller needs a result, and a request whose failure cannot be a cancellation would be
    // called.
    guard !hub.isClosed, allowsRun(by: rules, cause: cause) else { return nil }
    let box = setting(by: rules) { $0.automatic.task } ?? .empty
    let new = newRun(box, by: rules, cause: cause, lease: .observers, seenResults: results)
    for other in others { new.core.node.addDependency(on: other) }
    guard let run = admit(new) else { return nil }
    if run.mustLaunch {
      // A run that was scheduled already is started instead of the new one.
      if run.core != new.core { for other in others { run.core.node.addDependency(on: other) } }
      // A run in whose request this one starts does not await it.
      CurrentWork.without { launch(run) }
    }
    return run.task
  }

  /// Whether the store may run after an invalidation, by the rules that it was created with.
  var allowsRun: Bool { allowsRun(by: nil, cause: .invalidation) }

  /// Returns whether observers with some rules want a run that no caller requested.
  private func allowsRun(by rules: RequestRules<State>?, cause: OperationRun.Cause) -> Bool {
    let context = context(by: rules)
    let automatic = context.settings.values.automatic
    // A first subscriber requests a run only where automatic runs are enabled.
    let isFollowing = cause == .invalidation || cause == .dependency
    let isWanted = !isFollowing || State.kind != .mutation || automatic.isEnabled == true
    return isWanted && automatic.condition?.isSatisfied(in: context) ?? true
  }

  /// Starts a run after an invalidation, by the rules of the first observers that want one.
  private func rerun(
    cause: OperationRun.Cause, after others: [TaskDependency] = []
  ) -> OperationTask<State.OperationValue, State.Failure>? {
    for rules in read({ $0.observation.rules }) {
      if let task = runForObservers(by: rules, cause: cause, after: others) { return task }
    }
    return nil
  }

  private func newRun(
    _ box: Machine.Box, by rules: RequestRules<State>? = nil, cause: OperationRun.Cause,
    lease: Machine.Lease, input: (any RunInput)? = nil, handler: EventHandler? = nil,
    seenResults: Int? = nil, ignoringAge: Bool = false
  ) -> Machine.NewRun {
    let origin = OperationRun.Origin(path: path, hub: ObjectIdentifier(hub))
    let core = Machine.Core(TaskNode(cause: cause, origin: origin, driver: self))
    let context = box.configuration.context.beginning(
      core.node, input: input, rules: rules,
      cacheUse: ignoringAge ? .ofAnyAge : seenResults == nil ? .none : .usable,
      over: self.context(by: rules))
    // It calls the user's code, which must not run under the lock.
    _ = context.valuesHash
    return Machine.NewRun(
      core: core, box: Machine.Box(box.configuration.with(context)), lease: lease,
      handler: handler.map { Subscriber($0) }, seenResults: seenResults)
  }

  /// Joins a run in flight, or makes the new one a run of the store; `nil` if it is refused.
  private func admit(_ new: Machine.NewRun) -> AdmittedRun? {
    var verdict: RunVerdict?
    let scope = new.lease == .handle ? nil : settings.values.serialScope
    // Before the run is in the state: a caller that sees it there is queued after it. A run that is only
    // scheduled gets its places when it is launched.
    if let scope { hub.queues.append(new.core.node, to: scope) }
    // The same holds for its place among the saved calls, and a flush waits for it.
    let ticket = new.lease == .handle ? nil : ticket(in: new.context)
    while true {
      switch commit({ [verdict] in $0.admit(new, verdict: verdict) }) {
      case .refused:
        if let scope { hub.queues.remove(new.core.id, from: scope) }
        end(ticket)
        return nil
      case .compare(let candidates):
        verdict = settings.values.deduplication.verdict(on: new.context, among: candidates)
      case .admitted(var run):
        run.isQueued = scope != nil && run.core == new.core
        if let scope, !run.isQueued { hub.queues.remove(new.core.id, from: scope) }
        if run.core == new.core { run.ticket = ticket } else { end(ticket) }
        return run
      }
    }
  }

  /// Admits a run of a caller, which is never refused.
  private func mustAdmit(_ new: Machine.NewRun) -> AdmittedRun {
    guard let run = admit(new) else { preconditionFailure("\(path): a requested run was refused") }
    return run
  }
}

// MARK: - Invalidation

extension OperationStore {
  /// Invalidates the value, and those of all requests that read it, and runs the observed ones among
  /// them: each once, and each after what it reads.
  ///
  /// The result of a run in flight is displayed when it ends, but the value remains invalidated, and
  /// one run follows, however many invalidations there were.
  public func invalidate() { hub.invalidate { $0(OpaqueOperationStore(self)) } }

  func invalidateAlone() {
    _ = perform(.mark)
    let run = { @Sendable [self] in _ = perform(.rerun(because: .invalidation, after: [])) }
    if !atEndOfAccess(run) { run() }
  }

  func perform(_ step: InvalidationStep) -> InvalidationOutcome {
    switch step {
    case .count:
      commit(as: .note) { _ in }
      return .done
    case .mark:
      let outcome = commit(as: .silent) { $0.mark(isRead: isRead.load(ordering: .relaxed)) }
      persistence?.noteChange(of: self)
      return outcome
    case .rerun(let cause, let others):
      if read({ $0.needsRerun }), let task = rerun(cause: cause, after: others) {
        return .run(task.dependency)
      }
      guard read({ $0.deliveries.subscriberCount > 0 }),
        let (task, invalidationCount) = commit({ $0.planRun(after: others) })
      else { return .done }
      var dependency = task.dependency
      dependency.successor = { [self] in
        read { $0.taskToAnswer(invalidationCount) }?.dependency
      }
      return .run(dependency)
    }
  }

  /// Starts the run that follows one that has ended, after an invalidation.
  func startPlannedRun() {
    _ = rerun(cause: .invalidation, after: commit { $0.freshness.takeFollowUp() })
  }
}
