public import FoundationEssentials

/// The state of a query: the value that was fetched last, and what is under way.
public struct QueryState<Value: Sendable, Failure: Error>: ValueInitializedState {
  /// The value, once there is one.
  public typealias StateValue = Value?
  /// The value that one run gives.
  public typealias OperationValue = Value
  /// The value in the status.
  public typealias StatusValue = Value

  @usableFromInline var facts: StateFacts<Value?, Failure>
  /// In no order.
  @usableFromInline var tasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()
  /// The value that the state began with.
  @inlinable public var initialValue: Value? { facts.initial ?? nil }

  /// Creates a state that begins with a value, or without one.
  @inlinable public init(initialValue: Value? = nil) {
    facts = StateFacts(initialValue, isEmpty: initialValue == nil)
  }

  @inlinable init(
    copying facts: borrowing StateFacts<Value?, Failure>,
    tasks: IdentifiedArrayOf<OperationTask<Value, Failure>>
  ) {
    self.facts = StateFacts(copying: facts)
    self.tasks = tasks
  }

  /// Gives a copy, made field by field.
  @inlinable public func copied() -> Self { QueryState(copying: facts, tasks: tasks) }

  /// No value.
  @inlinable public static var emptyValue: Value? { nil }

  /// Values stay as they are set.
  @inlinable public static var preparesValues: Bool { false }

  /// The value that was fetched or set last.
  @inlinable public var currentValue: Value? { facts.value }
  /// How often a value came since the beginning or the last reset.
  @inlinable public var valueUpdateCount: Int { facts.valueCount }
  /// When the last value came; `nil` where there is none.
  @inlinable public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// What went wrong last; `nil` once a value has come.
  @inlinable public var error: Failure? { facts.error }
  /// How often something went wrong since the beginning or the last reset.
  @inlinable public var errorUpdateCount: Int { facts.errorCount }
  /// When something went wrong last.
  @inlinable public var errorLastUpdatedAt: Date? { facts.errorDate }
  /// The tasks that are scheduled or under way, in the order in which they were made.
  @inlinable public var activeTasks: IdentifiedArrayOf<OperationTask<Value, Failure>> {
    let isOrdered = zip(tasks, tasks.dropFirst()).allSatisfy { $0.id < $1.id }
    return isOrdered ? tasks : IdentifiedArray(tasks.sorted { $0.id < $1.id })
  }

  /// Whether a run is scheduled or under way.
  @inlinable public var isLoading: Bool { !tasks.isEmpty }

  /// Whether every run that is under way waits for a connection.
  @inlinable public var isPaused: Bool {
    isLoading && tasks.allSatisfyInPlace { $0.isPaused }
  }

  /// Where the state is.
  @inlinable public var status: OperationStatus<Value, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error = facts.error { return .result(.failure(error)) }
    guard facts.valueDate != nil, let value = facts.value else { return .idle }
    return .result(.success(value))
  }

  /// Takes in that a run begins to wait for a connection, or goes on.
  @inlinable public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    tasks.update(id: id) { $0.isPaused = isPaused }
  }

  /// Takes in a scheduled task.
  @inlinable public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    tasks.append(task)
  }

  /// Takes in a result that somebody set.
  @inlinable public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) {
    facts.take(result, at: context.now())
  }

  /// Takes in a result that a run gave.
  @inlinable public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) {
    facts.take(result.map(Optional.some), at: task.box.now())
  }

  /// Takes out a task that is over.
  @inlinable public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    _ = tasks.removeUnordered(id: task.id)
  }

  /// Goes back to the initial value.
  @inlinable public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = QueryState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }
}

extension QueryState: EditableState {
  /// Shows another value.
  @inlinable public mutating func show(_ value: Value?, updates: Int) {
    facts.show(value, updates: updates)
  }
}
