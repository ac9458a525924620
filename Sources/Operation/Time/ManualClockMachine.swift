import FoundationEssentials

/// The machine of the manual clock.
///
/// A *sleeper* waits for a time, and a *timer* is an action that does; an *observer* waits for a number of sleepers; an *advance* waits
/// until the sleeper that it woke has returned (its acknowledgement). Every wait has an
/// identifier; a cancellation that comes before its wait leaves a tombstone.
struct ManualClockMachine<Waiter: Sendable>: Sendable {
  typealias Action = @Sendable () -> Void

  private struct Sleeper: Sendable {
    let id: UInt64
    let deadline: Duration
    let kind: Kind

    var waiter: Waiter? { if case .waiter(let waiter) = kind { waiter } else { nil } }
  }

  private enum Kind: Sendable {
    case waiter(Waiter)
    case action(Action)
  }

  private struct Observer: Sendable {
    let id: UInt64
    let count: Int
    let waiter: Waiter
  }

  enum Wake: Sendable {
    case sleeper(UInt64, Waiter, acknowledgement: UInt64)
    case timer(Action)
  }

  private let start: Date
  private var elapsed = Duration.zero
  private var nextID: UInt64 = 0
  /// Sleepers and timers, in the order in which they are due.
  private var sleepers: [Sleeper] = []
  private var observers: [Observer] = []
  /// Sleepers that were woken and have not returned, with the advance that waits for them.
  private var returning: [UInt64: (advance: UInt64, waiter: Waiter?)] = [:]
  private var tombstones: Set<UInt64> = []

  init(start: Date) {
    self.start = start
  }

  var now: Date { start.advanced(by: elapsed) }
  private(set) var sleeperCount = 0

  mutating func makeID() -> UInt64 {
    defer { nextID += 1 }
    return nextID
  }

  mutating func sleep(
    _ id: UInt64, for duration: Duration, waiter: Waiter
  ) -> ManualClockWakes<Waiter> {
    if tombstones.remove(id) != nil { return ManualClockWakes(cancelled: [waiter]) }
    guard duration > .zero else { return ManualClockWakes(woken: [waiter]) }
    insert(id, after: duration, .waiter(waiter))
    sleeperCount += 1
    return ManualClockWakes(woken: takeSatisfiedObservers())
  }

  /// Sets a timer, which is no sleeper: nobody waits for it. One that is due now goes off with the
  /// next advance.
  mutating func schedule(_ id: UInt64, after duration: Duration, _ action: @escaping Action) {
    insert(id, after: max(duration, .zero), .action(action))
  }

  /// Takes back a timer, and gives what is to be released.
  mutating func unschedule(_ id: UInt64) -> (any Sendable)? {
    sleepers.firstIndex { $0.id == id }.map { sleepers.remove(at: $0) }
  }

  private mutating func insert(_ id: UInt64, after duration: Duration, _ kind: Kind) {
    let deadline = elapsed + min(duration, .longest)
    let index = sleepers.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
    sleepers.insert(Sleeper(id: id, deadline: deadline, kind: kind), at: index)
  }

  mutating func observe(
    _ id: UInt64, atLeast count: Int, waiter: Waiter
  ) -> ManualClockWakes<Waiter> {
    if tombstones.remove(id) != nil { return ManualClockWakes(cancelled: [waiter]) }
    guard sleeperCount < count else { return ManualClockWakes(woken: [waiter]) }
    observers.append(Observer(id: id, count: count, waiter: waiter))
    return ManualClockWakes()
  }

  mutating func advance(by duration: Duration) {
    elapsed += min(max(duration, .zero - .longest), .longest)
  }

  /// Takes the first sleeper or timer that is due; for a sleeper the advance then waits for the
  /// acknowledgement.
  mutating func wakeNext() -> Wake? {
    guard let first = sleepers.first, first.deadline <= elapsed else { return nil }
    sleepers.removeFirst()
    switch first.kind {
    case .action(let action): return .timer(action)
    case .waiter(let waiter):
      sleeperCount -= 1
      let acknowledgement = makeID()
      returning[first.id] = (acknowledgement, nil)
      return .sleeper(first.id, waiter, acknowledgement: acknowledgement)
    }
  }

  mutating func awaitAcknowledgement(
    _ id: UInt64, of sleeper: UInt64, waiter: Waiter
  ) -> ManualClockWakes<Waiter> {
    if tombstones.remove(id) != nil { return ManualClockWakes(cancelled: [waiter]) }
    guard returning[sleeper] != nil else { return ManualClockWakes(woken: [waiter]) }
    returning[sleeper] = (id, waiter)
    return ManualClockWakes()
  }

  /// A sleep has returned in its task.
  mutating func acknowledge(_ sleeper: UInt64) -> Waiter? {
    returning.removeValue(forKey: sleeper)?.waiter
  }

  /// The task of a wait was cancelled.
  mutating func cancel(_ id: UInt64) -> Waiter? {
    if let index = sleepers.firstIndex(where: { $0.id == id }) {
      sleeperCount -= 1
      return sleepers.remove(at: index).waiter
    }
    if let index = observers.firstIndex(where: { $0.id == id }) {
      return observers.remove(at: index).waiter
    }
    if let entry = returning.first(where: { $0.value.advance == id }),
      let waiter = entry.value.waiter
    {
      returning[entry.key] = (id, nil)
      return waiter
    }
    if returning[id] == nil { tombstones.insert(id) }
    return nil
  }

  /// A wait is over; a cancellation that came too late for it leaves nothing behind.
  mutating func forget(_ id: UInt64) {
    tombstones.remove(id)
  }

  /// Whether nobody waits, and nothing is left of those who did.
  var hasNoTraces: Bool {
    sleepers.isEmpty && observers.isEmpty && returning.isEmpty && tombstones.isEmpty
  }

  private mutating func takeSatisfiedObservers() -> [Waiter] {
    let satisfied = observers.filter { $0.count <= sleeperCount }
    observers.removeAll { $0.count <= sleeperCount }
    return satisfied.map(\.waiter)
  }
}
