import ReactiveStreams

/// The machine of a ``BatchLoader``: the keys that wait for a batch, and the batch in flight.
///
/// - *idle*: no key waits, and no batch is in flight.
/// - *collecting*: keys wait for the delay, or for more keys.
/// - *loading*: a batch is in flight. Keys that are requested meanwhile wait for a later one.
struct BatchMachine<Key: Hashable & Sendable, Waiter: Sendable>: Sendable {
  struct Entry: Sendable, Identifiable {
    let id: Key
    var waiters = SlotList<OperationTaskID, Waiter>()
  }

  enum Action: Sendable {
    case none
    /// The delay begins, and ends with ``BatchMachine/delayIsOver(_:)``. Its timer is stored in the place.
    case startDelay(LateSubscription)
    /// A batch is loaded, which has a number.
    case load([Key], Int)
  }

  private var pending = IdentifiedArrayOf<Entry>()
  /// The entries of the batch in flight that have waiters.
  private var batch = IdentifiedArrayOf<Entry>()
  private var isLoading = false
  /// The task that loads the batch in flight; `nil` until the loader has stored it.
  private var task: Task<Void, Never>?
  /// The timer of the delay; `nil` while no key waits.
  private var delay: LateSubscription?
  private var batchNumber = 0
  /// Whether the delay is over for the pending keys.
  private var isDue = false
  private let maxSize: Int

  init(maxSize: Int) { self.maxSize = maxSize }

  mutating func add(_ key: Key, _ id: OperationTaskID, _ waiter: Waiter) -> Action {
    let isFirst = pending.isEmpty
    if pending.index(id: key) == nil { pending.append(Entry(id: key)) }
    pending.update(id: key) { $0.waiters.insert(waiter, for: id) }
    if !isLoading, pending.count >= maxSize { return load() }
    guard isFirst else { return .none }
    let new = LateSubscription()
    delay = new
    return .startDelay(new)
  }

  /// Returns the timer if no key waits any more, to be cancelled without the lock.
  mutating func takeTimer() -> LateSubscription? { pending.isEmpty ? delay.take() : nil }

  mutating func delayIsOver(_ delay: LateSubscription) -> Action {
    guard delay === self.delay, !pending.isEmpty else { return .none }
    isDue = true
    return isLoading ? .none : load()
  }

  /// The batch has ended. Returns the keys that have waiters, and what follows.
  mutating func end() -> (entries: [Entry], next: Action) {
    let entries = Array(batch)
    batch = []
    isLoading = false
    task = nil
    return (entries, isDue || pending.count >= maxSize ? load() : .none)
  }

  /// A waiter is cancelled. Returns it, the task to cancel if no waiter of the batch in flight is left, and
  /// what is released without the lock.
  mutating func cancel(
    _ id: OperationTaskID, of key: Key
  ) -> (waiter: Waiter?, abandoned: Task<Void, Never>?, released: Entry?) {
    let (collected, entry) = Self.remove(id, of: key, from: &pending)
    if pending.isEmpty { isDue = false }
    if let collected { return (collected, nil, entry) }
    let (loading, loadingEntry) = Self.remove(id, of: key, from: &batch)
    return (loading, loading != nil && batch.isEmpty ? task : nil, loadingEntry)
  }

  /// Stores the task that loads a batch. Returns whether to cancel it: no waiter of the batch is left.
  mutating func setTask(_ task: Task<Void, Never>, of number: Int) -> Bool {
    // The batch may have ended meanwhile, and a later one may have begun.
    guard number == batchNumber, isLoading else { return false }
    self.task = task
    return batch.isEmpty
  }

  /// Removes a waiter, and its entry if that has no other one.
  private static func remove(
    _ id: OperationTaskID, of key: Key, from entries: inout IdentifiedArrayOf<Entry>
  ) -> (waiter: Waiter?, entry: Entry?) {
    let waiter = entries.update(id: key) { $0.waiters.remove(id) } ?? nil
    let isLast = entries[id: key]?.waiters.count == 0
    return (waiter, isLast ? entries.remove(id: key) : nil)
  }

  private mutating func load() -> Action {
    batch = IdentifiedArrayOf(pending.prefix(maxSize))
    pending.removeFirst(maxSize)
    if pending.isEmpty { isDue = false }
    isLoading = true
    batchNumber += 1
    return .load(batch.ids, batchNumber)
  }
}
