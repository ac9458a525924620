import ReactiveStreams

/// The way of a run from its start to its end.
extension OperationStore {
  typealias AdmittedRun = Machine.AdmittedRun

  /// Makes the Swift task of a run that was started.
  func launch(_ run: AdmittedRun) {
    if hub.isClosed { cancel(run.core.id) }
    let scope = settings.values.serialScope
    guard run.core.node.start() else {
      // It was cancelled since, and must not keep its place in the queue.
      if run.isQueued, let scope { hub.queues.remove(run.core.id, from: scope) }
      end(run.ticket)
      return
    }
    begin(run)
  }

  /// Has the request of a run called again, if it was called, for all that await the run. Returns `false` if
  /// the run has ended.
  func restart(_ core: Machine.Core) -> Bool {
    // Otherwise it is called after this.
    guard core.node.hasCalledRequest else { return true }
    // Both under the lock: from then on the earlier launch leaves the end of the run to this one, which a
    // cancellation in between would have kept from beginning.
    let restarted = commit { machine in
      machine.restart(core.id).map { (new: $0, old: core.node.restart(launch: $0.launch)) }
    }
    guard let ((box, launch), old) = restarted else { return false }
    var context = box.configuration.context
    context.changeFacts { $0.launch = launch }
    old.task?.cancel()
    var leftovers = hub.beginEnd()
    let replaced = LaunchID(run: core.id, launch: launch - 1)
    hub.end(replaced, of: ObjectIdentifier(self), at: path, isCancelled: true, &leftovers)
    let newBox = Machine.Box(box.configuration.with(context))
    begin(AdmittedRun(core: core, box: newBox, mustLaunch: true, launch: launch))
    return true
  }

  private func begin(_ run: AdmittedRun) {
    let launch = run.launch
    let scope = settings.values.serialScope
    let began = hub.events.isObserved ? run.context.operationClock.elapsed() : nil
    if launch == 0 { send(.runStarted(run.context.eventRun), in: run.context) }
    let priority = run.box.configuration.priority
    let dependencies = launch == 0 ? run.core.node.startDependencies(priority) : []
    // A run that is launched again has kept its place in the queue.
    if let scope, launch == 0 { queue(run, in: scope, mustWait: !dependencies.isEmpty) }
    let name = run.box.configuration.name ?? types.taskName(in: run.context)
    let ticket = launch == 0 ? run.ticket ?? ticket(in: run.context) : nil
    run.core.node.attach(
      Task.make(name: name, on: run.context.executor, priority: priority) { [self] in
        if scope == nil, hub.outbox == nil {
          if !dependencies.isEmpty { await run.core.node.waitForDependencies(dependencies) }
          _ = await execute(run, nil, began: began)
        } else {
          await executeInTurn(run, ticket, after: dependencies, began: began)
        }
      }, launch: launch)
  }

  /// Executes a run after the runs that it depends on and those before it in its scope, and keeps the call
  /// in the outbox meanwhile, also while it waits.
  // What most runs do not need is not inlined: its variables would be in the frames of
  // all, which then need another allocation, and the benchmark fetch is over its limit. This function has to
  // stay short: with one more call the compiler does not specialise it, and runs in it cost four times as much.
  @inline(never)
  private func executeInTurn(
    _ run: AdmittedRun, _ ticket: Int?, after dependencies: [TaskDependency], began: Duration?
  ) async {
    let scope = settings.values.serialScope
    let entry = hub.outbox == nil ? nil : await call(of: run, ticket)
    let call = runCall(of: entry, for: run)
    let isOver = await keeping(entry, of: run) {
      await waitForTurn(of: run, in: scope, after: dependencies)
      return await execute(run, call, began: began)
    }
    if let scope, isOver { hub.queues.remove(run.core.id, from: scope) }
  }

  /// Puts a run into the queue of its scope, unless it waits for others first: one of them may need its
  /// turn before.
  private func queue(_ run: AdmittedRun, in scope: SerialScope, mustWait: Bool) {
    if run.isQueued, mustWait { hub.queues.remove(run.core.id, from: scope) }
    if !run.isQueued, !mustWait { hub.queues.append(run.core.node, to: scope) }
  }

  /// Waits for the runs that a run depends on, and then until it is the first of its queue.
  private func waitForTurn(
    of run: AdmittedRun, in scope: SerialScope?, after dependencies: [TaskDependency]
  ) async {
    if !dependencies.isEmpty { await run.core.node.waitForDependencies(dependencies) }
    guard let scope else { return }
    if !dependencies.isEmpty { hub.queues.append(run.core.node, to: scope) }
    // A run that waits for a connection keeps its place in the queue, and the runs behind it wait, too.
    _ = await run.context.mayAttempt(isRetry: false)
    await hub.queues.wait(for: run.core.id, in: scope) { run.core.progress.isEnded }
  }

  /// Calls the request, and commits its result. Returns whether the run is over: no launch has replaced
  /// this one.
  private func execute(_ run: AdmittedRun, _ call: RunCall?, began: Duration?) async -> Bool {
    if run.launch > 0, run.isReplaced { return false }
    // A run that was cancelled while it waited must not call its request any more. One that has to,
    // because its failure cannot be a cancellation, is cancelled there.
    let progress = run.core.progress
    if progress.isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
    if progress.isEnded {
      // The launch that this one replaced has not ended the request.
      run.core.node.endRequest(launch: run.launch)
      sendEnd(.cancelled, in: run.context, began: began)
      return true
    }
    guard let output = await output(of: run, call) else { return false }
    return finish(run, with: output, call, began: began)
  }

  /// Returns the output of the request; `nil` if the launch was replaced before it was called.
  private func output(of run: AdmittedRun, _ savedCall: RunCall?) async -> Machine.Output? {
    let (core, launch) = (run.core, run.launch)
    defer { core.node.endRequest(launch: launch) }
    // Where the failure cannot be a cancellation, the request is called, to return a result.
    if !run.context.mayAttemptOffline(isRetry: false),
      await !run.context.mayAttempt(isRetry: false),
      let failure = cancellationFailure(as: Failure.self)
    {
      return .failure(failure)
    }
    // It may have waited for a connection.
    if launch > 0, run.isReplaced { return nil }
    let (context, rules, failure) = beginCall(of: run, savedCall)
    if let failure { return .failure(failure) }
    // Not with `??`, to which closures are passed in another form.
    let call = if let rules { rules.call } else { request }
    let continuation = Continuation { Self.yield($0, from: core, launch) }
    return await CurrentWork.$value.withValue(core.node) { await call(context, continuation) }
  }

  /// Returns the context that the request is called with, and the rules of the run, which are removed from that
  /// context; or the failure of a run that must not call the request any more.
  private func beginCall(
    of run: AdmittedRun, _ call: RunCall?
  ) -> (context: OperationContext, rules: RequestRules<State>?, failure: Failure?) {
    var context = run.context
    if let call { context.changeFacts { $0.call = call } }
    // A run does not begin with what exclusive access has made of the state: it waits for the end.
    let (isPresent, mustBegin) = commit(as: .silent) { $0.willRun(run.core.id, in: &context) }
    // A run that has waited finds the edits that were settled meanwhile, and may find no pages any more.
    if mustBegin { commit { $0.begin(run.core.id, launch: run.launch, in: context) } }
    let rules = context.rules as? RequestRules<State>
    if rules != nil { context.changeFacts { $0.rules = nil } }
    // A run that a reset has ended may continue before it is cancelled itself.
    let failure = isPresent ? nil : cancellationFailure(as: Failure.self)
    // Not through the node: the task may not be attached to it yet.
    if !isPresent { withUnsafeCurrentTask { $0?.cancel() } }
    if failure == nil {
      run.core.node.beginRequest()
      send(.attemptBegan(context.eventRun, index: 0), in: context)
    }
    return (context, rules, failure)
  }

  /// Ends a run. Returns whether it is over: no launch has replaced this one.
  private func finish(
    _ run: AdmittedRun, with output: Machine.Output, _ call: RunCall?, began: Duration?
  ) -> Bool {
    let core = run.core
    var output = output
    // These are released here, without the lock.
    var record: Machine.Runs.Record?
    var leftovers = hub.beginEnd()
    // A flush that finds no run any more waits until the call is removed.
    let ticket = call == nil ? nil : hub.outbox?.nextTicket()
    defer { if let ticket { hub.outbox?.end(ticket: ticket) } }
    let end = commit { machine in
      let isReplaced = machine.isReplaced(core.id, launch: run.launch)
      // Under the lock under which the result is committed: here it is known whether the result counts, and
      // no other result comes in between.
      // There is nothing to end before a run has read another request.
      if hub.hasReaders {
        let isPresent = !isReplaced && machine.runs.contains(core.id)
        endEdges(of: run, isPresent: isPresent, &output, &leftovers)
      }
      return isReplaced ? nil : machine.end(core.id, output, releasing: &record)
    }
    // It reports a cycle that cannot be a failure of the request.
    if let cycle = leftovers?.cycle { _ = Machine.Core.failure(of: cycle, at: path) }
    guard let (isCounted, mustFollow, mustNotifyReaders) = end else { return false }
    guard isCounted || !run.isReplaced else { return false }
    // The result was dropped, though the task may not have been cancelled yet.
    if !isCounted { core.cancelRun() }
    let isCancelled = output.isCancellation || !isCounted
    sendEnd(isCancelled ? .cancelled : output.outcome, in: run.context, began: began)
    // Before awaiters continue.
    if mustNotifyReaders { hub.invalidateOutdatedReaders(of: path, isWritten: false) }
    if mustFollow { startPlannedRun() }
    if isCounted { call?.didEnd(output.failure) }
    core.end(with: output)
    // Not as a pair, which copies both: the benchmark fetch would be further over its limit.
    extendLifetime(record)
    extendLifetime(leftovers)
    return true
  }

  /// Ends the run in the graph of dependencies. The output becomes a failure if the run has closed a cycle.
  private func endEdges(
    of run: AdmittedRun, isPresent: Bool, _ output: inout Machine.Output,
    _ leftovers: inout StoreHub.Leftovers?
  ) {
    let isOver = output.isCancellation || !isPresent
    // After a failure or a further page, the store keeps a value that earlier runs made of what they read.
    let isPart =
      switch output {
      case .success(let value):
        State.kind == .pages && (value as? any PartialResult)?.isPart == true
      case .failure: true
      }
    hub.end(
      LaunchID(run: run.core.id, launch: run.launch), of: ObjectIdentifier(self), at: path,
      isCancelled: isOver, isPart: isPart, &leftovers)
    if let failure = leftovers?.cycle as? Failure { output = .failure(failure) }
  }

  /// Takes what a run yields. The task retains the store until it has ended; a continuation that is
  /// kept longer does not.
  private static func yield(_ result: Machine.Output, from core: Machine.Core, _ launch: Int) {
    let store = core.node.driver as? OperationStore
    if store?.yield(result, from: core.id, launch) == true { return }
    if core.progress.isEnded, !core.progress.isCancelled, !core.node.isReplaced(launch: launch) {
      OperationIssue.reportLateYield(of: State.OperationValue.self, at: core.node.origin?.path)
    }
  }

  /// Takes what a run yields. Returns `false` if the run is not in the store any more.
  func yield(_ result: Machine.Output, from id: OperationTaskID, _ launch: Int) -> Bool {
    guard let box = commit({ $0.yield(id, launch: launch, result) }) else { return false }
    let context = box.configuration.context
    send(.yielded(context.eventRun), in: context)
    return true
  }
}

extension OperationStore: TaskDriver {
  var isAwaited: Bool {
    settings.values.serialScope != nil || read { $0.freshness.hasFollowers }
  }

  var serialRun: TaskNode? {
    settings.values.serialScope.flatMap { hub.queues.currentRun(in: $0) }
  }

  func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool {
    let core = Machine.Core(task)
    // It calls the user's code, which must not run under the lock.
    _ = configuration.context.valuesHash
    // Before this task: of overlapping calls of a mutation the one that is started last is displayed. A client that
    // is shut down cancels this task, so that it needs none.
    if !hub.isClosed { _ = task.startDependencies(configuration.priority) }
    switch commit({ $0.start(core, configuration, joins: joins) }) {
    case .launch(let box): launch(AdmittedRun(core: core, box: box, mustLaunch: true))
    case .joined:
      task.escalate()
      send(.joined(configuration.context.eventRun), in: configuration.context)
    case .running: return false
    case .removed:
      // A cancelled run whose failure cannot be a cancellation has to run to have a result at all. For
      // any other run this changes nothing.
      launch(AdmittedRun(core: core, box: .init(configuration), mustLaunch: true))
    }
    return true
  }

  func note(_ step: RunStep, in context: OperationContext) {
    let launch = context.launch
    guard let node = context.runNode, !node.isReplaced(launch: launch) else { return }
    switch step {
    case .paused(let isPaused): commit { $0.setPaused(isPaused, node.id, launch: launch) }
    case .retry(nil): commit { $0.setRetry(nil, node.id, launch: launch) }
    case .retry(let retry?):
      // A retry below a modifier that changes the type of the failure.
      guard let failure = retry.lastFailure as? State.Failure else { return }
      let own = OperationRetry(
        failedAttempts: retry.failedAttempts, lastFailure: failure,
        nextAttemptAt: retry.nextAttemptAt)
      commit { $0.setRetry(own, node.id, launch: launch) }
    case .attemptBegan(let index):
      context.call?.attemptBegan()
      send(.attemptBegan(context.eventRun, index: index), in: context)
    case .pageBegan(let page): send(.pageBegan(context.eventRun, page: "\(page)"), in: context)
    case .pageEnded(let page): send(.pageEnded(context.eventRun, page: "\(page)"), in: context)
    }
  }

  func releaseLease(on id: OperationTaskID) {
    let (core, mustFollow) = commit { $0.releaseLease(on: id) }
    if mustFollow { startPlannedRun() }
    core?.cancelRun()
  }
}

extension Result {
  fileprivate var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }

  fileprivate var outcome: OperationClientEvent.Outcome {
    failure.map { .failure($0) } ?? .success
  }
}
