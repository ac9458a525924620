import ReactiveStreams

/// The runs of a store, from the wish for one to its end.
extension StoreMachine {
  /// A wish for a run.
  @usableFromInline final class Wish: Sendable {
    @usableFromInline let core: Core
    @usableFromInline let task: Task
    @usableFromInline let cause: OperationRun.Cause
    @usableFromInline let lease: Lease
    @usableFromInline let handler: Subscriber<Event>?
    /// How often a value had come when the wish arose, if none is needed when one has come since. For
    /// an awaiter, any run in an equivalent context will do then, whatever the request says.
    @usableFromInline let seenUpdates: Int?

    @inlinable init(
      core: Core, configuration: OperationTaskConfiguration, cause: OperationRun.Cause,
      lease: Lease, handler: Subscriber<Event>? = nil, seenUpdates: Int? = nil
    ) {
      self.core = core
      task = Task(handle: core, configuration: configuration)
      self.cause = cause
      self.lease = lease
      self.handler = handler
      self.seenUpdates = seenUpdates
    }
  }

  /// Who holds a run from its beginning.
  @usableFromInline enum Lease: Sendable {
    /// Somebody who waits for the result.
    case awaiter
    /// The subscribers, as long as there are any.
    case observers
    /// A handle that can start the run.
    case handle
  }

  @usableFromInline enum Grant: Sendable {
    /// A predicate of the user has to decide first.
    case ask([Runs.Candidate])
    /// Nobody observes any more.
    case refused
    /// The run, new or joined; it has to be launched where `isStarted` says so.
    case granted(Task, Core, isStarted: Bool)
  }

  /// Takes a lease on the started run that one in `context` is, if nothing else has to be seen to:
  /// then no wish has to be made for it.
  @inlinable mutating func joinStarted(in context: OperationContext, input: RunInput?) -> Core? {
    guard isPlain, !runs.isEmpty,
      case .equivalentContexts = self.context.settings.values.deduplication
    else { return nil }
    var context = context.over(self.context)
    context.input = input
    guard state.taskToJoin(in: &context) == nil,
      case .join(let core) = runs.admit(context, rule: .equivalentContexts, verdict: nil),
      runs[core.id]?.isStarted == true
    else { return nil }
    runs.update(core.id) { $0.awaiters += 1 }
    return core
  }

  /// Joins the run that is the wish, or makes a new one.
  @inlinable mutating func grant(_ wish: Wish, verdict: Runs.Verdict?) -> Grant {
    if isLate(wish) { return .refused }
    if wish.lease == .observers, deliveries.subscriberCount == 0 || taskOfObservers != nil {
      return .refused
    }
    let takesAny = wish.seenUpdates != nil && wish.lease == .awaiter
    let rule = takesAny ? .equivalentContexts : context.settings.values.deduplication
    var context = wish.task.context
    if let id = state.taskToJoin(in: &context), let record = runs[id] {
      return join(record.core, wish)
    }
    switch runs.admit(context, rule: rule, verdict: verdict) {
    case .ask(let candidates): return .ask(candidates)
    case .join(let core): return join(core, wish)
    case .new: return schedule(wish, in: context)
    }
  }

  /// The run that the observers hold already, if it is as new as what they could start.
  @usableFromInline var taskOfObservers: Task? {
    runs.records.elements.first {
      $0.isStarted && $0.isHeldByObservers && $0.payload.generation == freshness.generation
    }?.payload.task
  }

  /// Whether somebody else has fetched, since the wish arose, what it is about.
  @inlinable func isLate(_ wish: Wish) -> Bool {
    if freshness.isInvalidated { return false }
    if let seen = wish.seenUpdates { return seen != state.valueUpdateCount }
    return wish.cause == .invalidation || wish.cause == .dependency
  }

  @inlinable mutating func schedule(_ wish: Wish, in context: OperationContext) -> Grant {
    var task = wish.task
    task.setContext(context)
    state.scheduleFetchTask(&task)
    if !yielding.isEmpty {
      changeRestorations { [task] state in
        var task = task
        state.scheduleFetchTask(&task)
      }
    }
    let handlers = wish.handler.map { [$0] } ?? []
    var record = Runs.Record(
      core: wish.core, context: context,
      payload: RunPayload(cause: wish.cause, task: task, handlers: handlers))
    let isStarted = hold(&record, wish.lease)
    runs.insert(record)
    if isStarted {
      tell(.runStarted(OperationRun(task: task, cause: wish.cause)), also: handlers)
    }
    commit(for: handlers)
    return .granted(task, wish.core, isStarted: isStarted)
  }

  @inlinable mutating func join(_ core: Core, _ wish: Wish) -> Grant {
    if let handler = wish.handler, let record = runs[core.id] {
      runs.update(core.id) { $0.payload.handlers.append(handler) }
      if record.isStarted {
        deliveries.tell(.runStarted(record.payload.run), only: [handler])
      }
    }
    let isStarted = hold(core, wish.lease)
    let task = runs[core.id]?.payload.task ?? wish.task
    return .granted(task, core, isStarted: isStarted)
  }

  /// Takes a lease on a run in the table; tells whether that started it.
  @inlinable mutating func hold(_ core: Core, _ lease: Lease) -> Bool {
    guard var record = runs[core.id] else { return false }
    let isStarted = hold(&record, lease)
    runs.insert(record)
    if isStarted { tell(.runStarted(record.payload.run), also: record.payload.handlers) }
    return isStarted
  }

  /// Takes a lease, which starts the run unless it is a mere handle; tells whether it did.
  @inlinable func hold(_ record: inout Runs.Record, _ lease: Lease) -> Bool {
    switch lease {
    case .awaiter: record.awaiters += 1
    case .observers: record.isHeldByObservers = true
    case .handle: record.handles += 1
    }
    if lease == .handle || record.isStarted { return false }
    record.isStarted = true
    record.payload.generation = freshness.generation
    record.payload.settlements = settlementCount
    return true
  }

  /// The request of a run that was started is called now.
  @inlinable mutating func begin(_ id: OperationTaskID) {
    let settlements = settlementCount
    runs.update(id) { $0.payload.settlements = settlements }
  }

  /// What became of the wish to start a scheduled run or to wait for it.
  @usableFromInline enum Entry: Sendable {
    /// The run has to be launched.
    case launch(Task)
    /// Somebody else has started the run, and launches it.
    case joined
    /// Somebody else has started the run, and no lease was taken on it.
    case underWay
    /// The run has left the store.
    case gone
  }

  /// Somebody starts a scheduled run, or waits for it, too; who comes `onlyToStart` takes no lease on
  /// one that was started.
  @inlinable mutating func enter(
    _ core: Core, _ configuration: OperationTaskConfiguration, onlyToStart: Bool = false
  ) -> Entry {
    guard let record = runs[core.id] else { return .gone }
    if record.isStarted, onlyToStart { return .underWay }
    if !record.isStarted { runs.update(core.id) { $0.payload.task.configuration = configuration } }
    guard hold(core, .awaiter), let task = runs[core.id]?.payload.task else { return .joined }
    return .launch(task)
  }

  /// A run yielded; tells whether it counts.
  @inlinable mutating func yield(_ id: OperationTaskID, _ output: Output) -> Bool {
    guard let payload = runs[id]?.payload else { return false }
    guard !output.isCancellation else {
      tell(.yielded(output, payload.run), also: payload.handlers)
      return true
    }
    let restoration = nextRestoration(of: payload)
    resultCount += 1
    takeIn(output, payload)
    tell(.yielded(output, payload.run), also: payload.handlers)
    commit(for: payload.handlers)
    runs.update(id) { $0.payload.restoration = restoration }
    yielding.insert(id)
    return true
  }

  /// How a yield that comes now is undone.
  @usableFromInline mutating func nextRestoration(of payload: RunPayload) -> Restoration {
    guard let earlier = payload.restoration else {
      return Restoration(
        state: base, resultCount: resultCount + 1,
        idsInFloor: overlay?.layers.idsInFloor ?? [])
    }
    release(earlier)
    let isUndisturbed = earlier.resultCount == resultCount
    return Restoration(
      state: isUndisturbed ? earlier.state : nil, resultCount: resultCount + 1,
      idsInFloor: earlier.idsInFloor)
  }

  /// Changes what yields would go back to, too, when the tasks of the state change.
  @usableFromInline mutating func changeRestorations(_ change: (inout State) -> Void) {
    for id in yielding {
      runs.update(id) { record in
        guard var earlier = record.payload.restoration?.state.take() else { return }
        change(&earlier)
        record.payload.restoration?.state = earlier
      }
    }
  }

  /// A run begins to wait for a connection, or goes on.
  @inlinable mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    guard let payload = runs[id]?.payload else { return }
    state.setPaused(isPaused, id)
    changeRestorations { $0.setPaused(isPaused, id) }
    commit(for: payload.handlers)
  }

  @inlinable mutating func finishTask(of record: Runs.Record) {
    state.finishFetchTask(record.payload.task)
    if yielding.isEmpty { return }
    changeRestorations { $0.finishFetchTask(record.payload.task) }
  }

  private mutating func giveUpTask(of record: Runs.Record) {
    state.giveUpFetchTask(record.payload.task)
    changeRestorations { $0.giveUpFetchTask(record.payload.task) }
  }

  /// A run ended; tells whether one has to follow.
  @inlinable mutating func end(_ id: OperationTaskID, _ output: Output) -> Bool {
    guard let record = remove(id) else {
      tellLateEnd(id, output)
      return false
    }
    if holdsMore(record) { released.records.append(record) }
    if output.isCancellation {
      giveUp(record)
    } else {
      resultCount += 1
      takeIn(output, record.payload)
      finishTask(of: record)
      if case .success = output, isAboutWhole(record.payload) {
        freshness.refresh(since: record.payload.generation)
      }
      commit(for: record.payload.handlers)
      tell(.runEnded(output, record.payload.run), also: record.payload.handlers)
    }
    return mustFollow(record.payload)
  }

  /// Whether the record of a run that ends may be the last to hold something of the user's. The run
  /// itself holds its task, and so the context, unless the task was given another one.
  @inlinable func holdsMore(_ record: Runs.Record) -> Bool {
    let payload = record.payload
    return !payload.handlers.isEmpty || !payload.boxedRestoration.isNone
      || !record.context.isIdentical(to: payload.task.context)
  }

  @inlinable mutating func takeIn(_ output: Output, _ payload: RunPayload) {
    guard case .success(let value) = output else {
      return state.update(with: output, for: payload.task)
    }
    let isPart = State.kind == .pages && (value as? any PartialResult)?.isPart == true
    land(after: payload.settlements, isWhole: !isPart) {
      $0.update(with: output, for: payload.task)
    }
  }

  /// Whether a run fetches what an invalidation is about, and not only a page more.
  @inlinable func isAboutWhole(_ payload: RunPayload) -> Bool {
    guard State.kind == .pages else { return true }
    switch payload.task.context.pageRunKind {
    case .nextPage, .previousPage: return false
    case .initialPage, .allPages, .refetch: return true
    }
  }

  /// Takes out a run that is over; its record has to be released without the lock.
  @inlinable mutating func remove(_ id: OperationTaskID) -> Runs.Record? {
    guard let record = runs.remove(id) else { return nil }
    retire(id)
    return record
  }

  @inlinable mutating func retire(_ id: OperationTaskID) {
    if !yielding.isEmpty { yielding.remove(id) }
    if !boxedOverlay.isNone { overlay?.layers.runEnded() }
  }

  /// Whether a run has to follow one that began before an invalidation.
  @inlinable func mustFollow(_ payload: RunPayload) -> Bool {
    needsRerun && payload.generation < freshness.generation
  }

  /// Somebody who waited goes; returns the run if nobody holds it any more, and whether one has to
  /// follow.
  @inlinable mutating func leave(_ id: OperationTaskID) -> (core: Core?, mustFollow: Bool) {
    runs.update(id) { $0.awaiters -= 1 }
    guard let payload = runs[id]?.payload, let core = releaseIfFree(id) else { return (nil, false) }
    return (core, mustFollow(payload))
  }

  /// A handle went away.
  @inlinable mutating func dropHandle(_ id: OperationTaskID) -> Core? {
    runs.update(id) { $0.handles -= 1 }
    guard runs[id]?.isStarted == false else { return nil }
    return releaseIfFree(id)
  }

  @inlinable mutating func releaseIfFree(_ id: OperationTaskID) -> Core? {
    guard let record = runs.removeIfFree(id, observerCount: deliveries.subscriberCount) else {
      return nil
    }
    retire(id)
    giveUp(record)
    released.records.append(record)
    return record.core
  }

  /// The run is over for everybody.
  @inlinable mutating func cancel(_ id: OperationTaskID) -> Core? {
    guard let record = remove(id) else { return nil }
    giveUp(record)
    released.records.append(record)
    return record.core
  }

  @inlinable mutating func cancelAll() -> [Core] {
    runs.ids.compactMap { cancel($0) }
  }

  mutating func takeAllRuns() -> [Runs.Record] {
    runs.ids.compactMap { remove($0) }
  }

  /// Puts back what was there before a run that is over.
  @usableFromInline mutating func giveUp(_ record: Runs.Record) {
    let payload = record.payload
    if let restoration = payload.restoration, restoration.resultCount == resultCount,
      let earlier = restoration.state
    {
      resultCount += 1
      replaceState(with: earlier)
      overlay?.layers.restore(earlier.currentValue, idsInFloor: restoration.idsInFloor)
    }
    giveUpTask(of: record)
    commit(for: payload.handlers)
    tellCancelled(record)
  }

  /// Tells that a cancelled run is over: now, or when its request has ended, if its failure cannot
  /// say that it was cancelled.
  mutating func tellCancelled(_ record: Runs.Record) {
    guard record.isStarted else { return }
    if let failure = cancellationFailure(as: State.Failure.self) {
      let payload = record.payload
      tell(.runEnded(.failure(failure), payload.run), also: payload.handlers)
    } else {
      unended[record.core.id] = record
    }
  }

  @usableFromInline mutating func tellLateEnd(_ id: OperationTaskID, _ output: Output) {
    guard let record = unended.removeValue(forKey: id) else { return }
    release(record)
    let payload = record.payload
    tell(.runEnded(output, payload.run), also: payload.handlers)
  }

  /// The runs of this store, as a snapshot tells of them.
  var snapshotRuns: [OperationClientSnapshot.Run] {
    runs.records.elements.sorted { $0.id < $1.id }.map {
      OperationClientSnapshot.Run(
        id: $0.core.id.rawValue, cause: $0.payload.cause, isStarted: $0.isStarted)
    }
  }

  /// How many hold a run of this store.
  var leaseCount: Int {
    runs.records.elements.reduce(0) { count, record in
      count + record.awaiters + (record.isHeldByObservers ? deliveries.subscriberCount : 0)
    }
  }
}

extension Result {
  @inlinable var isCancellation: Bool {
    if case .failure(let error) = self { error is CancellationError } else { false }
  }
}
