import FoundationEssentials

/// The machine of the manual clock.
///
/// - A *sleep* and a *timer* wait for a time. A timer is an action, and is not counted.
/// - An *observer* waits for a number of sleeps, or until the clock is settled.
/// - An *advance* that has woken a sleep waits until that sleep has returned in its task, and, if more is
///   due, until the clock is settled.
/// - A *job* is a piece of a task of the library that uses the clock, from one wait to the next. The clock
///   is *settled* when there is none, and every sleep that was woken has returned.
struct ManualClockMachine<Waiter: Sendable>: Sendable {
  typealias Action = @Sendable () -> Void

  /// What waits for a time.
  enum Event: Sendable {
    case sleep(Waiter)
    case timer(Action)
  }

  private struct Deadline: Comparable, Sendable {
    let time: Duration
    let id: UInt64

    static func < (lhs: Deadline, rhs: Deadline) -> Bool { (lhs.time, lhs.id) < (rhs.time, rhs.id) }
  }

  private let start: Date
  private var elapsed = Duration.zero
  /// The sum of the times by which the clock was advanced, without those by which it was set back: these change the
  /// date, and no wait.
  private(set) var advanced = Duration.zero
  private var lastID: UInt64 = 0
  /// The last identifier before the clock was advanced.
  private var lastIDBeforeAdvance: UInt64 = 0
  /// Sleeps and timers.
  private var pending: [UInt64: Event] = [:]
  /// Their deadlines. Some of removed ones are among them, but never first.
  private var deadlines = Heap<Deadline>()
  private(set) var sleeperCount = 0
  private var observers: [Observer] = []
  /// The advance for each sleep that was woken and has not returned.
  private var returning: [UInt64: Waiter] = [:]
  /// The number of jobs that are queued or being performed.
  private var jobCount = 0

  private struct Observer: Sendable {
    let id: UInt64
    let waiter: Waiter
    /// The number of sleeps that it waits for; `nil` if it waits until the clock is settled.
    var sleeperCount: Int?
    /// The number of jobs that it waits for at most until the clock is settled.
    var patience = Int.max
  }

  /// The number of jobs that an advance waits for at most: runs that start each other without an end must not
  /// stop it.
  static var patienceOfAdvance: Int { 1_000 }

  init(start: Date) { self.start = start }

  var now: Date { start.advanced(by: elapsed) }

  var isEmpty: Bool { pending.isEmpty && observers.isEmpty && isSettled }

  private var isSettled: Bool { jobCount == 0 && returning.isEmpty }

  /// Begins a sleep of a positive duration, and returns the observers whose number it completes.
  mutating func sleep(for duration: Duration, waiter: Waiter) -> (id: UInt64, observers: [Waiter]) {
    let id = insert(.sleep(waiter), after: duration)
    sleeperCount += 1
    return (id, takeReady())
  }

  /// Sets a timer. One that is due at once waits for the next advance.
  mutating func schedule(after duration: Duration, _ action: @escaping Action) -> UInt64 {
    insert(.timer(action), after: max(duration, .zero))
  }

  /// Removes a sleep or a timer that is not due yet.
  mutating func remove(_ id: UInt64) -> Event? {
    guard let event = pending.removeValue(forKey: id) else { return nil }
    if case .sleep = event { sleeperCount -= 1 }
    while let first = deadlines.first, pending[first.id] == nil { _ = deadlines.popFirst() }
    // So that the clock does not collect the deadlines of removed timers.
    if deadlines.count > 2 * pending.count + 64 {
      deadlines = Heap(deadlines.elements.filter { pending[$0.id] != nil })
    }
    return event
  }

  /// Adds an observer; returns `nil` if there are enough sleeps already.
  mutating func observe(atLeast count: Int, waiter: Waiter) -> UInt64? {
    add(Observer(id: makeID(), waiter: waiter, sleeperCount: count))
  }

  mutating func removeObserver(_ id: UInt64) { observers.removeAll { $0.id == id } }

  mutating func advance(by duration: Duration) {
    let duration = duration.limited
    elapsed += duration
    if duration < .zero { return }
    lastIDBeforeAdvance = lastID
    advanced += duration
  }

  /// The first sleep or timer that is due. A timer that was set after the clock was advanced, and is due at
  /// once, waits for the next advance.
  private var firstDue: UInt64? {
    guard let first = deadlines.first, first.time <= advanced, first.id <= lastIDBeforeAdvance
    else { return nil }
    return first.id
  }

  /// Removes and returns the first sleep or timer that is due.
  ///
  /// - Parameter advance: Waits until the sleep has returned.
  mutating func takeDue(advance: Waiter) -> Event? {
    guard let id = firstDue, let event = remove(id) else { return nil }
    if case .sleep = event { returning[id] = advance }
    return event
  }

  /// Adds a waiter for a settled clock, for an advance that has woken something; returns `nil` if it need not
  /// wait, because nothing more is due, or the clock is settled.
  mutating func settleBeforeDue(waiter: Waiter) -> UInt64? {
    firstDue == nil ? nil : settle(waiter: waiter, patience: Self.patienceOfAdvance)
  }

  /// Notes that a sleep has returned in its task, and returns the advance that waits for it, and what
  /// waits until the clock is settled, if it is now.
  mutating func sleepReturned(_ id: UInt64) -> [Waiter] {
    guard let advance = returning.removeValue(forKey: id) else { return [] }
    return [advance] + takeReady()
  }

  /// Adds a waiter for a settled clock; returns `nil` if it is settled already.
  mutating func settle(waiter: Waiter, patience: Int = .max) -> UInt64? {
    add(Observer(id: makeID(), waiter: waiter, patience: patience))
  }

  /// Notes that a task of the library can continue.
  mutating func beginJob() { jobCount += 1 }

  /// Notes that a task of the library waits or has ended, and returns what waits until the clock is
  /// settled, if it is now.
  mutating func endJob() -> [Waiter] {
    precondition(jobCount > 0, "a job of the clock has ended that did not begin")
    jobCount -= 1
    for index in observers.indices { observers[index].patience -= 1 }
    return takeReady()
  }

  /// Adds an observer, and returns its identifier; `nil` if it need not wait.
  private mutating func add(_ observer: Observer) -> UInt64? {
    if isReady(observer) { return nil }
    observers.append(observer)
    return observer.id
  }

  /// Whether an observer need not wait: enough sleeps have begun, or the clock is settled, or it has waited
  /// for enough jobs.
  private func isReady(_ observer: Observer) -> Bool {
    observer.sleeperCount.map { $0 <= sleeperCount } ?? (isSettled || observer.patience <= 0)
  }

  /// Removes and returns the observers that do not wait any more.
  private mutating func takeReady() -> [Waiter] {
    let ready = observers.filter { isReady($0) }
    if !ready.isEmpty { observers = observers.filter { !isReady($0) } }
    return ready.map(\.waiter)
  }

  private mutating func insert(_ event: Event, after duration: Duration) -> UInt64 {
    let id = makeID()
    pending[id] = event
    deadlines.insert(Deadline(time: advanced + min(duration, .longest), id: id))
    return id
  }

  private mutating func makeID() -> UInt64 {
    lastID += 1
    return lastID
  }
}
