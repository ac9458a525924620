import FoundationEssentials
import ReactiveStreams

extension OperationStore {
  /// Starts a run that nobody waits for yet.
  func start(_ place: Place) { launch(place, isFirst: place.core.node.start()) }

  /// Makes the Swift task of a run that was started.
  func launch(_ place: Place, isFirst: Bool) {
    let (core, box) = (place.core, place.box)
    // Read one by one, as all of them are much to copy.
    let scope = box.configuration.context.settings.values.serialScope
    guard isFirst else {
      // It was cancelled since it was granted, and must not keep its place in the line.
      if place.isInLine, let scope { hub.turns.leave(scope, core.id) }
      return
    }
    let isAlone =
      scope == nil && box.configuration.context.settings.values.networkMode == .always
      && !core.node.mayHaveDependencies && !hub.events.isHeard
    core.node.attach(makeTask(self, core, box, isAlone ? nil : announce(place)))
  }

  /// What a run does before its request, if it waits for something or if somebody is told of it.
  final class Prelude: Sendable {
    let began: Date?
    let dependencies: [TaskDependency]

    init(began: Date?, dependencies: [TaskDependency]) {
      self.began = began
      self.dependencies = dependencies
    }
  }

  /// Tells that a run begins that waits for something, or that somebody is told of.
  func announce(_ place: Place) -> Prelude {
    let (core, context) = (place.core, place.box.configuration.context)
    let began = hub.events.isHeard ? context.now() : nil
    tell(.runStarted(context.eventRun), in: context)
    let dependencies = core.node.dependencies()
    // A run that waits for others takes its place after them: one of them may need the turn.
    if let scope = context.settings.values.serialScope, place.isInLine != dependencies.isEmpty {
      if place.isInLine { hub.turns.leave(scope, core.id) } else { hub.turns.enter(scope, core.id) }
    }
    return Prelude(began: began, dependencies: dependencies)
  }

  /// A request as one reference: a task that has it copies nothing.
  final class RequestBox<Request: StatefulOperationRequest>: Sendable {
    let request: Request

    init(_ request: Request) {
      self.request = request
    }
  }

  /// Makes the Swift task of a run, of which the request is a part: it is called without a frame
  /// for who does not know it.
  func makeTask<Request: StatefulOperationRequest>(
    running requests: RequestBox<Request>, _ core: Machine.Core, _ box: Machine.Box,
    _ prelude: Prelude?
  ) -> Task<Void, Never> where Request.State == State {
    Task(name: box.configuration.name, priority: box.configuration.priority) { [self] in
      guard let prelude else { return await perform(requests.request, core, box) }
      let hooks = await wait(for: prelude, core, box)
      await perform(requests.request, core, box, hooks, began: prelude.began)
      let scope = box.configuration.context.settings.values.serialScope
      if let scope { hub.turns.end(scope, core.id) }
    }
  }

  /// Waits until a run may begin; gives what tells the store of it, if anybody is told.
  func wait(
    for prelude: Prelude, _ core: Machine.Core, _ box: Machine.Box
  ) async -> RunHooks? {
    var context = box.configuration.context
    let scope = context.settings.values.serialScope
    if !prelude.dependencies.isEmpty {
      await OperationStore.wait(for: prelude.dependencies)
      if let scope { hub.turns.enter(scope, core.id) }
    }
    let isTold = prelude.began != nil || context.settings.values.networkMode != .always
    let hooks = isTold ? hooks(of: core, in: context) : nil
    if let scope {
      // Whoever is behind a paused run in the line waits for the connection as much as that one.
      context.hooks = hooks
      _ = await context.mayAttempt(isRetry: false)
      await hub.turns.wait(for: scope, core.id)
    }
    return hooks
  }

  /// What the Swift task of a run does when its time has come.
  func perform<Request: StatefulOperationRequest>(
    _ request: Request, _ core: Machine.Core, _ box: Machine.Box, _ hooks: RunHooks? = nil,
    began: Date? = nil
  ) async where Request.State == State {
    // A run that was cancelled while it waited must not reach the request any more; one that
    // has to, because its failure cannot say so, finds itself cancelled there.
    let progress = core.progress
    if progress.isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
    if !progress.isEnded {
      let output = await output(of: request, core, box, hooks)
      finish(core, with: output, in: box.configuration.context, began: began)
    } else {
      tellEnd(.cancelled, in: box.configuration.context, began: began)
    }
  }

  func output<Request: StatefulOperationRequest>(
    of request: Request, _ core: Machine.Core, _ box: Machine.Box, _ hooks: RunHooks?
  ) async -> Machine.Output where Request.State == State {
    // Only here, as pages are changed in their place later, if nobody else holds them.
    var prepared = box.configuration.context
    if let hooks { prepared.hooks = hooks }
    // A failure that cannot say "cancelled" has to come from the request.
    if prepared.settings.values.networkMode != .always, await !prepared.mayAttempt(isRetry: false),
      let failure = cancellationFailure(as: Failure.self)
    {
      return .failure(failure)
    }
    let sight = read { $0.exclusive.isNone ? $0.willRun(core.id, in: &prepared) : nil }
    // While somebody has the store to himself, what he has made of it is nothing to begin with.
    let (isThere, hasEdits) = sight ?? commit { $0.willRun(core.id, in: &prepared) }
    // A run that has waited finds the edits that have been confirmed meanwhile.
    if hasEdits { commit { $0.begin(core.id) } }
    // One that a reset ends with others goes on when they end, maybe before it is told itself.
    if !isThere, let failure = cancellationFailure(as: Failure.self) { return .failure(failure) }
    core.node.isUnderWay = true
    let continuation = OperationContinuation<Value, Failure> { OperationStore.take($0, of: core) }
    tell(
      .attemptBegan(box.configuration.context.eventRun, index: 0), in: box.configuration.context)
    do throws(Failure) {
      return .success(try await request.runInStore(in: prepared, with: continuation))
    } catch {
      return .failure(error)
    }
  }

  /// What tells the store of a run.
  func hooks(
    of core: Machine.Core, in context: OperationContext
  ) -> RunHooks {
    RunHooks { [weak self] isPaused in
      self?.commit { $0.setPaused(isPaused, core.id) }
    } attemptBegan: { [weak self] index in
      self?.tell(.attemptBegan(context.eventRun, index: index), in: context)
    }
  }

  static func wait(for dependencies: [TaskDependency]) async {
    if dependencies.count == 1 { return await dependencies[0].wait() }
    await withTaskGroup(of: Void.self) { group in
      for dependency in dependencies { group.addTask { await dependency.wait() } }
    }
  }

  func finish(
    _ core: Machine.Core, with output: Machine.Output, in context: OperationContext, began: Date?
  ) {
    core.node.isUnderWay = false
    let output = hub.hasReaders ? circle(closedBy: core, output) ?? output : output
    let isCancelled = output.isCancellation || core.progress.isCancelled
    let (isCounted, mustFollow, mustTellReaders) = commit { $0.end(core.id, output) }
    // What the store has dropped nobody gets, though it may not have been cancelled yet.
    if !isCounted { core.cancelRun() }
    tellEnd(isCancelled || !isCounted ? .cancelled : output.outcome, in: context, began: began)
    // Before anybody goes on who waits for it.
    if mustTellReaders { hub.invalidateOutdatedReaders(of: path, isWritten: false) }
    if mustFollow { follow() }
    core.end(with: output)
  }

  /// Ends the run in the graph of dependencies, and in a failure if it has closed a circle there.
  func circle(closedBy core: Machine.Core, _ output: Machine.Output) -> Machine.Output? {
    let isOver =
      output.isCancellation || core.progress.isCancelled || !read { $0.runs.contains(core.id) }
    // The value stays, or a part of it, that other runs have made of what they have read.
    let isPart =
      switch output {
      case .success(let value):
        State.kind == .pages && (value as? any PartialResult)?.isPart == true
      case .failure: true
      }
    guard
      let circle = hub.end(core.id, of: self, at: path, isCancelled: isOver, isPart: isPart)
    else { return nil }
    return failure(of: circle).map(Machine.Output.failure)
  }

  /// The circle as a failure; nil, and a report, where the failure cannot say so.
  func failure(of circle: OperationDependencyError) -> Failure? {
    Machine.Core.failure(of: circle, at: path)
  }

  /// A run yielded. The task holds the store until it has ended; who keeps the continuation longer
  /// does not.
  static func take(_ result: Machine.Output, of core: Machine.Core) {
    let store = core.node.driver as? OperationStore
    if let store, let box = store.commit({ $0.yield(core.id, result) }) {
      store.tell(.yielded(box.configuration.context.eventRun), in: box.configuration.context)
    } else {
      reportLateYield(of: core)
    }
  }

  static func reportLateYield(of core: Machine.Core) {
    guard core.finishedResult != nil, !core.progress.isCancelled else { return }
    OperationIssue(
      kind: .lateYield,
      message: """
        A run of \(core.node.place?.path ?? []), which gives \(State.OperationValue.self), yielded after it had ended; \
        the value is dropped.
        """
    ).report()
  }
}

extension Result {
  var outcome: OperationClientEvent.Outcome {
    switch self {
    case .success: .success
    case .failure(let error): .failure(error)
    }
  }
}
