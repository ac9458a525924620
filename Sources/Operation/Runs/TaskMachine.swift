/// The machine of one task: its phase, and the callers that wait for its end.
///
/// - *scheduled*: the task has not been started.
/// - *running*: it has been started. Its Swift task may not have been attached yet.
/// - *ended*: it has an output, and no caller waits.
///
/// A task whose failure cannot be a `CancellationError` keeps its phase when it is cancelled, and
/// ends with the result of its request.
struct TaskMachine<Output: Sendable, Waiter: Sendable>: Sendable {
  typealias Waiters = WaitList<Waiter>

  enum Phase: Sendable {
    case scheduled
    case running(Task<Void, Never>?)
    case ended(Output)
  }

  private var phase = Phase.scheduled
  private(set) var progress: TaskProgress = []
  /// The number of restarts: the Swift task of an earlier launch does not count any more.
  private(set) var launch = 0
  /// The raw priority of the highest caller that joined. A Swift task that is attached later gets it.
  private(set) var requestedPriority: UInt8?
  private(set) var waiters = Waiters()

  var output: Output? { if case .ended(let output) = phase { output } else { nil } }

  /// Starts the task. Returns whether it was scheduled until now.
  mutating func start() -> Bool {
    guard case .scheduled = phase else { return false }
    phase = .running(nil)
    progress.insert(.started)
    return true
  }

  /// Attaches the Swift task of a launch. Returns whether it has to be cancelled at once.
  mutating func attach(_ task: Task<Void, Never>, launch: Int = 0) -> Bool {
    if launch < self.launch { return true }
    if case .running = phase { phase = .running(task) }
    return progress.isCancelled
  }

  /// A launch replaces the earlier ones. Returns the Swift task to cancel.
  mutating func restart(launch: Int) -> Task<Void, Never>? {
    guard case .running(let task) = phase, launch > self.launch else { return nil }
    self.launch = launch
    phase = .running(nil)
    return task
  }

  /// A caller with a priority joins the task. Returns the Swift task to escalate; one that is attached
  /// later, also by a restart, is escalated then. A scheduled task that is joined is about to be started.
  mutating func escalate(to priority: TaskPriority) -> Task<Void, Never>? {
    requestedPriority = max(requestedPriority ?? 0, priority.rawValue)
    return if case .running(let task) = phase { task } else { nil }
  }

  /// Cancels the task. Returns the waiters to resume, and the Swift task to cancel.
  ///
  /// - Parameter output: The output that waiters receive now; `nil` if they wait for the end.
  mutating func cancel(with output: Output?) -> (resumed: Waiters, cancelled: Task<Void, Never>?) {
    guard !progress.isEnded else { return (Waiters(), nil) }
    progress.insert(.cancelled)
    let task: Task<Void, Never>? = if case .running(let task) = phase { task } else { nil }
    return (output.map { end(with: $0) } ?? Waiters(), task)
  }

  /// Ends the task. Returns the waiters.
  mutating func end(with output: Output) -> Waiters {
    guard !progress.isEnded else { return Waiters() }
    phase = .ended(output)
    progress.insert(.ended)
    return exchange(&waiters, with: Waiters())
  }

  /// Begins a wait for the end. Returns the output if the task has ended; then no waiter is kept.
  mutating func wait(_ id: OperationTaskID, waiter: Waiter) -> Output? {
    if case .ended(let output) = phase { return output }
    waiters.insert(waiter, for: id)
    return nil
  }

  /// Cancels a wait. Returns its waiter, if it has begun and the task has not ended.
  mutating func cancelWait(_ id: OperationTaskID) -> Waiter? { waiters.remove(id) }
}

/// What has happened to a task so far.
struct TaskProgress: OptionSet, Sendable {
  static let started = Self(rawValue: 1)
  static let cancelled = Self(rawValue: 2)
  static let ended = Self(rawValue: 4)

  let rawValue: UInt8

  var hasStarted: Bool { contains(.started) }
  var isCancelled: Bool { contains(.cancelled) }
  var isEnded: Bool { contains(.ended) }
  /// Whether the task was started or cancelled.
  var hasBegun: Bool { hasStarted || isCancelled }
  /// Whether the task was cancelled before its start.
  var isNeverStarted: Bool { isCancelled && !hasStarted }
}
