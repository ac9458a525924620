import ReactiveStreams

/// The transitions by which a run is started or joined.
extension StoreMachine {
  /// A run that a caller, an observer or a condition requests: it joins a run in flight, or starts.
  struct NewRun: Sendable {
    let core: Core
    let box: Box
    let lease: Lease
    var handler: Subscriber<Event>?
    /// The result count when the run was requested, if no run is needed once there is another result. An
    /// awaiter then joins any run in an equivalent context, whatever the request's deduplication.
    var seenResults: Int?
    /// Whether the new run may join one from before the last invalidation.
    var joinsOutdated = false
    /// Whether the request of the run that it joins is called again, which then answers the last invalidation.
    var restarts = false

    var context: OperationContext { box.configuration.context }
  }

  enum Admission: Sendable {
    /// The user's predicate has to compare contexts first.
    case compare([RunCandidate])
    /// There are no observers any more, or there is nothing to run with.
    case refused
    case admitted(AdmittedRun)
  }

  /// The run of the store that serves a new one: the new one itself, or one in flight that it has joined.
  struct AdmittedRun: Sendable {
    let core: Core
    let box: Box
    /// Whether the caller launches the run, because it has started it.
    let mustLaunch: Bool
    /// Whether the run has its place in the queue of its scope.
    var isQueued = false
    /// The place of the call among those of the outbox; `nil` if it has none yet, or is not saved.
    var ticket: Int?
    /// The number of restarts before this launch of the run.
    var launch = 0

    /// Whether a later launch has replaced this one.
    var isReplaced: Bool { core.node.isReplaced(launch: launch) }
    var task: Task { Task(core, box: box) }
    var context: OperationContext { box.configuration.context }
  }

  /// Joins a run in flight that is the same, or makes the new one a run of the store.
  mutating func admit(_ new: NewRun, verdict: RunVerdict?) -> Admission {
    if isLate(new) { return .refused }
    if new.lease == .observers, deliveries.subscriberCount == 0 || taskOfObservers != nil {
      return .refused
    }
    let takesAny = new.seenResults != nil && new.lease == .awaiter
    // Each saved call has to leave the outbox by a run of its own.
    let isSaved = new.context.input?.savedCall != nil
    let rule: Deduplication =
      isSaved ? .never : takesAny ? .equivalentContexts : context.settings.values.deduplication
    var context = new.context
    let epoch = new.joinsOutdated ? 0 : freshness.invalidationCount
    let joined = state.taskToJoin(in: &context).flatMap { id in
      runs[id].flatMap { $0.isOutdated(since: epoch, restarts: new.restarts) ? nil : $0.core }
    }
    if let joined { return .admitted(join(joined, new)) }
    // A mutation that was never called has no arguments to run with.
    if new.lease == .observers, State.kind == .mutation, context.input == nil,
      State.self is any CallState.Type
    {
      return .refused
    }
    var admission = runs.admit(context, rule: rule, verdict: verdict, since: epoch)
    if new.restarts, case .new = admission {
      admission = runs.admit(context, rule: rule, verdict: verdict, since: epoch, restarts: true)
    }
    switch admission {
    case .compare(let candidates): return .compare(candidates)
    case .join(let core): return .admitted(join(core, new))
    case .new: return .admitted(schedule(new, in: context))
    }
  }

  /// The run that the observers hold, if it is as new as one that they could start.
  var taskOfObservers: Task? {
    runs.records.first {
      $0.isStarted && $0.isHeldByObservers
        && $0.payload.invalidationCount == freshness.invalidationCount
    }?.task
  }

  /// Returns whether the new run is not needed any more: there was a result since it was requested, or, after
  /// an invalidation, the store needs no run, or another run has answered the invalidation.
  private func isLate(_ new: NewRun) -> Bool {
    let cause = new.core.node.cause
    if cause == .invalidation || cause == .dependency { return !mustFollow }
    if freshness.isInvalidated { return false }
    return new.seenResults.map { $0 != committed.resultCount } ?? false
  }

  private mutating func schedule(_ new: NewRun, in context: OperationContext) -> AdmittedRun {
    var task = Task(new.core, box: new.box)
    task.setContext(context)
    let compared = task.box
    committed.change { $0.scheduleFetchTask(&task) }
    if !committed.yields.isEmpty {
      committed.changeYields { [task] state in
        var task = task
        state.scheduleFetchTask(&task)
      }
    }
    let box = task.box
    let handlers = new.handler.map { [$0] } ?? []
    var record = Runs.Record(
      task: task, compared: box === compared ? nil : compared,
      payload: RunPayload(handlers: handlers))
    let isStarted = record.hold(new.lease)
    if isStarted { start(&record) }
    runs.insert(consume record)
    notifyChange(also: handlers)
    return AdmittedRun(core: new.core, box: box, mustLaunch: isStarted)
  }

  /// Takes a lease on a run of the table.
  private mutating func join(_ core: Core, _ new: NewRun) -> AdmittedRun {
    if let handler = new.handler {
      // Not through a copy of the record, with which each handler would copy those before it.
      let started = runs.update(core.id) { record in
        record.payload.handlers.append(handler)
        return record.isStarted ? record.run : nil
      }
      if let run = started ?? nil { deliveries.notify(handler, of: .runStarted(run)) }
    }
    let isStarted = hold(core, new.lease)
    return AdmittedRun(
      core: core, box: runs.update(core.id) { $0.task.box } ?? new.box, mustLaunch: isStarted)
  }

  /// Takes a lease on a run of the table. Returns whether that started the run.
  private mutating func hold(_ core: Core, _ lease: Lease) -> Bool {
    guard runs.update(core.id, { $0.hold(lease) }) == true, var record = runs[core.id] else {
      return false
    }
    start(&record)
    runs.update(core.id) { $0 = record }
    return true
  }

  /// Starts a run that has its first lease.
  private mutating func start(_ record: inout Runs.Record) {
    if State.kind == .mutation {
      let task = record.task
      committed.changeAll { $0.startFetchTask(task) }
    }
    countStart(of: &record)
    notify(.runStarted(record.run), also: record.payload.handlers)
  }

  /// Notes what a run that is started now has to answer.
  mutating func countStart(of record: inout Runs.Record) {
    record.startEpoch = freshness.invalidationCount
    record.payload.begunKind = nil
    // A run that does not wait for the dependencies of a follow-up is no answer.
    let isEarly = !freshness.followUpDependencies.isEmpty
    record.payload.invalidationCount =
      isEarly ? freshness.answeredCount : freshness.invalidationCount
    record.payload.isAnswer = !isEarly && Self.isAboutWhole(record) && freshness.answer()
    record.payload.settlements = edits.settlementCount
  }

  /// Notes the settled edits when the request of a run is called, and the kind of its pages, if that is
  /// another one now.
  mutating func begin(_ id: OperationTaskID, launch: Int = 0, in context: OperationContext) {
    guard let record = runs[id], record.payload.launch == launch else { return }
    let settlements = edits.settlementCount
    runs.update(id) {
      $0.payload.settlements = settlements
      $0.payload.begunKind = context.pageRunKind
    }
    guard isForOtherPages(id, in: context) else { return }
    var task = record.task
    task.setContext(context)
    // Not in the table, which finds the run by the context that it was scheduled with.
    committed.changeAll { $0.startFetchTask(task) }
    notifyChange(also: record.payload.handlers)
  }

  /// The outcome of starting a scheduled run.
  enum Start: Sendable {
    /// The caller launches the run.
    case launch(Box)
    /// The run was started before; the caller has a lease on it.
    case joined
    /// The run was started before; the caller has no lease on it.
    case running
    /// The run is not in the store any more.
    case removed
  }

  /// Starts a scheduled run, or joins it.
  ///
  /// - Parameter joins: Whether the caller takes a lease on a run that was started before.
  mutating func start(
    _ core: Core, _ configuration: OperationTaskConfiguration, joins: Bool = true
  ) -> Start {
    guard let isStarted = runs.update(core.id, { $0.isStarted }) else { return .removed }
    if isStarted, !joins { return .running }
    if !isStarted {
      runs.updateContext(of: core.id) { record in
        record.payload.scheduledBox = record.compared ?? record.task.box
        record.task.box = Box(configuration)
        // New runs are compared with what it runs with.
        record.compared = nil
      }
    }
    guard hold(core, .awaiter), let box = runs[core.id]?.task.box else { return .joined }
    return .launch(box)
  }
}
