/// The machine of one task: how far it is, and who waits for its end.
///
/// Its phases:
/// - *scheduled*: nobody has started it.
/// - *running*: it has been started. Its Swift task may not have been handed in yet.
/// - *ended*: it has a result, and nobody waits any more.
///
/// A task whose failure cannot say "cancelled" stays in its phase when it is cancelled, and ends
/// with what its request ends with.
struct TaskMachine<Output: Sendable, Waiter: Sendable>: Sendable {
  enum Phase: Sendable {
    case scheduled
    case running(Task<Void, Never>?)
    case ended(Output)
  }

  enum Wait: Sendable {
    case suspend
    case resume(with: Output?)
  }

  /// Who goes on, and the Swift task that is cancelled.
  struct Actions: Sendable {
    var resumed = Waiters()
    var cancelled: Task<Void, Never>?

    init() {}
  }

  /// Those who go on: mostly one, for whom no array is made.
  struct Waiters: Sendable {
    var first: Waiter? = nil
    var others: [Waiter] = []

    func each(_ body: (Waiter) -> Void) {
      if let first { body(first) }
      for waiter in others { body(waiter) }
    }
  }

  /// Those who wait beside the first, and those who gave up before they waited: rarely anybody.
  struct Others: Sendable {
    var waiters: SlotList<OperationTaskID, Waiter>
    var tombstones: Set<OperationTaskID>

    init() {
      waiters = SlotList()
      tombstones = []
    }
  }

  var phase: Phase
  var progress: TaskProgress
  /// The one who waits first, and most often alone.
  var firstWaiter: Waiter?
  var firstWait: OperationTaskID?
  var others: Boxed<Others>

  // Not with the properties, where they would be made by code that asks for their types.
  init() {
    phase = .scheduled
    progress = []
    others = .none
  }

  var isEnded: Bool { progress.isEnded }
  var output: Output? { if case .ended(let output) = phase { output } else { nil } }
  var waiterCount: Int { (others.value?.waiters.count ?? 0) + (firstWaiter == nil ? 0 : 1) }

  /// Somebody starts the task; tells whether it is the first.
  mutating func start() -> Bool {
    guard case .scheduled = phase else { return false }
    phase = .running(nil)
    progress.insert(.started)
    return true
  }

  /// The Swift task was made; tells whether it is to be cancelled at once.
  mutating func attach(_ task: Task<Void, Never>) -> Bool {
    guard case .running = phase else { return progress.isCancelled }
    phase = .running(task)
    return progress.isCancelled
  }

  /// The task was cancelled; `output` is what its waiters get now, or nil if they have to wait for
  /// the end.
  mutating func cancel(with output: Output?) -> Actions {
    guard !isEnded else { return Actions() }
    progress.insert(.cancelled)
    var actions = Actions()
    if case .running(let task) = phase { actions.cancelled = task }
    if let output { actions.resumed = end(with: output) }
    return actions
  }

  /// The task ended; returns those who waited, in the order in which they came: a group forgets a
  /// child in constant time if its children end in the order in which it has them.
  mutating func end(with output: Output) -> Waiters {
    guard !isEnded else { return Waiters() }
    phase = .ended(output)
    progress.insert(.ended)
    let first = firstWaiter.take()
    if others.isNone { return Waiters(first: first) }
    var waiters = others.content.waiters
    others = .none
    if let first, let firstWait { waiters.insert(first, for: firstWait) }
    return Waiters(others: waiters.elements)
  }

  /// Somebody waits for the end.
  mutating func wait(_ id: OperationTaskID, waiter: Waiter) -> Wait {
    if case .ended(let output) = phase { return .resume(with: output) }
    if others.isNone {
      if firstWaiter == nil {
        (firstWait, firstWaiter) = (id, waiter)
        return .suspend
      }
      others = .some(Others())
    } else if others.content.tombstones.remove(id) != nil {
      return .resume(with: nil)
    }
    others.content.waiters.insert(waiter, for: id)
    return .suspend
  }

  /// Somebody does not want to wait any more; returns him if he waits.
  mutating func cancelWait(_ id: OperationTaskID) -> Waiter? {
    if firstWait == id, let first = firstWaiter.take() { return first }
    if others.isNone {
      if isEnded { return nil }
      others = .some(Others())
    }
    if let waiter = others.content.waiters.remove(id) { return waiter }
    if !isEnded { others.content.tombstones.insert(id) }
    return nil
  }
}
