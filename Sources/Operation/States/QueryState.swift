public import FoundationEssentials

/// The state of a query: the value that was fetched or set last, and the active runs.
public struct QueryState<Value: Sendable, Failure: Error>: ValueInitializedState, StampedState {
  /// The fetched value; `nil` until there is one.
  public typealias StateValue = Value?
  /// The type of the value that one run returns.
  public typealias OperationValue = Value
  /// The type of the value in the status.
  public typealias StatusValue = Value

  var facts: StateFacts<Value?, Failure>
  /// The scheduled and running tasks, in no order.
  private var tasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()

  /// Creates a state with an initial value, or without one.
  public init(initialValue: Value? = nil) {
    facts = StateFacts(initialValue, isEmpty: initialValue == nil)
  }

  /// No value.
  public static var emptyValue: Value? { nil }
  /// `false`: a value is stored as it is set.
  public static var preparesValues: Bool { false }

  /// The value that was fetched or set last.
  public var currentValue: Value? { facts.value }
  /// The value that the state began with.
  public var initialValue: Value? { facts.initial ?? nil }
  /// A Boolean value that indicates whether ``currentValue`` is not `nil`.
  public var hasValue: Bool { facts.value != nil }
  /// A Boolean value that indicates whether the state began with a value.
  public var hasInitialValue: Bool { facts.initial != nil }
  /// The number of values that were fetched or set since the creation or the last reset.
  public var valueUpdateCount: Int { facts.valueCount }
  /// The date of the current value; `nil` if nothing was fetched or set, or `nil` was set.
  public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// The last failure; `nil` once a value has followed it.
  public var error: Failure? { facts.error }
  /// The number of failures since the creation or the last reset.
  public var errorUpdateCount: Int { facts.errorCount }
  /// The date of the last failure.
  public var errorLastUpdatedAt: Date? { facts.errorDate }
  /// The scheduled and running tasks, in the order in which they were created.
  public var activeTasks: IdentifiedArrayOf<OperationTask<Value, Failure>> {
    let isOrdered = zip(tasks, tasks.dropFirst()).allSatisfy { $0.id < $1.id }
    return isOrdered ? tasks : IdentifiedArray(tasks.sorted { $0.id < $1.id })
  }

  /// A Boolean value that indicates whether a run is scheduled or running.
  public var isLoading: Bool { !tasks.isEmpty }
  /// A Boolean value that indicates whether there are active runs and all wait for a connection.
  public var isPaused: Bool { isLoading && tasks.allSatisfy { $0.isPaused } }

  /// The status: paused or loading while runs are active, and otherwise the last result.
  public var status: OperationStatus<Value, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error = facts.error { return .result(.failure(error)) }
    guard facts.valueDate != nil, let value = facts.value else { return .idle }
    return .result(.success(value))
  }

  /// The retry that a run in flight waits for; that of the newest such run.
  public var retry: OperationRetry<Failure>? { tasks.newestRetry() }

  /// Records the retry that a run waits for.
  public mutating func setRetry(_ retry: OperationRetry<Failure>?, _ id: OperationTaskID) {
    tasks[id: id]?.retry = retry
  }

  /// Records whether a run waits for a connection.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    tasks[id: id]?.isPaused = isPaused
  }

  /// Adds a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    tasks.append(task)
  }

  /// Stores a result that was set.
  public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) { facts.take(result, at: context.now()) }

  /// Stores a result of a run.
  public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) { facts.take(result.map(Optional.some), at: task.box.now()) }

  /// Removes a task that has ended.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    tasks.remove(id: task.id)
  }

  /// Restores the initial value, and returns an effect that cancels the active tasks.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = QueryState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }
}

extension QueryState: EditableState {
  /// Replaces the displayed value, and adds to the number of updates.
  public mutating func show(_ value: Value?, updates: Int) { facts.show(value, updates: updates) }
}
