/// Which stores a client evicts, and when.
///
/// Each store that is not retained forever has a deadline in a heap, which is not later than the end
/// of its retention. One timer is set for the first deadline. When the timer fires, the index reads the
/// ``StoreUse`` of each store whose deadline has passed, and evicts the store, sets a later deadline,
/// or, if the store is in use, waits until it reports the end. So other uses change nothing here.
///
/// Stores always report their uses if the client limits the number of unused stores, or if they are
/// evicted when their last use ends.
extension StoreIndex {
  /// When a store is checked. It counts only while it is the ``StoreUse/deadline`` of the store.
  struct Deadline: Sendable, Comparable {
    let time: Duration
    let path: OperationPath
    let id: ObjectIdentifier

    static func < (lhs: Deadline, rhs: Deadline) -> Bool { lhs.time < rhs.time }
  }

  /// A timer, and the place for its subscription, which is made without the lock.
  struct Timer: Sendable {
    let time: Duration
    let place = LateSubscription()
  }

  /// The stores that are not retained forever.
  private var evictable: [OpaqueOperationStore] {
    entries.tree(matching: []).values.flatMap { $0.references.compactMap(\.retained) }
      .filter { !$0.withUse { $0.retention.isForever } }
  }

  /// Returns the timer to set and the one that it replaces, if none is set or the one that is set is too late.
  mutating func nextTimer(at now: Duration) -> (new: Timer, old: Timer?)? {
    // Only a clock that makes its time from a date goes back. Threads do not take the lock in the order
    // in which they read the clock, so a few seconds do not count.
    if now < lastSeen - .seconds(10) { restartRetention(at: now) }
    lastSeen = now
    guard let first = deadlines.first?.time, timer.map({ first < $0.time }) ?? true else {
      return nil
    }
    let new = Timer(time: first)
    return (new, exchange(&timer, with: new))
  }

  /// Starts the time of each store again, after the clock was set back.
  private mutating func restartRetention(at now: Duration) {
    for store in evictable {
      store.withUse { $0.lastUse = min($0.lastUse, now) }
      setDeadline(store.withUse { $0.retention.evictionDelay }.map { now + $0 }, of: store)
    }
  }

  /// Evicts the stores whose time is over, when the timer in a place has fired. One that was replaced does nothing.
  mutating func evictDue(at now: Duration, _ place: LateSubscription) -> [OpaqueOperationStore] {
    guard timer?.place === place else { return [] }
    timer = nil
    var evicted: [OpaqueOperationStore] = []
    while let first = deadlines.first, first.time <= now {
      _ = deadlines.popFirst()
      entries.drop(first.path)
      guard let store = store(of: first) else { continue }
      store.withUse { $0.deadline = nil }
      guard let end = retentionEnd(of: store) else { continue }
      if end <= now { evicted.append(store) } else { setDeadline(end, of: store) }
    }
    return evict(evicted)
  }

  /// Evicts stores that are not in use. Returns those that were evicted.
  private mutating func evict(_ stores: [OpaqueOperationStore]) -> [OpaqueOperationStore] {
    let evicted = stores.filter { store in
      // A use that has begun before was not reported.
      store.withUse { $0.isWatched = true }
      guard store.withUse({ $0.isRetained && !$0.latest.isInUse }) else { return false }
      store.withUse { ($0.isRetained, $0.isEvicted) = (false, true) }
      entries[store.path]?.replace(store.id, by: .evicted(EvictedStore(store)))
      unused.remove(id: store.id)
      return true
    }
    if !evicted.isEmpty { deliveries.append(OperationStoreChange(storesRemoved: evicted)) }
    return evicted
  }

  /// Returns when the retention of a store ends; `nil` for a store that is retained forever, or that is in
  /// use and reports the end.
  private func retentionEnd(of store: OpaqueOperationStore) -> Duration? {
    store.withUse { use in
      guard let delay = use.retention.evictionDelay else { return nil }
      if use.latest.isInUse {
        use.isWatched = true
        // An end before that was not reported.
        if use.latest.isInUse { return nil }
      }
      return use.lastUse + delay
    }
  }

  /// Whether a store reports its uses even while it has a deadline.
  func isAlwaysWatched(_ use: borrowing StoreUse) -> Bool {
    limit != nil || use.retention.isWhileUsed
  }

  /// Evicts all unused stores, the least recently used one first.
  mutating func evictUnused() -> [OpaqueOperationStore] {
    let unused = evictable.map { ($0, $0.withUse { $0.latest }) }.filter { !$0.1.isInUse }
    return evict(unused.sorted { $0.1.lastUse < $1.1.lastUse }.map(\.0))
  }

  /// Sets when a store is checked; `nil` for never, or after the end of a use.
  mutating func setDeadline(_ time: Duration?, of store: OpaqueOperationStore) {
    store.withUse { $0.deadline = time }
    guard let time = store.withUse({ $0.deadline }) else { return }
    // Not after a removal: a client that removes its stores in parts would search the heap repeatedly.
    if deadlines.count > 2 * entries.count + 32 { pruneDeadlines() }
    deadlines.insert(Deadline(time: time, path: store.path, id: store.id))
  }

  /// Returns the store of a deadline that counts.
  private func store(of deadline: Deadline) -> OpaqueOperationStore? {
    reference(deadline.id, at: deadline.path)?.retained.flatMap {
      $0.withUse { $0.deadline } == deadline.time ? $0 : nil
    }
  }

  /// Removes the deadlines that do not count.
  mutating func pruneDeadlines() {
    var kept: [Deadline] = []
    // While the clock stands still, a store that is added again has the deadline that it had before, and so has
    // a new one at the address of a removed one.
    var seen: Set<ObjectIdentifier> = []
    for deadline in deadlines.elements {
      let isKept = store(of: deadline) != nil && seen.insert(deadline.id).inserted
      if !isKept { entries.drop(deadline.path) } else { kept.append(deadline) }
    }
    deadlines = Heap(kept)
  }
}

extension StoreIndex {
  /// Handles the beginning or the end of a use, which a store reports. Returns what has changed: an evicted
  /// store is retained again.
  mutating func useChanged(
    of store: OpaqueOperationStore, _ change: StoreUse.Change, at time: Duration
  ) -> Use {
    var result = Use(store: store)
    let (version, retention) = store.withUse { ($0.latest.version, $0.retention) }
    // A later change is reported as well.
    guard change.version == version, let reference = reference(store.id, at: store.path)
    else { return result }
    if !change.isUsed, retention.isWhileUsed {
      result.evicted = evict([store])
      return result
    }
    if !reference.isRetained {
      readmit(store, for: retention, at: time)
      result.isReadmitted = true
    }
    if change.isUsed {
      unused.remove(id: store.id)
      return result
    }
    let (deadline, lastUse) = store.withUse { ($0.deadline, $0.lastUse) }
    // With `whileUsed`, the deadline is a minute after the creation. Another request may have brought a
    // retention that ends before that.
    if let end = retention.evictionDelay.map({ lastUse + $0 }), deadline.map({ end < $0 }) ?? true {
      setDeadline(end, of: store)
    }
    store.withUse { $0.isWatched = isAlwaysWatched($0) }
    result.evicted = addUnused(store, limit: limit)
    return result
  }

  /// Adds a store to the unused ones, and evicts the least recently used ones above the limit.
  mutating func addUnused(_ store: OpaqueOperationStore, limit: Int?) -> [OpaqueOperationStore] {
    guard let limit, !store.withUse({ $0.retention.isForever }) else { return [] }
    unused.remove(id: store.id)
    unused.append(UnusedStore(store: store, version: store.withUse { $0.latest.version }))
    var evicted: [OpaqueOperationStore] = []
    while unused.count > limit {
      let first = unused.remove(at: 0)
      // Otherwise a new use of the store is about to be reported.
      if first.store.withUse({ $0.latest.version }) == first.version { evicted.append(first.store) }
    }
    return evict(evicted)
  }
}
