/// A run that a store has scheduled: it can be started, awaited, cancelled, and made to wait for
/// others.
///
/// Copies are the same task. It is in the store's state from the moment it is made; when the last
/// copy that a caller has goes away before the task was started, it leaves the state as if it had
/// never been.
public struct OperationTask<Value: Sendable, Failure: Error>: Sendable, Identifiable {
  @usableFromInline let handle: any TaskHandle<Value, Failure>
  @usableFromInline let lifetime: TaskLifetime?
  /// Whether the run waits for a connection, in the copy that a state holds.
  @usableFromInline var isPaused = false

  /// Shared by copies, of which a run makes many.
  @usableFromInline var box: OperationTaskConfiguration.Box

  /// How the task runs. A change counts for this copy and for the state that holds it, until the
  /// task is started. A context that is set lies over the one that was there.
  @inlinable public var configuration: OperationTaskConfiguration {
    get { box.configuration }
    set {
      var new = newValue
      new.context = new.context.over(configuration.context)
      box = .init(new)
    }
  }

  @inlinable init(
    handle: any TaskHandle<Value, Failure>, configuration: OperationTaskConfiguration,
    lifetime: TaskLifetime? = nil
  ) {
    self.init(handle: handle, box: .init(configuration), lifetime: lifetime)
  }

  @inlinable init(
    handle: any TaskHandle<Value, Failure>, box: OperationTaskConfiguration.Box,
    lifetime: TaskLifetime? = nil
  ) {
    self.handle = handle
    self.box = box
    self.lifetime = lifetime
  }

  /// The identifier of the task, which is that of its run.
  public var id: OperationTaskID { handle.id }

  /// The context that the task runs in.
  @inlinable public var context: OperationContext {
    get { box.configuration.context }
    set { configuration.context = newValue }
  }

  /// Puts another context in the place of this one, from which it was made.
  @inlinable mutating func setContext(_ context: OperationContext) {
    if context.isIdentical(to: box.configuration.context) { return }
    var configuration = box.configuration
    configuration.context = context
    box = .init(configuration)
  }

  /// The same task, whose scheduled run is given up when the last copy of this value goes away.
  @inlinable func keeping(_ lifetime: TaskLifetime) -> OperationTask {
    OperationTask(handle: handle, box: box, lifetime: lifetime)
  }
}

extension OperationTask {
  /// Starts the run, if it has not been started, and waits for its result.
  ///
  /// The waiting holds a lease. A cancelled caller gives it back, and leaves at once with
  /// `CancellationError` where `Failure` is `any Error`; with another failure it gets what the run
  /// ends with.
  @discardableResult
  @inlinable nonisolated(nonsending) public func runIfNeeded() async throws(Failure) -> Value {
    if let core { return try await core.result(startingWith: configuration).get() }
    return try await handle.result(startingWith: configuration).get()
  }

  /// The core, unless the task is another one with its value changed: what is called on it is made
  /// for its types, and what is called on a handle for all types.
  @inlinable var core: TaskCore<Value, Failure>? { handle as? TaskCore<Value, Failure> }

  /// Cancels the run for everyone who waits for it.
  public func cancel() { handle.cancel() }

  /// Whether the run was cancelled.
  public var isCancelled: Bool { handle.progress.isCancelled }
  /// Whether the run was started.
  public var hasStarted: Bool { handle.progress.hasStarted }
  /// Whether the run was started and has not ended.
  public var isRunning: Bool { hasStarted && !isFinished }
  /// Whether the run has ended.
  public var isFinished: Bool { finishedResult != nil }
  /// What the run ended with; `nil` before.
  public var finishedResult: Result<Value, Failure>? { handle.finishedResult }

  /// A task that is this one, with its value changed.
  public func map<NewValue: Sendable>(
    _ transform: @escaping @Sendable (Value) -> NewValue
  ) -> OperationTask<NewValue, Failure> {
    OperationTask<NewValue, Failure>(
      handle: MappedTask(base: handle, transform: transform), configuration: configuration,
      lifetime: lifetime)
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
    handle.node.wait(for: task.dependency)
  }

  /// Makes the run wait until several other tasks have ended, however they end.
  public func schedule<OtherValue, OtherFailure>(
    after tasks: some Sequence<OperationTask<OtherValue, OtherFailure>>
  ) {
    for task in tasks { schedule(after: task) }
  }

  @inlinable var dependency: TaskDependency {
    TaskDependency(node: handle.node) { [self] in
      if let core { return await core.end(startingWith: configuration) }
      await handle.end(startingWith: configuration)
    }
  }
}

/// Gives up a scheduled run when nobody can start it any more.
@usableFromInline final class TaskLifetime: Sendable {
  @usableFromInline let onEnd: @Sendable () -> Void

  @inlinable init(onEnd: @escaping @Sendable () -> Void) {
    self.onEnd = onEnd
  }

  deinit {
    onEnd()
  }
}
