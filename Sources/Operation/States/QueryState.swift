public import FoundationEssentials

/// The state of a query: the value that was fetched last, and what is under way.
public struct QueryState<Value: Sendable, Failure: Error>: ValueInitializedState {
  /// The value, once there is one.
  public typealias StateValue = Value?
  /// The value that one run gives.
  public typealias OperationValue = Value
  /// The value in the status.
  public typealias StatusValue = Value

  /// The value that was fetched or set last.
  public private(set) var currentValue: Value?
  /// The value that the state began with.
  public let initialValue: Value?
  /// How often a value came since the beginning or the last reset.
  public private(set) var valueUpdateCount = 0
  /// When the last value came.
  public private(set) var valueLastUpdatedAt: Date?
  /// What went wrong last; `nil` once a value has come.
  public private(set) var error: Failure?
  /// How often something went wrong since the beginning or the last reset.
  public private(set) var errorUpdateCount = 0
  /// When something went wrong last.
  public private(set) var errorLastUpdatedAt: Date?
  /// The tasks that are scheduled or under way, in the order in which they were made.
  public private(set) var activeTasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()

  /// Creates a state that begins with a value, or without one.
  public init(initialValue: Value? = nil) {
    currentValue = initialValue
    self.initialValue = initialValue
  }

  /// No value.
  public static var emptyValue: Value? { nil }

  /// Whether a run is scheduled or under way.
  @inlinable public var isLoading: Bool { !activeTasks.isEmpty }

  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool { isLoading && activeTasks.allSatisfy(\.isPaused) }

  /// Takes in that a run begins to wait for a connection, or goes on.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    activeTasks[id: id]?.isPaused = isPaused
  }

  /// Takes in a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    activeTasks.append(task)
  }

  /// Takes in a result that somebody set.
  public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) {
    switch result {
    case .success(let value):
      currentValue = value
      valueUpdateCount += 1
      valueLastUpdatedAt = context.operationClock.now()
      error = nil
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = context.operationClock.now()
    }
  }

  /// Takes in a result that a run gave.
  public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) {
    update(with: result.map(Optional.some), using: task.context)
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    activeTasks.remove(id: task.id)
  }

  /// Goes back to the initial value.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = QueryState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }
}

extension QueryState: EditableState {
  /// Shows another value.
  public mutating func show(_ value: Value?, updates: Int) {
    currentValue = value
    valueUpdateCount &+= updates
  }
}
