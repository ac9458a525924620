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

  var facts: StateFacts<Value?, Failure>
  /// The attempts that the history shows, behind those that come back into it where calls that are
  /// under way are given up.
  var attempts = IdentifiedArrayOf<Attempt>()
  /// How many of the attempts are under way.
  var activeAttemptCount = 0
  /// How many attempts the history shows.
  var maxHistory = 0
  /// In no order.
  var activeTasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()
  /// The latest call that has ended, which the history may have forgotten.
  var latestEnded: (id: OperationTaskID, arguments: Arguments)?
  /// What the last changes have driven out.
  var released: [any Sendable] = []
  /// The value that the state began with.
  public var initialValue: Value? { facts.initial ?? nil }

  /// Creates a state that begins with a value, or without one.
  public init(initialValue: Value? = nil) {
    facts = StateFacts(initialValue, isEmpty: initialValue == nil)
  }

  /// What the mutation gave last, or somebody set.
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
  /// The attempts, oldest first; the oldest go when there are more than the request remembers.
  ///
  /// A mutation that waits for its turn has its attempt here. One that is cancelled, or given up
  /// before it was started, leaves no attempt.
  public var history: IdentifiedArrayOf<Attempt> {
    attempts.count <= maxHistory ? attempts : IdentifiedArray(attempts.suffix(maxHistory))
  }

  /// No value.
  public static var emptyValue: Value? { nil }

  /// Values stay as they are set.
  public static var preparesValues: Bool { false }
  /// A request that changes something.
  public static var kind: OperationKind { .mutation }
  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { !activeTasks.isEmpty }
  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool {
    isLoading && activeTasks.allSatisfyInPlace { $0.isPaused }
  }

  /// Takes in that a run begins to wait for a connection, or goes on.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    activeTasks.update(id: id) { $0.isPaused = isPaused }
    attempts.update(id: id) { $0.isPaused = isPaused }
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
    var resultDate: Date?
    var result: Result<Value, Failure>?
    var isActive = true
    var isPaused = false

    init(
      task: OperationTask<Value, Failure>, arguments: Arguments, startDate: Date
    ) {
      self.task = task
      self.arguments = arguments
      self.startDate = startDate
    }

    /// When the last result came.
    public var lastUpdatedAt: Date? { resultDate }
    /// The last result, which is not the final one while the call is under way.
    public var currentResult: Result<Value, Failure>? { result }

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
    if context.input == nil { context.input = latestArguments.map { RunArguments($0) } }
    return nil
  }

  /// Takes in a scheduled task, and remembers the attempt.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    activeTasks.append(task)
    guard let arguments = Self.arguments(of: task) else { return }
    let now = task.box.now()
    attempts.append(Attempt(task: task, arguments: arguments, startDate: now))
    activeAttemptCount += 1
    maxHistory = task.context.settings.values.maxHistory
    forgetAttempts()
  }

  /// Forgets the attempts that no longer come into the history, whatever is given up.
  mutating func forgetAttempts() {
    var endedCount = attempts.count - activeAttemptCount
    while !attempts.isEmpty {
      let isActive = attempts.read(at: 0) { $0.isActive }
      if !isActive { endedCount -= 1 }
      // Those behind it that have ended stay.
      if endedCount < maxHistory { return }
      if isActive { activeAttemptCount -= 1 }
      let attempt = attempts.remove(at: 0)
      released.append(consume attempt)
    }
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
    let date = task.box.now()
    facts.take(result.map(Optional.some), at: date)
    var earlier: Result<Value, Failure>?
    attempts.update(id: task.id) { attempt in
      earlier = attempt.result
      attempt.result = result
      attempt.resultDate = date
    }
    if let earlier { released.append(earlier) }
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    guard activeTasks.removeUnordered(id: task.id) != nil else { return }
    attempts.update(id: task.id) { attempt in
      attempt.isActive = false
      attempt.isPaused = false
      activeAttemptCount -= 1
    }
    forgetAttempts()
    guard let arguments = Self.arguments(of: task) else { return }
    if let latestEnded, latestEnded.id > task.id { return }
    if let latestEnded { released.append(latestEnded.arguments) }
    latestEnded = (task.id, arguments)
  }

  /// Takes out a task that came to nothing, and its attempt.
  public mutating func giveUpFetchTask(_ task: OperationTask<Value, Failure>) {
    guard activeTasks.removeUnordered(id: task.id) != nil else { return }
    guard let attempt = attempts.remove(id: task.id) else { return }
    released.append(attempt)
    activeAttemptCount -= 1
  }

  /// The arguments of the latest call that has ended, is under way, or is scheduled.
  var latestArguments: Arguments? {
    let calls = activeTasks.filter { Self.arguments(of: $0) != nil }
    guard let latest = calls.max(by: { $0.id < $1.id }) else { return latestEnded?.arguments }
    if let latestEnded, latestEnded.id > latest.id { return latestEnded.arguments }
    return Self.arguments(of: latest)
  }

  static func arguments(of task: OperationTask<Value, Failure>) -> Arguments? {
    (task.context.input as? RunArguments<Arguments>)?.arguments
  }

  /// Goes back to the initial value, and forgets the attempts.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = MutationState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }

  /// Gives the attempts that have gone.
  public mutating func takeReleased() -> [any Sendable] {
    if released.isEmpty { return [] }
    defer { released = [] }
    return released
  }
}

/// A state of calls, none of which can be made without arguments.
protocol CallState {}

extension MutationState: CallState {}

extension MutationState: DefaultableState {
  /// The value, or `fallback` where there is none.
  public static func value(_ value: Value?, default fallback: Value) -> Value { value ?? fallback }
  /// The value itself.
  public static func stateValue(_ value: Value) -> Value? { value }
}
