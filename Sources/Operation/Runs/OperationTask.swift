/// A run that a store has scheduled: it can be started, awaited, cancelled, and made to wait for
/// others.
///
/// Copies are the same task. It is in the store's state from the moment it is made; when the last
/// copy that a caller has goes away before the task was started, it leaves the state as if it had
/// never been.
public struct OperationTask<Value: Sendable, Failure: Error>: Sendable, Identifiable {
  let node: TaskNode
  /// What most tasks do not have.
  let rest: Rest?
  /// Whether the run waits for a connection, in the copy that a state holds.
  var isPaused = false

  /// Shared by copies, of which a run makes many.
  var box: OperationTaskConfiguration.Box

  /// How the task runs. A change counts for this copy and for the state that holds it, until the
  /// task is started. A context that is set lies over the one that was there.
  public var configuration: OperationTaskConfiguration {
    get { box.configuration }
    set {
      var new = newValue
      new.context = new.context.over(configuration.context)
      box = .init(new)
    }
  }

  init(
    _ core: TaskCore<Value, Failure>, box: OperationTaskConfiguration.Box, rest: Rest? = nil
  ) {
    node = core.node
    self.box = box
    self.rest = rest
  }

  init(handle: any TaskHandle<Value, Failure>, configuration: OperationTaskConfiguration) {
    self.init(TaskCore(handle.node), box: .init(configuration), rest: Rest(handle: handle))
  }

  final class Rest: Sendable {
    /// What the task is a handle on, if that is not the run of its node as it is.
    let handle: (any TaskHandle<Value, Failure>)?
    let lifetime: TaskLifetime?

    init(handle: (any TaskHandle<Value, Failure>)? = nil, lifetime: TaskLifetime? = nil) {
      self.handle = handle
      self.lifetime = lifetime
    }
  }

  /// The identifier of the task, which is that of its run.
  public var id: OperationTaskID { node.id }

  /// The context that the task runs in.
  public var context: OperationContext {
    get { box.configuration.context }
    set { configuration.context = newValue }
  }

  /// Puts another context in the place of this one, from which it was made.
  mutating func setContext(_ context: OperationContext) {
    if context.isIdentical(to: box.configuration.context) { return }
    box = .init(box.configuration.with(context))
  }

  /// The same task, whose scheduled run is given up when the last copy of this value goes away.
  func keeping(_ lifetime: TaskLifetime) -> OperationTask {
    OperationTask(core, box: box, rest: Rest(handle: rest?.handle, lifetime: lifetime))
  }
}

extension OperationTask {
  /// Starts the run, if it has not been started, and waits for its result.
  ///
  /// The waiting holds a lease. A cancelled caller gives it back, and leaves at once with
  /// `CancellationError` where `Failure` is `any Error`; with another failure it gets what the run
  /// ends with.
  @discardableResult
  nonisolated(nonsending) public func runIfNeeded() async throws(Failure) -> Value {
    try await result(startingWith: configuration).get()
  }

  nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure> {
    if let handle = rest?.handle { return await handle.result(startingWith: configuration) }
    return await core.result(startingWith: configuration)
  }

  var core: TaskCore<Value, Failure> { TaskCore(node) }

  /// Cancels the run for everyone who waits for it.
  public func cancel() {
    if let handle = rest?.handle { handle.cancel() } else { node.cancel() }
  }

  /// Whether the run was cancelled.
  public var isCancelled: Bool { node.progress.isCancelled }
  /// Whether the run was started.
  public var hasStarted: Bool { node.progress.hasStarted }
  /// Whether the run was started and has not ended.
  public var isRunning: Bool { hasStarted && !isFinished }
  /// Whether the run has ended.
  public var isFinished: Bool { finishedResult != nil }
  /// What the run ended with; `nil` before.
  public var finishedResult: Result<Value, Failure>? {
    if let handle = rest?.handle { handle.finishedResult } else { core.finishedResult }
  }

  /// A task that is this one, with its value changed.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (Value) -> NewValue
  ) -> OperationTask<NewValue, Failure> {
    OperationTask<NewValue, Failure>(
      handle: MappedTask(base: self, transform: transform), configuration: configuration)
  }
}

extension OperationTask {
  /// Makes the run wait until another task has ended, however it ends.
  ///
  /// The other task is started if nobody has started it when this one starts, and stays scheduled
  /// until then, also when the last copy that a caller has of it goes away. A schedule by which
  /// tasks would wait for each other is not made, and a report names it. It has no effect on a
  /// task that has been started.
  public func schedule<OtherValue, OtherFailure>(
    after task: OperationTask<OtherValue, OtherFailure>
  ) {
    guard !hasStarted, !isFinished else { return }
    node.wait(for: [task.dependency])
  }

  /// Makes the run wait until several other tasks have ended, however they end.
  public func schedule<OtherValue, OtherFailure>(
    after tasks: some Sequence<OperationTask<OtherValue, OtherFailure>>
  ) {
    for task in tasks { schedule(after: task) }
  }

  var dependency: TaskDependency {
    TaskDependency(node: node) { [self] in await node.end(startingWith: configuration) }
  }
}

/// Gives up a scheduled run when nobody can start it any more.
final class TaskLifetime: Sendable {
  let onEnd: @Sendable () -> Void

  init(onEnd: @escaping @Sendable () -> Void) {
    self.onEnd = onEnd
  }

  deinit {
    onEnd()
  }
}
