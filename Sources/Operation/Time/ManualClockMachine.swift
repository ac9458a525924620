import FoundationEssentials

/// The machine of the manual clock.
///
/// - A *sleep* and a *timer* wait for a time. A timer is an action, and is not counted.
/// - An *observer* waits for a number of sleeps.
/// - An *advance* that has woken a sleep waits until that sleep has returned in its task.
struct ManualClockMachine<Waiter: Sendable>: Sendable {
  typealias Action = @Sendable () -> Void

  /// What waits for a time.
  enum Event: Sendable {
    case sleep(Waiter)
    case timer(Action)
  }

  private struct Pending: Sendable {
    let id: UInt64
    let deadline: Duration
    let event: Event
  }

  private let start: Date
  private var elapsed = Duration.zero
  /// The sum of the times by which the clock was advanced, without those by which it was set back.
  private(set) var advanced = Duration.zero
  private var lastID: UInt64 = 0
  /// Sleeps and timers in the order of their deadlines, and of their beginnings where these are equal.
  private var pending: [Pending] = []
  private(set) var sleeperCount = 0
  private var observers: [(id: UInt64, count: Int, waiter: Waiter)] = []
  /// The advance for each sleep that was woken and has not returned.
  private var returning: [UInt64: Waiter] = [:]

  init(start: Date) { self.start = start }

  var now: Date { start.advanced(by: elapsed) }

  var isEmpty: Bool { pending.isEmpty && observers.isEmpty && returning.isEmpty }

  /// Begins a sleep of a positive duration, and returns the observers whose number it completes.
  mutating func sleep(for duration: Duration, waiter: Waiter) -> (id: UInt64, observers: [Waiter]) {
    let id = insert(.sleep(waiter), after: duration)
    sleeperCount += 1
    let satisfied = observers.filter { $0.count <= sleeperCount }
    observers.removeAll { $0.count <= sleeperCount }
    return (id, satisfied.map(\.waiter))
  }

  /// Sets a timer. One that is due at once waits for the next advance.
  mutating func schedule(after duration: Duration, _ action: @escaping Action) -> UInt64 {
    insert(.timer(action), after: max(duration, .zero))
  }

  /// Removes a sleep or a timer that is not due yet.
  mutating func remove(_ id: UInt64) -> Event? {
    guard let index = pending.firstIndex(where: { $0.id == id }) else { return nil }
    return takePending(at: index).event
  }

  /// Adds an observer; returns `nil` if there are enough sleeps already.
  mutating func observe(atLeast count: Int, waiter: Waiter) -> UInt64? {
    guard sleeperCount < count else { return nil }
    let id = makeID()
    observers.append((id, count, waiter))
    return id
  }

  mutating func removeObserver(_ id: UInt64) { observers.removeAll { $0.id == id } }

  mutating func advance(by duration: Duration) {
    let duration = duration.limited
    elapsed += duration
    advanced += max(duration, .zero)
  }

  /// Removes and returns the first sleep or timer that is due.
  ///
  /// - Parameter advance: Waits until the sleep has returned.
  mutating func takeDue(advance: Waiter) -> Event? {
    guard let first = pending.first, first.deadline <= elapsed else { return nil }
    if case .sleep = first.event { returning[first.id] = advance }
    return takePending(at: 0).event
  }

  /// Notes that a sleep has returned in its task, and returns the advance that waits for it.
  mutating func sleepReturned(_ id: UInt64) -> Waiter? { returning.removeValue(forKey: id) }

  private mutating func insert(_ event: Event, after duration: Duration) -> UInt64 {
    let id = makeID()
    let deadline = elapsed + min(duration, .longest)
    let index = pending.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
    pending.insert(Pending(id: id, deadline: deadline, event: event), at: index)
    return id
  }

  private mutating func takePending(at index: Int) -> Pending {
    let taken = pending.remove(at: index)
    if case .sleep = taken.event { sleeperCount -= 1 }
    return taken
  }

  private mutating func makeID() -> UInt64 {
    lastID += 1
    return lastID
  }
}
