/// Something that is saved under one key: the value of a store, or a call of a mutation.
protocol SavedItem: AnyObject, Sendable {
  var key: String { get }
  /// Identifies the store or the call that the item is of.
  var owner: ObjectIdentifier { get }

  /// Returns what has changed since it was saved, `nil` if nothing has. Called with no lock held.
  func takeChange() -> SavedChange?
  /// Notes that a change is in the storage.
  func didSave(_ change: SavedChange)
}

/// A change of what is saved under a key.
struct SavedChange: Sendable {
  /// What the item knows its change by.
  let mark: [Int]
  /// The new entry; `nil` removes it.
  let entry: StorageEntry?
}

/// The machine of a storage writer: what has changed, and when it is written.
///
/// - *idle*: nothing has changed since the last batch.
/// - *scheduled*: a batch is written when its timer is over, or when somebody flushes.
/// - *writing*: a batch is being written. What changes meanwhile is in the next one.
struct StorageWriterMachine: Sendable {
  enum Phase: Sendable, Equatable {
    case idle
    case scheduled(timer: Int)
    case writing
  }

  /// Entries that are removed, whoever has saved them.
  enum Removal: Sendable {
    case key(String)
    case below(String)

    func contains(_ key: String) -> Bool {
      switch self {
      case .key(let removed): key == removed
      case .below(let prefix): StorageKey.isKey(key, below: prefix)
      }
    }
  }

  /// What is written at once. Entries are removed before others are saved.
  struct Batch: Sendable {
    var items: [any SavedItem]
    var removals: [Removal]
    /// The number of changes before the batch.
    let changeCount: Int
  }

  private struct Changes: Sendable {
    var items: [String: any SavedItem] = [:]
    var removals: [Removal] = []

    var isEmpty: Bool { items.isEmpty && removals.isEmpty }
  }

  /// What remains to be done after a batch.
  struct Outcome: Sendable {
    /// When the next batch is written.
    var timer: Timer?
    /// Whether this is the first failure since a success.
    var mustReport = false
  }

  struct Timer: Sendable, Equatable {
    let number: Int
    let delay: Duration
  }

  private(set) var phase = Phase.idle
  /// What has changed since the last batch.
  private var pending = Changes()
  /// What is in the batch that is being written.
  private var inBatch = Changes()
  private var lastTimer = 0
  private(set) var changeCount = 0
  /// The number of changes that are in the storage.
  private(set) var writtenCount = 0
  /// The number of batches that have failed, and those among them since the last success.
  private(set) var failureCount = 0
  private var recentFailureCount = 0
  /// The number of batches that were written or have failed.
  private(set) var roundCount = 0
  /// How long changes are collected.
  let delay: Duration

  init(delay: Duration) { self.delay = delay }

  /// Items that are not to be saved any more, until they are released without the lock: they retain
  /// stores, and so values of the user.
  private var dropped: [any SavedItem] = []

  mutating func takeDropped() -> [any SavedItem] {
    defer { dropped = [] }
    return dropped
  }

  /// An item has changed. Returns the timer to start.
  mutating func note(_ item: any SavedItem) -> Timer? {
    if let replaced = pending.items.updateValue(item, forKey: item.key) { dropped.append(replaced) }
    changeCount += 1
    return schedule(after: delay)
  }

  /// Entries are to be removed. What was to be saved there is not.
  mutating func remove(_ removal: Removal) -> Timer? {
    for key in pending.items.keys where removal.contains(key) {
      if let item = pending.items.removeValue(forKey: key) { dropped.append(item) }
    }
    pending.removals.append(removal)
    changeCount += 1
    return schedule(after: delay)
  }

  /// Whether the entry under a key is to be removed, so that it is not loaded any more.
  func isRemoved(_ key: String) -> Bool {
    (pending.removals + inBatch.removals).contains { $0.contains(key) }
  }

  /// Whether something else than the owner is to be saved under a key.
  func isPending(_ key: String, besides owner: ObjectIdentifier?) -> Bool {
    [pending.items[key], inBatch.items[key]].contains { $0.map { $0.owner != owner } ?? false }
  }

  private mutating func schedule(after delay: Duration) -> Timer? {
    guard phase == .idle else { return nil }
    lastTimer += 1
    phase = .scheduled(timer: lastTimer)
    return Timer(number: lastTimer, delay: delay)
  }

  /// A timer is over. Returns the batch to write, unless somebody has flushed since.
  mutating func timerEnded(_ number: Int) -> Batch? {
    phase == .scheduled(timer: number) ? begin() : nil
  }

  /// Somebody flushes. Returns the batch to write, if none is being written.
  mutating func flush() -> Batch? {
    if case .scheduled = phase { begin() } else { nil }
  }

  private mutating func begin() -> Batch {
    phase = .writing
    let batch = Batch(
      items: Array(pending.items.values), removals: pending.removals, changeCount: changeCount)
    inBatch = pending
    pending = Changes()
    return batch
  }

  /// A batch is in the storage, or it has failed: then it is written again later, but for what has
  /// changed since.
  mutating func end(_ batch: Batch, isSuccess: Bool) -> Outcome {
    phase = .idle
    roundCount += 1
    inBatch = Changes()
    var outcome = Outcome()
    if isSuccess {
      recentFailureCount = 0
      writtenCount = batch.changeCount
    } else {
      failureCount += 1
      recentFailureCount += 1
      outcome.mustReport = recentFailureCount == 1
      for item in batch.items where pending.items[item.key] == nil && !isRemoved(item.key) {
        pending.items[item.key] = item
      }
      pending.removals = batch.removals + pending.removals
    }
    if !pending.isEmpty {
      let wait = OperationBackoffFunction.standard(recentFailureCount - 1)
      outcome.timer = schedule(after: recentFailureCount > 0 ? wait : delay)
    }
    return outcome
  }
}
