public import FoundationEssentials

/// The state of a mutation: the value of the last call, and the history of calls.
///
/// Of overlapping calls the state displays the one that was started last. The others end in the
/// history only. If that one is cancelled, the state displays what it would without it: the result of
/// the call before, if that has ended meanwhile and nothing was called or set since. Calls in a
/// ``OperationRequest/serialized(in:)`` scope do not overlap.
public struct MutationState<Arguments: Sendable, Value: Sendable, Failure: Error>:
  ValueInitializedState, StampedState
{
  /// The value of the last call; `nil` until there is one.
  public typealias StateValue = Value?
  /// The type of the value that one run returns.
  public typealias OperationValue = Value
  /// The type of the value in the status.
  public typealias StatusValue = Value

  var facts: StateFacts<Value?, Failure>
  /// The attempts that ``history`` shows, after older ones that it can show again: an active call
  /// that is given up leaves the history, and an older attempt takes its place.
  private(set) var attempts = IdentifiedArrayOf<Attempt>()
  /// The number of active attempts among ``attempts``.
  private var activeAttemptCount = 0
  /// The number of attempts that ``history`` shows at most.
  private var maxHistory = 0
  /// The scheduled and running tasks, in no order.
  private var activeTasks = IdentifiedArrayOf<OperationTask<Value, Failure>>()
  /// The number of active tasks that wait for a connection.
  private var pausedCount = 0
  /// The calls that may overlap, from their start to their end.
  private var overlap = CallOverlap<Value, Failure>()
  /// The latest call that has ended, which may have left ``attempts``.
  private(set) var latestEnded: (id: OperationTaskID, arguments: Arguments)?
  /// The values that were replaced or removed since the last ``takeReleased()``.
  private var replacedValues: [any Sendable] = []

  /// Creates a state with an initial value, or without one.
  public init(initialValue: Value? = nil) {
    facts = StateFacts(initialValue, isEmpty: initialValue == nil)
  }

  /// No value.
  public static var emptyValue: Value? { nil }
  /// `false`: a value is stored as it is set.
  public static var preparesValues: Bool { false }
  /// A mutation.
  public static var kind: OperationKind { .mutation }

  /// The value that the mutation returned or a user set last.
  public var currentValue: Value? { facts.value }
  /// The value that the state began with.
  public var initialValue: Value? { facts.initial ?? nil }
  /// A Boolean value that indicates whether ``currentValue`` is not `nil`.
  public var hasValue: Bool { facts.value != nil }
  /// A Boolean value that indicates whether the state began with a value.
  public var hasInitialValue: Bool { facts.initial != nil }
  /// The number of values that were returned or set since the creation or the last reset.
  public var valueUpdateCount: Int { facts.valueCount }
  /// The date of the current value; `nil` if nothing was returned or set, or `nil` was set.
  public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// The last failure; `nil` once a value has followed it.
  public var error: Failure? { facts.error }
  /// The number of failures since the creation or the last reset.
  public var errorUpdateCount: Int { facts.errorCount }
  /// The date of the last failure.
  public var errorLastUpdatedAt: Date? { facts.errorDate }
  /// The latest attempts, oldest first, at most as many as ``MutationRequest/maxHistory(length:)``
  /// allows.
  ///
  /// A call has its attempt here from the moment it is scheduled, also while it is queued. A call
  /// that is cancelled, or given up before it was started, leaves no attempt.
  public var history: IdentifiedArrayOf<Attempt> {
    attempts.count <= maxHistory ? attempts : IdentifiedArray(attempts.suffix(maxHistory))
  }

  /// A Boolean value that indicates whether a run is scheduled or running.
  public var isLoading: Bool { !activeTasks.isEmpty }
  /// A Boolean value that indicates whether there are active runs and all wait for a connection.
  public var isPaused: Bool { isLoading && pausedCount == activeTasks.count }

  /// The retry that a run in flight waits for; that of the newest such run.
  public var retry: OperationRetry<Failure>? { activeTasks.newestRetry() }

  /// Records the retry that a run waits for.
  public mutating func setRetry(_ retry: OperationRetry<Failure>?, _ id: OperationTaskID) {
    activeTasks[id: id]?.retry = retry
  }

  /// Records whether a run waits for a connection.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    guard let task = activeTasks[id: id], task.isPaused != isPaused else { return }
    pausedCount += isPaused ? 1 : -1
    activeTasks[id: id]?.isPaused = isPaused
    attempts[id: id]?.isPaused = isPaused
  }
}

extension MutationState {
  /// One call of a mutation.
  public struct Attempt: Sendable, Identifiable {
    /// The task of the call.
    public let task: OperationTask<Value, Failure>
    /// The arguments of the call.
    public let arguments: Arguments
    /// The date of the call.
    public let startDate: Date
    /// The date of the last result; `nil` if there is none.
    public fileprivate(set) var lastUpdatedAt: Date?
    /// The last result, which is not the final one while the call is active.
    public fileprivate(set) var currentResult: Result<Value, Failure>?
    fileprivate var isActive = true
    fileprivate var isPaused = false

    /// The identifier of the task.
    public var id: OperationTaskID { task.id }

    /// The status of the call: loading or paused while it is active, and then its result.
    public var status: OperationStatus<Value, Failure> {
      guard !isActive, let currentResult else { return isPaused ? .paused : .loading }
      return .result(currentResult)
    }
  }

  /// Writes the arguments of the latest call into the context of a run without arguments.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? {
    if context.input == nil, let arguments = latestArguments {
      context.changeFacts { $0.input = RunArguments(arguments) }
    }
    return nil
  }

  /// Adds a scheduled task, and its attempt to the history.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<Value, Failure>) {
    activeTasks.append(task)
    guard let arguments = Self.arguments(of: task) else { return }
    attempts.append(Attempt(task: task, arguments: arguments, startDate: task.box.now()))
    activeAttemptCount += 1
    maxHistory = task.context.settings.values.maxHistory
  }

  /// Notes that a call starts, which is the last one from now on.
  public mutating func startFetchTask(_ task: OperationTask<Value, Failure>) {
    // Calls that follow each other do not overlap.
    if task.context.settings.values.serialScope?.limit != 1 { overlap.start(task.id) }
  }

  /// Removes the oldest attempts that ``history`` can never show again, because `maxHistory` later
  /// attempts have ended. Active attempts do not count, as they may be given up.
  private mutating func removeOldAttempts() {
    var laterEndedCount = attempts.count - activeAttemptCount
    while laterEndedCount >= maxHistory, let oldest = attempts.first {
      if !oldest.isActive { laterEndedCount -= 1 }
      if laterEndedCount < maxHistory { return }
      if oldest.isActive { activeAttemptCount -= 1 }
      replacedValues.append(oldest)
      attempts.remove(at: 0)
    }
  }

  /// Stores a result that was set.
  public mutating func update(
    with result: Result<Value?, Failure>, using context: OperationContext
  ) {
    facts.take(result, at: context.now())
    if let covered = overlap.takeCovered() { replacedValues.append(covered) }
  }

  /// Stores a result of a run in its attempt, and displays it if no overlapping call was started
  /// later.
  public mutating func update(
    with result: Result<Value, Failure>, for task: OperationTask<Value, Failure>
  ) {
    let date = task.box.now()
    let isDisplayed = overlap.display(of: task.id, again: task.box.display) != nil
    if isDisplayed { facts.take(result.map(Optional.some), at: date) }
    if let old = overlap.cover(isDisplayed ? nil : (result, date), of: task.id) {
      replacedValues.append(old)
    }
    if let replaced = attempts[id: task.id]?.currentResult { replacedValues.append(replaced) }
    attempts.update(id: task.id) { attempt in
      attempt.currentResult = result
      attempt.lastUpdatedAt = date
    }
  }

  /// Returns whether the task was active.
  private mutating func removeActive(_ task: OperationTask<Value, Failure>) -> Bool {
    guard let removed = activeTasks.remove(id: task.id) else { return false }
    if removed.isPaused { pausedCount -= 1 }
    return true
  }

  /// Removes a task that has ended. Its attempt stays in the history.
  public mutating func finishFetchTask(_ task: OperationTask<Value, Failure>) {
    guard removeActive(task) else { return }
    if let old = overlap.end(task.id) { replacedValues.append(old) }
    if attempts.update(id: task.id, { $0.isActive = false }) != nil { activeAttemptCount -= 1 }
    removeOldAttempts()
    guard let arguments = Self.arguments(of: task) else { return }
    if let latestEnded {
      if latestEnded.id > task.id { return }
      replacedValues.append(latestEnded.arguments)
    }
    latestEnded = (task.id, arguments)
  }

  /// Removes a task that was cancelled or never started, and its attempt. Displays the result of an
  /// earlier call that has ended meanwhile, if no other one overlaps it.
  public mutating func giveUpFetchTask(_ task: OperationTask<Value, Failure>) {
    guard removeActive(task) else { return }
    if let old = overlap.giveUp(task.id) { replacedValues.append(old) }
    if let (result, date) = overlap.takeUncovered() {
      facts.take(result.map(Optional.some), at: date)
    }
    guard let attempt = attempts.remove(id: task.id) else { return }
    replacedValues.append(attempt)
    activeAttemptCount -= 1
  }

  /// The arguments of the latest call, whether it is scheduled, active, or has ended. A call that
  /// was given up does not count.
  var latestArguments: Arguments? {
    let active = activeTasks.compactMap { task in
      Self.arguments(of: task).map { (id: task.id, arguments: $0) }
    }
    return (active + [latestEnded].compactMap(\.self)).max { $0.id < $1.id }?.arguments
  }

  private static func arguments(of task: OperationTask<Value, Failure>) -> Arguments? {
    (task.context.input as? RunArguments<Arguments>)?.arguments
  }

  /// Restores the initial value, removes all attempts, and returns an effect that cancels the
  /// active tasks.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = MutationState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }

  /// Returns the attempts, results and arguments that were replaced or removed.
  public mutating func takeReleased() -> [any Sendable] { exchange(&replacedValues, with: []) }
}

/// A state whose runs need arguments, so that none can start automatically before the first call. It determines
/// itself which of the results of overlapping calls is displayed.
protocol CallState {
  /// Returns a number for a result of a call that is displayed now; `nil` if a later call covers it.
  func display(of id: OperationTaskID) -> Int?
}

extension MutationState: CallState {
  func display(of id: OperationTaskID) -> Int? { overlap.display(of: id) }
}

extension MutationState: DefaultableState {
  /// Returns the value, or `fallback` if it is `nil`.
  public static func value(_ value: Value?, default fallback: Value) -> Value { value ?? fallback }
  /// Returns the value itself.
  public static func stateValue(_ value: Value) -> Value? { value }
}
