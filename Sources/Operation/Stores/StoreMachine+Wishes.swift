import ReactiveStreams

/// How a run of a store comes about, from the wish for one to its start.
extension StoreMachine {
  /// A wish for a run.
  final class Wish: Sendable {
    let task: Task
    let lease: Lease
    let handler: Subscriber<Event>?
    /// How many values had landed when the wish arose, if none is needed when one has come since. For
    /// an awaiter, any run in an equivalent context will do then, whatever the request says.
    let seenUpdates: Int?

    var core: Core { task.core }

    init(
      core: Core, box: Box, lease: Lease,
      handler: Subscriber<Event>? = nil, seenUpdates: Int? = nil
    ) {
      task = Task(core, box: box)
      self.lease = lease
      self.handler = handler
      self.seenUpdates = seenUpdates
    }
  }

  /// Who holds a run from its beginning.
  enum Lease: Sendable {
    /// Somebody who waits for the result.
    case awaiter
    /// The subscribers, as long as there are any.
    case observers
    /// A handle that can start the run.
    case handle
  }

  enum Grant: Sendable {
    /// A predicate of the user has to decide first.
    case ask([Runs.Candidate])
    /// Nobody observes any more, or there is nothing to run with.
    case refused
    /// The run, new or joined, and how many invalidations there had been when it began; it has to be
    /// launched where `isStarted` says so.
    case granted(Box, Core, isStarted: Bool, generation: Int)
  }

  /// Lets somebody wait for a run about which he says no more than its context: for the started one
  /// that is the same, or for a new one; `nil` where more has to be seen to, which takes a wish.
  mutating func enter(
    _ box: Box, input: (any RunInput)?, driver: any TaskDriver, place: OperationRun.Place?
  ) -> (core: Core, box: Box, isStarted: Bool)? {
    guard exclusive.isNone else { return nil }
    if !runs.isEmpty {
      return joinStarted(in: box.configuration.context, input: input).map {
        ($0.core, $0.box, false)
      }
    }
    // A place in a line is taken before.
    if context.settings.values.serialScope != nil { return nil }
    let core = Core(driver: driver, place: place)
    var context = box.configuration.context.beginning(core.node, input: input, over: self.context)
    _ = state.taskToJoin(in: &context)
    let task = Task(core, box: Box(box.configuration.with(consume context)))
    let (box, isStarted) = schedule(consume task, lease: .awaiter, handlers: [])
    return (core, box, isStarted)
  }

  /// Takes a lease on the started run that one in `context` is, if there is nothing else to look at.
  mutating func joinStarted(
    in context: OperationContext, input: (any RunInput)?
  ) -> (core: Core, box: Box)? {
    guard exclusive.isNone, !runs.isEmpty,
      case .equivalentContexts = self.context.settings.values.deduplication
    else { return nil }
    var context = context.over(self.context)
    if context.input !== input { context.input = input }
    guard state.taskToJoin(in: &context) == nil else { return nil }
    return runs.joinStarted(equivalentTo: context)
  }

  /// Joins the run that is the wish, or makes a new one.
  mutating func grant(_ wish: Wish, verdict: Runs.Verdict?) -> Grant {
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
    // What was never called cannot be called again.
    if wish.lease == .observers, State.kind == .mutation, context.input == nil,
      State.self is any CallState.Type
    {
      return .refused
    }
    switch runs.admit(context, rule: rule, verdict: verdict) {
    case .ask(let candidates): return .ask(candidates)
    case .join(let core): return join(core, wish)
    case .new:
      var task = wish.task
      task.setContext(context)
      let (box, isStarted) = schedule(
        task, lease: wish.lease, handlers: wish.handler.map { [$0] } ?? [])
      return .granted(box, wish.core, isStarted: isStarted, generation: freshness.generation)
    }
  }

  /// The run that the observers hold already, if it is as new as what they could start.
  var taskOfObservers: Task? {
    for index in runs.records.indices {
      let task = runs.records.read(at: index) {
        $0.isStarted && $0.isHeldByObservers && $0.payload.generation == freshness.generation
          ? $0.task : nil
      }
      if let task { return task }
    }
    return nil
  }

  /// Whether somebody else has fetched, since the wish arose, what it is about.
  func isLate(_ wish: Wish) -> Bool {
    let cause = wish.core.node.cause
    if cause == .invalidation || cause == .dependency {
      return !freshness.isInvalidated || freshness.answered == freshness.generation
    }
    if freshness.isInvalidated { return false }
    return wish.seenUpdates.map { $0 != landingCount } ?? false
  }

  mutating func schedule(
    _ task: consuming Task, lease: Lease, handlers: [Subscriber<Event>]
  ) -> (box: Box, isStarted: Bool) {
    var task = consume task
    let box = task.box
    state.scheduleFetchTask(&task)
    if !yields.isEmpty {
      changeBeforeYields { [task] state in
        var task = task
        state.scheduleFetchTask(&task)
      }
    }
    var record = Runs.Record(
      task: task, wished: task.box === box ? nil : box, payload: RunPayload(handlers: handlers))
    let isStarted = hold(&record, lease)
    runs.insert(consume record)
    if isStarted { tell(.runStarted(OperationRun(task: task)), also: handlers) }
    commit(for: handlers)
    return (task.box, isStarted)
  }

  mutating func join(_ core: Core, _ wish: Wish) -> Grant {
    if let handler = wish.handler, let record = runs[core.id] {
      runs.update(core.id) { $0.payload.handlers.append(handler) }
      if record.isStarted {
        deliveries.notify([handler], of: .runStarted(record.run))
      }
    }
    let isStarted = hold(core, wish.lease)
    let record = runs[core.id]
    return .granted(
      record?.task.box ?? wish.task.box, core, isStarted: isStarted,
      generation: record?.payload.generation ?? freshness.generation)
  }

  /// Takes a lease on a run in the table; tells whether that started it.
  mutating func hold(_ core: Core, _ lease: Lease) -> Bool {
    guard var record = runs[core.id] else { return false }
    let isStarted = hold(&record, lease)
    runs.insert(record)
    if isStarted { tell(.runStarted(record.run), also: record.payload.handlers) }
    return isStarted
  }

  /// Takes a lease, which starts the run unless it is a mere handle; tells whether it did.
  mutating func hold(_ record: inout Runs.Record, _ lease: Lease) -> Bool {
    switch lease {
    case .awaiter: record.awaiters += 1
    case .observers: record.isHeldByObservers = true
    case .handle: record.handles += 1
    }
    if lease == .handle || record.isStarted { return false }
    record.isStarted = true
    // What is to run behind others is not answered by what does not wait for them.
    let isEarly = !followsAfter.isEmpty
    record.payload.generation = isEarly ? freshness.answered : freshness.generation
    record.payload.isAnswer = !isEarly && Self.isAboutWhole(record) && freshness.answer()
    record.payload.settlements = settlementCount
    return true
  }

  /// The request of a run that was started is called now.
  mutating func begin(_ id: OperationTaskID) {
    let settlements = settlementCount
    runs.update(id) { $0.payload.settlements = settlements }
  }

  /// What became of the wish to start a scheduled run or to wait for it.
  enum Entry: Sendable {
    /// The run has to be launched.
    case launch(Box)
    /// Somebody else has started the run, and launches it.
    case joined
    /// Somebody else has started the run, and no lease was taken on it.
    case underWay
    /// The run has left the store.
    case gone
  }

  /// Somebody starts a scheduled run, or waits for it, too; who comes `onlyToStart` takes no lease on
  /// one that was started.
  mutating func enter(
    _ core: Core, _ configuration: OperationTaskConfiguration, onlyToStart: Bool = false
  ) -> Entry {
    guard let record = runs[core.id] else { return .gone }
    if record.isStarted, onlyToStart { return .underWay }
    if !record.isStarted {
      runs.update(core.id) {
        $0.payload.given = $0.wished ?? $0.task.box
        $0.task.configuration = configuration
        // It is told from others by what it runs with.
        $0.wished = nil
      }
    }
    guard hold(core, .awaiter), let box = runs[core.id]?.task.box else { return .joined }
    return .launch(box)
  }
}
