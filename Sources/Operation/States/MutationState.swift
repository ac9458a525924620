public import FoundationEssentials

/// The state of a mutation: what it gave last, and the attempts that were made.
public struct MutationState<Arguments: Sendable, Value: Sendable, Failure: Error>:
  ValueInitializedState
{
  /// What the mutation gave last, once it has.
  public typealias StateValue = Value?
  /// What one run gives.
  public typealias OperationValue = Value
  /// The value in the status.
  public typealias StatusValue = Value

  /// What the mutation gave last, or somebody set.
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
  /// The attempts, oldest first; the oldest go when there are more than the request remembers.
  ///
  /// A mutation that waits for its turn has its attempt here. One that is cancelled, or given up
  /// before it was started, leaves no attempt.
  public private(set) var history = IdentifiedArrayOf<Attempt>()
  private var activeTasks: [OperationTaskID: OperationTask<Value, Failure>] = [:]
  /// The latest call that has ended, which the history may have forgotten.
  private var latestEnded: (id: OperationTaskID, arguments: Arguments)?

  /// What the last changes have driven out.
  private var released: [any Sendable] = []

  /// Creates a state that begins with a value, or without one.
  public init(initialValue: Value? = nil) {
    currentValue = initialValue
    self.initialValue = initialValue
  }

  /// No value.
  public static var emptyValue: Value? { nil }
  /// A request that changes something.
  public static var kind: OperationKind { .mutation }
  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { !activeTasks.isEmpty }
  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool { isLoading && activeTasks.values.allSatisfy(\.isPaused) }

  /// Takes in that a run begins to wait for a connection, or goes on.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    activeTasks[id]?.isPaused = isPaused
    history[id: id]?.isPaused = isPaused
  }
}

extension MutationState {
  /// One call of a mutation.
  public struct Attempt: Sendable, Identifiable {
    /// The task of the call.
    public let task: OperationTask<Value, Failure>
    /// What the mutation was called with.
    public let arguments: Arguments
    /// When the mutation was called.
    public let startDate: Date
    /// When the last result came.
    public internal(set) var lastUpdatedAt: Date?
    /// The last result, which is not the final one while the call is under way.
    public internal(set) var currentResult: Result<Value, Failure>?
    var isActive = true
    var isPaused = false

    /// The identifier of the task.
    public var id: OperationTaskID { task.id }

    /// Where the call is.
    public var status: OperationStatus<Value, Failure> {
      guard !isActive, let currentResult else { return isPaused ? .paused : .loading }
      return .result(currentResult)
    }
  }

  /// Runs a call without arguments with those of the latest one.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? {
    if context.input == nil { context.input = latestArguments.map(RunInput.init) }
    return nil
  }

  /// Takes in a scheduled task, and remembers the attempt.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    activeTasks[task.id] = task
    guard let arguments = Self.arguments(of: task) else { return }
    let now = task.context.now()
    history.append(Attempt(task: task, arguments: arguments, startDate: now))
    let excess = history.count - task.context.settings.values.maxHistory
    for attempt in history.prefix(max(excess, 0)) { released.append(attempt) }
    history.removeFirst(excess)
  }

  /// Takes in a result that somebody set.
  public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) {
    let now = context.now()
    switch result {
    case .success(let value):
      currentValue = value
      valueUpdateCount += 1
      valueLastUpdatedAt = now
      error = nil
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = now
    }
  }

  /// Takes in a result that a run gave.
  public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) {
    update(with: result.map(Optional.some), using: task.context)
    if let earlier = history[id: task.id]?.currentResult { released.append(earlier) }
    history[id: task.id]?.currentResult = result
    history[id: task.id]?.lastUpdatedAt = task.context.now()
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    guard activeTasks.removeValue(forKey: task.id) != nil else { return }
    history[id: task.id]?.isActive = false
    history[id: task.id]?.isPaused = false
    guard let arguments = Self.arguments(of: task) else { return }
    if let latestEnded, latestEnded.id > task.id { return }
    if let latestEnded { released.append(latestEnded.arguments) }
    latestEnded = (task.id, arguments)
  }

  /// Takes out a task that came to nothing, and its attempt.
  public mutating func giveUpFetchTask(_ task: OperationTask<Value, Failure>) {
    guard activeTasks.removeValue(forKey: task.id) != nil else { return }
    if let attempt = history.remove(id: task.id) { released.append(attempt) }
  }

  /// The arguments of the latest call that has ended, is under way, or is scheduled.
  var latestArguments: Arguments? {
    let calls = activeTasks.values.filter { Self.arguments(of: $0) != nil }
    guard let latest = calls.max(by: { $0.id < $1.id }) else { return latestEnded?.arguments }
    if let latestEnded, latestEnded.id > latest.id { return latestEnded.arguments }
    return Self.arguments(of: latest)
  }

  private static func arguments(of task: OperationTask<Value, Failure>) -> Arguments? {
    task.context.input?.value as? Arguments
  }

  /// Goes back to the initial value, and forgets the attempts.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = MutationState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks.values)
  }

  /// Gives the attempts that have gone.
  public mutating func takeReleased() -> [any Sendable] {
    if released.isEmpty { return [] }
    defer { released = [] }
    return released
  }
}

extension MutationState: DefaultableState {
  /// The value, or `fallback` where there is none.
  public static func value(_ value: Value?, default fallback: Value) -> Value { value ?? fallback }
  /// The value itself.
  public static func stateValue(_ value: Value) -> Value? { value }
}
