public import FoundationEssentials

/// The state of a query: the value that was fetched last, and what is under way.
public struct QueryState<Value: Sendable, Failure: Error>: ValueInitializedState {
  /// The value, once there is one.
  public typealias StateValue = Value?
  /// The value that one run gives.
  public typealias OperationValue = Value
  /// The value in the status.
  public typealias StatusValue = Value

  var facts: StateFacts<Value?, Failure>
  /// In no order.
  var tasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()
  /// The value that the state began with.
  public var initialValue: Value? { facts.initial ?? nil }

  /// Creates a state that begins with a value, or without one.
  public init(initialValue: Value? = nil) {
    facts = StateFacts(initialValue, isEmpty: initialValue == nil)
  }

  init(
    copying facts: borrowing StateFacts<Value?, Failure>,
    tasks: IdentifiedArrayOf<OperationTask<Value, Failure>>
  ) {
    self.facts = StateFacts(copying: facts)
    self.tasks = tasks
  }

  /// Gives a copy, made field by field.
  public func copied() -> Self { QueryState(copying: facts, tasks: tasks) }

  /// No value.
  public static var emptyValue: Value? { nil }

  /// Values stay as they are set.
  public static var preparesValues: Bool { false }

  /// The value that was fetched or set last.
  public var currentValue: Value? { facts.value }
  /// How often a value came since the beginning or the last reset.
  public var valueUpdateCount: Int { facts.valueCount }
  /// When the last value came; `nil` where there is none.
  public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// What went wrong last; `nil` once a value has come.
  public var error: Failure? { facts.error }
  /// How often something went wrong since the beginning or the last reset.
  public var errorUpdateCount: Int { facts.errorCount }
  /// When something went wrong last.
  public var errorLastUpdatedAt: Date? { facts.errorDate }
  /// The tasks that are scheduled or under way, in the order in which they were made.
  public var activeTasks: IdentifiedArrayOf<OperationTask<Value, Failure>> {
    let isOrdered = zip(tasks, tasks.dropFirst()).allSatisfy { $0.id < $1.id }
    return isOrdered ? tasks : IdentifiedArray(tasks.sorted { $0.id < $1.id })
  }

  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { !tasks.isEmpty }

  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool {
    isLoading && tasks.allSatisfyInPlace { $0.isPaused }
  }

  /// Where the state is.
  public var status: OperationStatus<Value, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error = facts.error { return .result(.failure(error)) }
    guard facts.valueDate != nil, let value = facts.value else { return .idle }
    return .result(.success(value))
  }

  /// Takes in that a run begins to wait for a connection, or goes on.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    tasks.update(id: id) { $0.isPaused = isPaused }
  }

  /// Takes in a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    tasks.append(task)
  }

  /// Takes in a result that somebody set.
  public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) {
    facts.take(result, at: context.now())
  }

  /// Takes in a result that a run gave.
  public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) {
    facts.take(result.map(Optional.some), at: task.box.now())
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    _ = tasks.removeUnordered(id: task.id)
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
    facts.show(value, updates: updates)
  }
}
