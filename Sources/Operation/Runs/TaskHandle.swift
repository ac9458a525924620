/// What an ``OperationTask`` is a handle on that gives something else than the run of its node does.
protocol TaskHandle<Value, Failure>: AnyObject, Sendable {
  associatedtype Value: Sendable
  associatedtype Failure: Error

  var node: TaskNode { get }
  var finishedResult: Result<Value, Failure>? { get }

  func cancel()

  /// Starts the run if need be, and waits for its result; holds a lease meanwhile.
  nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure>
}

/// How far a task has come.
struct TaskProgress: OptionSet, Sendable {
  static var started: Self { Self(rawValue: 1) }
  static var cancelled: Self { Self(rawValue: 2) }
  static var ended: Self { Self(rawValue: 4) }

  var rawValue: UInt8

  var hasStarted: Bool { contains(.started) }
  var isCancelled: Bool { contains(.cancelled) }
  var isEnded: Bool { contains(.ended) }
}

/// A task with its value changed.
final class MappedTask<BaseValue: Sendable, Value: Sendable, Failure: Error>: TaskHandle {
  private let base: OperationTask<BaseValue, Failure>
  private let transform: @Sendable (BaseValue) -> Value

  init(
    base: OperationTask<BaseValue, Failure>, transform: @escaping @Sendable (BaseValue) -> Value
  ) {
    self.base = base
    self.transform = transform
  }

  var node: TaskNode { base.node }
  var finishedResult: Result<Value, Failure>? { base.finishedResult?.map(transform) }

  func cancel() { base.cancel() }

  nonisolated(nonsending) func result(
    startingWith configuration: OperationTaskConfiguration
  ) async -> Result<Value, Failure> {
    await base.result(startingWith: configuration).map(transform)
  }
}
