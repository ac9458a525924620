import FoundationEssentials

/// The machine of the manual clock.
///
/// A *sleeper* waits for a time; an *observer* waits for a number of sleepers; an *advance* waits
/// until the sleeper that it woke has returned (its acknowledgement). Every wait has an
/// identifier; a cancellation that comes before its wait leaves a tombstone.
struct ManualClockMachine<Waiter: Sendable>: Sendable {
  private struct Sleeper: Sendable {
    let id: UInt64
    let deadline: Duration
    let waiter: Waiter
  }

  private struct Observer: Sendable {
    let id: UInt64
    let count: Int
    let waiter: Waiter
  }

  struct Wake: Sendable {
    let id: UInt64
    let waiter: Waiter
    let acknowledgement: UInt64
  }

  private let start: Date
  private var elapsed = Duration.zero
  private var nextID: UInt64 = 0
  /// In the order in which they are due.
  private var sleepers: [Sleeper] = []
  private var observers: [Observer] = []
  /// Sleepers that were woken and have not returned, with the advance that waits for them.
  private var returning: [UInt64: (advance: UInt64, waiter: Waiter?)] = [:]
  private var tombstones: Set<UInt64> = []

  init(start: Date) {
    self.start = start
  }

  var now: Date { start.advanced(by: elapsed) }
  var sleeperCount: Int { sleepers.count }

  mutating func makeID() -> UInt64 {
    defer { nextID += 1 }
    return nextID
  }

  mutating func sleep(
    _ id: UInt64, for duration: Duration, waiter: Waiter
  ) -> ManualClockWakes<Waiter> {
    if tombstones.remove(id) != nil { return ManualClockWakes(cancelled: [waiter]) }
    guard duration > .zero else { return ManualClockWakes(woken: [waiter]) }
    let deadline = elapsed + min(duration, .longest)
    let index = sleepers.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
    sleepers.insert(Sleeper(id: id, deadline: deadline, waiter: waiter), at: index)
    return ManualClockWakes(woken: takeSatisfiedObservers())
  }

  mutating func observe(
    _ id: UInt64, atLeast count: Int, waiter: Waiter
  ) -> ManualClockWakes<Waiter> {
    if tombstones.remove(id) != nil { return ManualClockWakes(cancelled: [waiter]) }
    guard sleepers.count < count else { return ManualClockWakes(woken: [waiter]) }
    observers.append(Observer(id: id, count: count, waiter: waiter))
    return ManualClockWakes()
  }

  mutating func advance(by duration: Duration) {
    elapsed += min(max(duration, .zero - .longest), .longest)
  }

  /// Takes the first sleeper that is due; its advance then waits for the acknowledgement.
  mutating func wakeNext() -> Wake? {
    guard let first = sleepers.first, first.deadline <= elapsed else { return nil }
    sleepers.removeFirst()
    let acknowledgement = makeID()
    returning[first.id] = (acknowledgement, nil)
    return Wake(id: first.id, waiter: first.waiter, acknowledgement: acknowledgement)
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
    let satisfied = observers.filter { $0.count <= sleepers.count }
    observers.removeAll { $0.count <= sleepers.count }
    return satisfied.map(\.waiter)
  }
}
