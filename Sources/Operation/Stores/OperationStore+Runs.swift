import ReactiveStreams

extension OperationStore {
  /// Hears of one run.
  public typealias EventHandler = @Sendable (OperationEvent<State>) -> Void

  /// Runs the request, or joins the run that is the same, and waits for the result.
  ///
  /// The waiting holds a lease; the run is cancelled when the last lease on it is gone. A cancelled
  /// caller leaves at once with `CancellationError` where the failure is `any Error`; with another
  /// failure it gets what the run ends with. A request that awaits the run that it is in would wait
  /// for ever: it gets ``OperationDependencyError``, or, with a failure of its own, a report.
  ///
  /// - Parameters:
  ///   - context: Lies over the context of the store for this run.
  ///   - handler: Hears of this run only: its start, its yields, what it does to the state, and its
  ///     end.
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(box(context), handler: handler)
  }

  /// Runs the request, as ``run(using:handler:)`` does: the word for queries, pages and mutations.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(using: context, handler: handler)
  }

  /// Runs the request with a name, a priority and a context.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using configuration: OperationTaskConfiguration, handler: EventHandler? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    try await run(Machine.Box(configuration), handler: handler)
  }

  /// What a run is asked for with: an object, as it is captured on the way, and mostly the same one.
  func box(_ context: OperationContext?) -> Machine.Box {
    if let context { Machine.Box(context) } else { .empty }
  }

  nonisolated(nonsending) func run(
    _ box: Machine.Box, input: (any RunInput)? = nil, handler: EventHandler?
  ) async throws(State.Failure) -> State.OperationValue {
    try await result(of: enter(box, input: input, handler: handler))
  }

  /// Joins the run that is the same, or makes one; the caller holds it.
  func enter(
    _ box: Machine.Box, input: (any RunInput)?, handler: EventHandler?
  ) -> Place {
    if handler == nil,
      let run = commit({ $0.enter(box, input: input, driver: self, place: runPlace) })
    {
      return Place(run.core, run.box, isToBeLaunched: run.isStarted)
    }
    while true {
      let wish = makeWish(box, cause: .fetch, lease: .awaiter, input: input, handler: handler)
      if let place = admit(wish) { return place }
    }
  }

  /// Runs the request, or joins any run that is the same, unless a value has come since there had
  /// been so many; says how many invalidations there had been when the run began.
  nonisolated(nonsending) func run(
    unlessUpdatedSince updates: Int
  ) async throws(State.Failure) -> (State.OperationValue, generation: Int)? {
    let wish = makeWish(.empty, cause: .fetch, lease: .awaiter, seenUpdates: updates)
    guard let place = admit(wish) else { return nil }
    return (try await result(of: place), place.generation)
  }

  /// Waits for a run that the caller holds, and starts it at the very moment at which the caller
  /// suspends: then a thread is free for it, and none has to be woken.
  nonisolated(nonsending) func result(
    of place: Place
  ) async throws(State.Failure) -> State.OperationValue {
    // Not if the caller is that run.
    if place.core.node.isWaitedForByItself, let failure = failure(of: .cycle([path])) {
      abandon(place)
      throw failure
    }
    return try await place.core.result(isToBeStarted: place.isToBeLaunched) {
      launch(place, isFirst: $0)
    }.get()
  }

  /// A caller goes without having waited for a run that he holds. Who has joined it meanwhile gets it
  /// started; where nobody has, it gives back its place in the line.
  func abandon(_ place: Place) {
    leave(place.core.id)
    if place.isToBeLaunched { start(place) }
  }

  /// Schedules a run, or joins the one that is the same, without starting it.
  ///
  /// The task is in the state from now on, and leaves it as if it had never been when it is dropped
  /// before it was started.
  public func runTask(
    using context: OperationContext? = nil
  ) -> OperationTask<State.OperationValue, State.Failure> {
    runTask(box(context))
  }

  /// Schedules a run with a name, a priority and a context, without starting it.
  public func runTask(
    using configuration: OperationTaskConfiguration
  ) -> OperationTask<State.OperationValue, State.Failure> {
    runTask(Machine.Box(configuration))
  }

  func runTask(
    _ box: Machine.Box, input: (any RunInput)? = nil
  ) -> OperationTask<State.OperationValue, State.Failure> {
    while true {
      let wish = makeWish(box, cause: .fetch, lease: .handle, input: input)
      guard let place = admit(wish) else { continue }
      let id = place.core.id
      return place.task.keeping(
        TaskLifetime { [self] in commit { $0.dropHandle(id) }?.cancelRun() })
    }
  }

  /// Cancels all runs of the store for everybody. What was there before them is there again.
  public func cancel() {
    commitCancelling { $0.cancelAll().map { core in { core.cancelRun() } } }
  }

  /// Marks the value, and those of all requests that read it, as out of date, and runs what somebody
  /// observes of them: each once, and each after what it reads.
  ///
  /// A run that is under way is shown when it ends, but the value stays out of date, and one run
  /// follows, however many invalidations there were.
  public func invalidate() {
    hub.invalidate([OpaqueOperationStore(self)])
  }

  func perform(_ step: InvalidationStep) -> TaskDependency? {
    switch step {
    case .mark:
      _ = commit { $0.invalidate() }
      return nil
    case .rerun(let cause, let others):
      if read({ $0.needsRerun }), let task = runForObservers(cause: cause, after: others) {
        return task.dependency
      }
      guard read({ $0.deliveries.subscriberCount > 0 }),
        let (task, generation) = commit({ $0.follow(after: others) })
      else { return nil }
      return TaskDependency(node: task.node) { [self] in
        read { $0.taskToAnswer(generation) }?.node
      } wait: { [self] in
        await answer(to: generation, task)
      }
    }
  }

  /// Waits until a run has ended that began after so many invalidations, if one does.
  nonisolated(nonsending) func answer(
    to generation: Int, _ first: Machine.Task
  ) async {
    var task = Optional(first)
    while let present = task, !Task.isCancelled {
      await present.dependency.wait()
      task = read { $0.taskToAnswer(generation) }
    }
  }

  /// Starts the run that an invalidation of one that is over asks for.
  func follow() {
    runForObservers(cause: .invalidation, after: commit { $0.takeFollowsAfter() })
  }

  /// How many callers and subscribers hold a run of this store.
  public var leaseCount: Int { read { $0.leaseCount } }

  /// Starts a run that the subscribers hold together, when others have ended.
  @discardableResult
  func runForObservers(
    cause: OperationRun.Cause, after others: [TaskDependency] = [],
    unlessUpdatedSince updates: Int? = nil
  ) -> OperationTask<State.OperationValue, State.Failure>? {
    let context = context
    let runsAutomatically = context.settings.values.runsAutomatically
    let isWanted =
      switch cause {
      case .rerun, .poll: true
      case .invalidation, .dependency: runsAutomatically ?? (State.kind != .mutation)
      case .subscriber, .fetch: runsAutomatically ?? false
      }
    guard isWanted, context.settings.values.automaticCondition?(context) ?? true else { return nil }
    let wish = makeWish(.empty, cause: cause, lease: .observers, seenUpdates: updates)
    wish.core.node.wait(for: others)
    guard let place = admit(wish) else { return nil }
    if place.isToBeLaunched {
      // One that somebody has scheduled is started in the place of the new one.
      if place.core != wish.core { place.core.node.wait(for: others) }
      start(place)
    }
    return place.task
  }

  /// A run that a wish has come to.
  struct Place: Sendable {
    let core: Machine.Core
    let box: Machine.Box
    var isToBeLaunched = true
    /// Whether the run has its place in the line of its scope.
    var isInLine = false
    /// How many invalidations there had been when the run began.
    var generation = 0

    init(
      _ core: Machine.Core, _ box: Machine.Box, isToBeLaunched: Bool = true,
      isInLine: Bool = false, generation: Int = 0
    ) {
      self.core = core
      self.box = box
      self.isToBeLaunched = isToBeLaunched
      self.isInLine = isInLine
      self.generation = generation
    }

    var task: Machine.Task { Machine.Task(core, box: box) }
  }

  /// Takes a wish to the machine until it is granted; `nil` if it is refused.
  func admit(_ wish: Machine.Wish) -> Place? {
    var verdict: Machine.Runs.Verdict?
    let isInLine = takePlace(wish)
    while true {
      switch commit({ [verdict] in $0.grant(wish, verdict: verdict) }) {
      case .refused:
        if isInLine { leavePlace(wish) }
        return nil
      case .ask(let candidates):
        let context = wish.task.context
        verdict = context.settings.values.deduplication.verdict(on: context, among: candidates)
      case .granted(let box, let core, let isStarted, let generation):
        let isOwn = core == wish.core
        if isInLine, !isOwn { leavePlace(wish) }
        return Place(
          core, box, isToBeLaunched: isStarted, isInLine: isInLine && isOwn, generation: generation)
      }
    }
  }

  /// Takes a place in the line before the run is in the state: whoever sees it there and calls
  /// then, comes behind it.
  func takePlace(_ wish: Machine.Wish) -> Bool {
    let scope = wish.task.context.settings.values.serialScope
    guard let scope, wish.lease != .handle else { return false }
    hub.turns.enter(scope, wish.core.id)
    return true
  }

  func leavePlace(_ wish: Machine.Wish) {
    guard let scope = wish.task.context.settings.values.serialScope else { return }
    hub.turns.leave(scope, wish.core.id)
  }

  func makeCore(cause: OperationRun.Cause) -> Machine.Core {
    Machine.Core(driver: self, cause: cause, place: runPlace)
  }

  var runPlace: OperationRun.Place {
    OperationRun.Place(path: path, hub: ObjectIdentifier(hub))
  }

  func makeWish(
    _ box: Machine.Box, cause: OperationRun.Cause, lease: Machine.Lease,
    input: (any RunInput)? = nil, handler: EventHandler? = nil, seenUpdates: Int? = nil
  ) -> Machine.Wish {
    let core = makeCore(cause: cause)
    return Machine.Wish(
      core: core, box: box.beginning(core.node, input: input, over: context), lease: lease,
      handler: handler.map { Subscriber($0) }, seenUpdates: seenUpdates)
  }
}
