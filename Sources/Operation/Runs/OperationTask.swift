import ReactiveStreams

/// A run that a store has scheduled, to be started, awaited, cancelled, or scheduled after others.
///
/// Copies are the same task. The task is in the store's state from the moment it is made. If the last
/// copy that a caller holds is released before the task was started, the task is removed from the
/// state without a trace.
public struct OperationTask<Value: Sendable, Failure: Error>: Sendable, Identifiable {
  let node: TaskNode
  /// What most tasks do not have.
  private var extras: Extras?
  /// Whether the run waits for a connection, in the copy that a state holds.
  var isPaused = false
  /// Shared by copies.
  var box: OperationTaskConfiguration.Box

  private final class Extras: Sendable {
    /// Returns the result of a task that transforms the output of its node.
    let transform: (@Sendable (any TaskOutput) -> Result<Value, Failure>?)?
    /// Drops the scheduled run with its last copy, when nothing is left that could start it.
    let lifetime: OperationSubscription?
    let retry: OperationRetry<Failure>?

    init(
      transform: (@Sendable (any TaskOutput) -> Result<Value, Failure>?)?,
      lifetime: OperationSubscription?, retry: OperationRetry<Failure>? = nil
    ) { (self.transform, self.lifetime, self.retry) = (transform, lifetime, retry) }
  }

  /// The name, the priority and the context of the task.
  ///
  /// Set it before the task is started: the run begins with the configuration of the copy that starts it.
  /// Other copies, and the one in the state, keep theirs. A context that is set overrides the one that was
  /// there.
  public var configuration: OperationTaskConfiguration {
    get { box.configuration }
    set { box = .init(newValue.with(newValue.context.over(configuration.context))) }
  }

  /// The retry that the run waits for, in the copy that a state holds.
  var retry: OperationRetry<Failure>? {
    get { extras?.retry }
    set {
      extras = Extras(
        transform: extras?.transform, lifetime: extras?.lifetime, retry: newValue)
    }
  }

  /// The identifier of the task, which is that of its run.
  public var id: OperationTaskID { node.id }

  /// The context of the task.
  public var context: OperationContext {
    get { box.configuration.context }
    set { configuration.context = newValue }
  }

  /// Replaces the context by another one that was made from it.
  mutating func setContext(_ context: OperationContext) {
    if context.isIdentical(to: box.configuration.context) { return }
    box = .init(box.configuration.with(context))
  }

  /// Returns the same task, in a context whose clock stands still from now on.
  func dated(display: Int?) -> OperationTask {
    let configuration = configuration.with(context.dated)
    return OperationTask(node: node, extras: extras, box: .init(configuration, display: display))
  }

  /// Returns the same task, whose scheduled run is dropped with the last copy of the returned value.
  func keeping(_ lifetime: OperationSubscription) -> OperationTask {
    let extras = Extras(transform: extras?.transform, lifetime: lifetime)
    return OperationTask(node: node, extras: extras, box: box)
  }
}

extension OperationTask {
  init(_ core: TaskCore<Value, Failure>, box: OperationTaskConfiguration.Box) {
    self.init(node: core.node, box: box)
  }

  /// Starts the run if it has not been started, and waits for its result.
  ///
  /// The caller holds a lease while it waits. A cancelled caller releases it, and returns at once with
  /// `CancellationError` if `Failure` is `any Error`. With another failure it receives what the run
  /// ends with.
  @discardableResult
  nonisolated(nonsending) public func runIfNeeded() async throws(Failure) -> Value {
    try await node.result(startingWith: configuration, as: result).get()
  }

  var core: TaskCore<Value, Failure> { TaskCore(node) }

  @Sendable private func result(of output: any TaskOutput) -> Result<Value, Failure>? {
    if let transform = extras?.transform { transform(output) } else { Result(output) }
  }

  /// Cancels the run for all of its awaiters.
  public func cancel() { node.cancel() }

  /// A Boolean value that indicates whether the run was cancelled.
  public var isCancelled: Bool { node.progress.isCancelled }
  /// A Boolean value that indicates whether the run was started.
  public var hasStarted: Bool { node.progress.hasStarted }
  /// A Boolean value that indicates whether the run was started and has not ended.
  public var isRunning: Bool { hasStarted && !isFinished }
  /// A Boolean value that indicates whether the run has ended.
  public var isFinished: Bool { node.progress.isEnded }
  /// The result of the run; `nil` until it has ended.
  public var finishedResult: Result<Value, Failure>? { node.output.flatMap(result) }

  /// Returns this task with its value transformed.
  ///
  /// - Parameter transform: Called with the value for each caller that reads the result.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (Value) -> NewValue
  ) -> OperationTask<NewValue, Failure> {
    let extras = OperationTask<NewValue, Failure>.Extras(
      transform: { result(of: $0)?.map(transform) }, lifetime: extras?.lifetime)
    return OperationTask<NewValue, Failure>(node: node, extras: extras, box: box)
  }

  /// Returns this task with its failure transformed.
  ///
  /// With `any Error` as the new failure, a cancelled caller returns at once with `CancellationError`,
  /// which is not transformed. With another one it receives what the run ends with.
  ///
  /// - Parameter transform: Called with the failure for each caller that reads the result, also with the
  ///   `CancellationError` of a cancelled run.
  public func mapError<NewFailure: Error>(
    _ transform: @escaping @Sendable (Failure) -> NewFailure
  ) -> OperationTask<Value, NewFailure> {
    let extras = OperationTask<Value, NewFailure>.Extras(
      transform: { result(of: $0)?.mapError(transform) }, lifetime: extras?.lifetime)
    return OperationTask<Value, NewFailure>(node: node, extras: extras, box: box)
  }
}

extension OperationTask {
  /// Makes the run wait until another task has ended, with whatever result.
  ///
  /// The other task is started when this one starts, if it has not been started then, with the priority of this
  /// one if it has none. Until then it stays scheduled, also when the last copy that a caller holds of it is
  /// released. If this task has started the other one, it also cancels it when it is cancelled itself, unless a
  /// caller awaits the other one. A schedule that would form a cycle is not made, and is reported. The call has no
  /// effect on a task that has been started or cancelled.
  public func schedule<OtherValue, OtherFailure>(
    after task: OperationTask<OtherValue, OtherFailure>
  ) {
    guard !hasStarted, !isFinished else { return }
    node.addDependency(on: task.dependency)
  }

  /// Makes the run wait until several other tasks have ended, with whatever results.
  public func schedule<OtherValue, OtherFailure>(
    after tasks: some Sequence<OperationTask<OtherValue, OtherFailure>>
  ) { for task in tasks { schedule(after: task) } }

  var dependency: TaskDependency {
    let start = { @Sendable [self] (priority: TaskPriority?) in
      var configuration = configuration
      configuration.priority = configuration.priority ?? priority
      return node.driver?.start(node, configuration: configuration, joins: false) ?? false
    }
    return TaskDependency(node: node, start: start) { [node] in await node.waitForEnd() }
  }
}

extension OperationTask: CustomStringConvertible, CustomDebugStringConvertible {
  /// The progress and the cause of the run, the path of its store if it has one, and its name if it has
  /// one.
  ///
  /// It contains neither the result nor the identifier, which depends on what ran before.
  public var description: String {
    describe(
      as: "OperationTask", node.progress.name, node.cause.rawValue,
      node.origin?.path.description, configuration.name.map { "name: \(describe($0))" })
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension TaskProgress {
  /// One word for the progress.
  fileprivate var name: String {
    if isCancelled { return "cancelled" }
    if isEnded { return "finished" }
    return hasStarted ? "running" : "scheduled"
  }
}
