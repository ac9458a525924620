import Synchronization

/// When a store was used last, whether it is in use, and how long its client retains it.
///
/// A store is in use while it has subscribers, runs or pending edits. A look-up by request is a use
/// of an instant.
///
/// The values are atomics because the client reads them under its own lock, under which it must not
/// lock the store. The store increments ``version`` under its lock. ``retention`` and ``deadline``
/// belong to the client, and are accessed under the client's lock only.
struct StoreUse: ~Copyable, Sendable {
  /// The beginning or the end of a use. A later change has a greater version.
  struct Change: Sendable {
    let isUsed: Bool
    let version: Int
  }

  /// The number of uses that began or ended.
  private let version = Atomic(0)
  /// The version of the last end whose time is recorded.
  private let recordedVersion = Atomic(0)
  // Nanoseconds of ``StoreHub/elapsed``.
  private let lastUseTime = Atomic(Int64(0))
  private let deadlineTime = Atomic(Int64.max)
  /// Nanoseconds; the greatest number is forever.
  private let retentionTime = Atomic(Int64(0))
  private let reportsChanges = Atomic(false)
  private let wasInserted = Atomic(false)
  private let wasEvicted = Atomic(false)
  private let wasListed = Atomic(false)

  var lastUse: Duration {
    get { .nanoseconds(lastUseTime.load(ordering: .acquiring)) }
    nonmutating set { lastUseTime.store(newValue.inNanoseconds, ordering: .releasing) }
  }

  /// How long the client retains the store. The limit is not part of it.
  var retention: OperationRetention {
    get { OperationRetention(nanoseconds: retentionTime.load(ordering: .relaxed)) }
    nonmutating set { retentionTime.store(newValue.nanoseconds, ordering: .relaxed) }
  }

  /// When the client checks whether it evicts the store; `nil` if the time is not known.
  var deadline: Duration? {
    get {
      let time = deadlineTime.load(ordering: .relaxed)
      return time == .max ? nil : .nanoseconds(time)
    }
    nonmutating set { deadlineTime.store(newValue?.inNanoseconds ?? .max, ordering: .relaxed) }
  }

  /// Whether the store reports each change to its client.
  ///
  /// One thread begins a use, or records the end, and then reads this; another one sets this and then
  /// reads ``latest``. In this one order of all threads, at least one of them notices the other.
  var isWatched: Bool {
    get { reportsChanges.load(ordering: .sequentiallyConsistent) }
    nonmutating set { reportsChanges.store(newValue, ordering: .sequentiallyConsistent) }
  }

  /// Whether the client retains the store.
  var isRetained: Bool {
    get { wasInserted.load(ordering: .acquiring) }
    nonmutating set { wasInserted.store(newValue, ordering: .releasing) }
  }

  /// Whether the client has evicted the store, and refers to it as long as it is referenced.
  var isEvicted: Bool {
    get { wasEvicted.load(ordering: .acquiring) }
    nonmutating set { wasEvicted.store(newValue, ordering: .releasing) }
  }

  /// Notes that the store is in the list of a ``ChangeFeed``. Returns `false` if it was.
  ///
  /// The feed unlists a store before it reads the store under its lock, and a store is listed after
  /// that lock was held. So the order of the accesses to the lock is enough.
  func noteListed() -> Bool {
    !wasListed.load(ordering: .relaxed) && !wasListed.exchange(true, ordering: .relaxed)
  }

  func noteUnlisted() { wasListed.store(false, ordering: .relaxed) }

  /// The version, whether the store counts as in use, and the time of its last use. A store counts as in
  /// use until the time at which its last use has ended is recorded.
  var latest: (version: Int, isInUse: Bool, lastUse: Duration) {
    let version = version.load(ordering: .sequentiallyConsistent)
    let isInUse = recordedVersion.load(ordering: .sequentiallyConsistent) < version
    return (version, isInUse, lastUse)
  }

  /// Begins or ends a use.
  ///
  /// The store calls this under its lock, so no change is missed and no other thread changes the
  /// version.
  func change(isUsed: Bool) -> Change {
    let new = version.load(ordering: .relaxed) + 1
    if isUsed {
      version.store(new, ordering: .sequentiallyConsistent)
    } else {
      // The store counts as in use until ``noteEnd(_:at:)`` has recorded this version, and the record
      // takes part in the one order of all threads. So this need not.
      version.store(new, ordering: .releasing)
    }
    return Change(isUsed: isUsed, version: new)
  }

  /// Records the time of the end of a use. Called without the store's lock, because it is the time
  /// of a clock, which is user code.
  func noteEnd(_ change: Change, at time: Duration) {
    lastUse = time
    recordedVersion.max(change.version, ordering: .sequentiallyConsistent)
  }
}
