import ReactiveStreams

/// Something that is saved under one key: the value of a store, or a call of a mutation.
struct SavedItem: Sendable {
  let key: String
  /// Identifies the store or the outbox that the item is of. The closures retain it.
  let owner: ObjectIdentifier
  /// Returns what has changed since it was saved, `nil` if nothing has. Called with no lock held.
  let takeChange: @Sendable () -> SavedChange?
}

/// A change of what is saved under a key.
struct SavedChange: Sendable {
  /// The new entry; `nil` removes it.
  let entry: StorageEntry?
  /// Notes that the change is in the storage. Called with no lock held.
  var didSave: @Sendable () -> Void = {}
}

/// The machine of a storage writer: what has changed, and when it is written.
///
/// - *idle*: nothing has changed since the last batch.
/// - *scheduled*: a batch is written when its timer is over, or when a caller flushes.
/// - *writing*: a batch is being written. What changes meanwhile is in the next one.
struct StorageWriterMachine: Sendable {
  enum Phase: Sendable { case idle, scheduled, writing }

  /// What is written at once. Entries are removed before others are saved.
  struct Batch: Sendable {
    let changes: Changes
    /// The number of changes before the batch.
    let changeCount: Int
    /// The timers that the batch has made needless. They are released with it: each retains the storage, and
    /// its lock file.
    let timers: [OperationSubscription]
    /// Whether the batch before it has failed. Then its entries are removed and saved one by one: one that
    /// the storage refuses must keep no other from that.
    let followsFailure: Bool
  }

  /// Items to save, and entries to remove from the storage.
  struct Changes: Sendable {
    /// The items by their keys and owners: the store that was removed from a path may still change.
    private var itemsByKey: [String: [ObjectIdentifier: SavedItem]] = [:]
    private(set) var removedKeys: Set<String> = []
    /// The keys that are removed together with those below them.
    private(set) var removedPrefixes: Set<String> = []

    var isEmpty: Bool { itemsByKey.isEmpty && removedKeys.isEmpty && removedPrefixes.isEmpty }

    var items: [SavedItem] { itemsByKey.values.flatMap(\.values) }

    /// Whether there is an item under a key, or also below it.
    func hasItem(_ key: String, isPrefix: Bool) -> Bool {
      isPrefix
        ? itemsByKey.keys.contains { StorageKey.isKey($0, below: key) } : itemsByKey[key] != nil
    }

    /// Whether something else than the owner is to be saved under a key.
    func contains(_ key: String, besides owner: ObjectIdentifier?) -> Bool {
      itemsByKey[key]?.keys.contains { $0 != owner } ?? false
    }

    func removes(_ key: String) -> Bool {
      if removedKeys.contains(key) { return true }
      return !removedPrefixes.isEmpty
        && StorageKey.prefixes(of: key).contains { removedPrefixes.contains($0) }
    }

    /// Adds an item. Returns the one that it replaces.
    mutating func add(_ item: SavedItem) -> [SavedItem] {
      [itemsByKey[item.key, default: [:]].updateValue(item, forKey: item.owner)].compactMap(\.self)
    }

    /// Removes the entry of a key, or also those below it. Returns the items that are not to be saved any more.
    mutating func remove(_ key: String, isPrefix: Bool) -> [SavedItem] {
      if isPrefix { removedPrefixes.insert(key) } else { removedKeys.insert(key) }
      let keys = isPrefix ? itemsByKey.keys.filter { StorageKey.isKey($0, below: key) } : [key]
      return keys.flatMap { itemsByKey.removeValue(forKey: $0)?.values.map(\.self) ?? [] }
    }
  }

  private(set) var phase = Phase.idle
  /// What has changed since the last batch.
  private var pending = Changes()
  /// What is in the batch that is being written.
  private var inBatch = Changes()
  private var timers: [OperationSubscription] = []
  private(set) var changeCount = 0
  /// The number of changes that are in the storage.
  private(set) var writtenCount = 0
  /// The number of batches that have failed since the last success.
  private var recentFailureCount = 0
  /// The number of changes before the last batch that has failed.
  private var failedCount = 0
  /// The number of batches that were written or have failed.
  private(set) var roundCount = 0
  /// Whether the next batch follows the one in flight without a wait.
  private var mustWriteNext = false
  /// Whether an item of the batch that is being written was removed since. The batch may have neither the change
  /// nor the removal, so what waits for it waits for the next one.
  private var isOvertaken = false
  /// How long changes are collected.
  private var delay: Duration

  init(delay: Duration) { self.delay = delay }

  /// The delay of the timer to start after a change, and the items that are not to be saved any more. Those are
  /// released without the lock: they retain stores, and so values of the user.
  typealias Noted = (delay: Duration?, dropped: [SavedItem])

  /// An item has changed.
  mutating func note(_ item: SavedItem) -> Noted { noteChange(dropping: pending.add(item)) }

  /// The entry of a key is to be removed, or also those below it. What was to be saved there is not.
  mutating func remove(_ key: String, isPrefix: Bool) -> Noted {
    if inBatch.hasItem(key, isPrefix: isPrefix) { (isOvertaken, mustWriteNext) = (true, true) }
    return noteChange(dropping: pending.remove(key, isPrefix: isPrefix))
  }

  private mutating func noteChange(dropping dropped: [SavedItem]) -> Noted {
    changeCount += 1
    return (schedule(after: delay), dropped)
  }

  /// Whether the entry under a key is to be removed, so that it is not loaded any more.
  func isRemoved(_ key: String) -> Bool {
    pending.removes(key) || inBatch.removes(key)
  }

  /// Whether something else than the owner is to be saved under a key.
  func isPending(_ key: String, besides owner: ObjectIdentifier?) -> Bool {
    pending.contains(key, besides: owner) || inBatch.contains(key, besides: owner)
  }

  private mutating func schedule(after delay: Duration) -> Duration? {
    guard phase == .idle else { return nil }
    phase = .scheduled
    return delay
  }

  /// Stores a timer that was started, until a batch begins. Returns it if one has begun. That of an earlier batch,
  /// which is stored late, may be among them, and replaces none.
  mutating func addTimer(_ timer: OperationSubscription) -> OperationSubscription? {
    if phase != .scheduled { return timer }
    timers.append(timer)
    return nil
  }

  /// A timer is over. Returns the batch to write, unless a flush has written it before. The timer of an earlier
  /// batch, which could not be cancelled in time, only lets the next one begin earlier.
  mutating func timerEnded() -> Batch? { phase == .scheduled ? begin() : nil }

  /// Returns the batch to write for a caller that flushes. If one is being written, the next one follows it, also
  /// if it fails.
  ///
  /// - Parameter isLast: Whether no caller flushes any more. Then later changes are not collected: the clock of their
  ///   timer may never be advanced again.
  mutating func flush(isLast: Bool = false) -> Batch? {
    if isLast { delay = .zero }
    if phase == .writing { mustWriteNext = !pending.isEmpty }
    return phase == .scheduled ? begin() : nil
  }

  /// What has become of the changes that a flush waits for.
  enum Outcome { case written, failed }

  /// Whether the first changes, up to a number, are in the storage, or a batch with them has failed since a round;
  /// `nil` while that is open.
  func outcome(of count: Int, since round: Int) -> Outcome? {
    if writtenCount >= count { return .written }
    // A batch that failed before that round does not count: the next one writes its changes, too.
    return roundCount > round && failedCount >= count ? .failed : nil
  }

  private mutating func begin() -> Batch {
    phase = .writing
    let batch = Batch(
      changes: pending, changeCount: changeCount, timers: exchange(&timers, with: []),
      followsFailure: recentFailureCount > 0)
    inBatch = pending
    pending = Changes()
    return batch
  }

  /// A batch was written, or has failed. A failed one is written again later; newer changes of the same keys
  /// replace its own. Returns the delay of the timer of the next batch.
  mutating func end(_ batch: Batch, isSuccess: Bool) -> Duration? {
    phase = .idle
    roundCount += 1
    if isSuccess {
      recentFailureCount = 0
      if !isOvertaken { writtenCount = batch.changeCount }
    } else {
      recentFailureCount += 1
      failedCount = batch.changeCount
      let newer = pending
      // What is replaced and dropped here is released without the lock, with the batch.
      pending = inBatch
      for key in newer.removedKeys { _ = pending.remove(key, isPrefix: false) }
      for key in newer.removedPrefixes { _ = pending.remove(key, isPrefix: true) }
      for item in newer.items { _ = pending.add(item) }
    }
    inBatch = Changes()
    isOvertaken = false
    let isNext = exchange(&mustWriteNext, with: false)
    if pending.isEmpty { return nil }
    let wait = OperationBackoffFunction.standard(recentFailureCount - 1)
    return schedule(after: isNext ? .zero : recentFailureCount > 0 ? wait : delay)
  }
}
