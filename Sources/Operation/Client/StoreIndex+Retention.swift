import FoundationEssentials

/// Which stores a client evicts, and when.
///
/// Each store that is not retained forever has a deadline in a heap, which is not later than the end
/// of its retention. One timer is set for the first deadline. When the timer fires, the index reads the
/// ``StoreUse`` of each store whose deadline has passed, and evicts the store or sets a later deadline.
/// So a use changes nothing here.
///
/// Stores report their uses only if the client limits the number of unused stores, or if they are
/// evicted when their last use ends.
extension StoreIndex {
  /// When a store is checked. It counts only while it is the ``StoreUse/deadline`` of the store.
  struct Deadline: Sendable, Comparable {
    let date: Date
    let path: OperationPath
    let id: ObjectIdentifier

    static func < (lhs: Deadline, rhs: Deadline) -> Bool { lhs.date < rhs.date }
  }

  /// A timer to set. A later timer reentries an earlier one, and has a greater generation.
  struct Timer: Sendable {
    let date: Date
    let generation: Int
  }

  /// What happens to a store whose deadline has passed.
  private enum Decision {
    case evict
    /// Checks the store again at a date; never if it is retained forever.
    case retain(until: Date?)
  }

  /// The stores that are not retained forever.
  private var evictable: [OpaqueOperationStore] {
    stores(matching: []).filter { !$0.store.use.retention.isForever }
  }

  /// Returns the timer to set, if none is set or the one that is set is too late.
  mutating func nextTimer(at now: Date) -> Timer? {
    // Threads do not take the lock in the order in which they read the clock, so a few seconds do not
    // count.
    if now.timeIntervalSince(lastSeen) < -10 { restartRetention(at: now) }
    lastSeen = now
    guard let first = deadlines.first?.date, timer.map({ first < $0.date }) ?? true else {
      return nil
    }
    lastGeneration += 1
    timer = Timer(date: first, generation: lastGeneration)
    return timer
  }

  /// Starts the time of each store again, after the clock was set back.
  private mutating func restartRetention(at now: Date) {
    for store in evictable {
      if store.store.use.lastUse > now { store.store.use.lastUse = now }
      setDeadline(store.store.use.retention.evictionDelay.map(now.advanced), of: store)
    }
    pruneDeadlines()
  }

  /// Evicts the stores whose time is over, when a timer has fired. An outdated timer does nothing.
  mutating func evictDue(at now: Date, generation: Int) -> [OpaqueOperationStore] {
    guard timer?.generation == generation else { return [] }
    timer = nil
    var due: [OpaqueOperationStore] = []
    while let first = deadlines.first, now.duration(since: first.date) >= .zero {
      _ = deadlines.popFirst()
      entries.drop(first.path)
      if let store = store(of: first) { due.append(store) }
    }
    var evicted: [OpaqueOperationStore] = []
    // After the loop, in which a new deadline that is not later would be found again.
    for store in due {
      switch decision(about: store, at: now) {
      case .evict: evicted.append(store)
      case .retain(let date): setDeadline(date, of: store)
      }
    }
    return remove(evicted)
  }

  private func decision(about store: OpaqueOperationStore, at now: Date) -> Decision {
    guard let delay = store.store.use.retention.evictionDelay else { return .retain(until: nil) }
    let use = store.store.use.latest
    // At least a second, so that a store that is in use is not checked again and again.
    if use.isInUse { return .retain(until: now.advanced(by: max(delay, 1))) }
    let end = use.lastUse.advanced(by: delay)
    return now.duration(since: end) >= .zero ? .evict : .retain(until: end)
  }

  /// Evicts all unused stores, the least recently used one first.
  mutating func evictUnused() -> [OpaqueOperationStore] {
    let unused = evictable.map { ($0, $0.store.use.latest) }.filter { !$0.1.isInUse }
    return remove(unused.sorted { $0.1.lastUse < $1.1.lastUse }.map(\.0))
  }

  /// Sets when a store is checked; `nil` for never.
  mutating func setDeadline(_ date: Date?, of store: OpaqueOperationStore) {
    store.store.use.deadline = date ?? .distantFuture
    guard let date else { return }
    deadlines.insert(Deadline(date: date, path: store.path, id: store.id))
  }

  /// Returns the store of a deadline that counts.
  private func store(of deadline: Deadline) -> OpaqueOperationStore? {
    store(deadline.id, at: deadline.path).flatMap {
      $0.store.use.deadline == deadline.date ? $0 : nil
    }
  }

  /// Removes the deadlines that do not count, when they are more than half of the heap.
  mutating func pruneDeadlines() {
    guard deadlines.count > 2 * entries.count + 32 || entries.count == 0 else { return }
    var kept: [Deadline] = []
    for deadline in deadlines.elements {
      if store(of: deadline) == nil { entries.drop(deadline.path) } else { kept.append(deadline) }
    }
    deadlines = Heap(kept)
  }
}

extension StoreIndex {
  /// Handles the beginning or the end of a use, which a store reports. Returns the evicted stores.
  mutating func useChanged(
    of store: OpaqueOperationStore, _ change: StoreUse.Change
  ) -> [OpaqueOperationStore] {
    // A later change is reported as well.
    guard change.version == store.store.use.latest.version,
      self.store(store.id, at: store.path) != nil
    else { return [] }
    if change.isUsed {
      unused.remove(store)
      return []
    }
    return store.store.use.retention.isWhileUsed ? remove([store]) : addUnused(store, limit: limit)
  }

  /// Adds a store to the unused ones, and evicts the least recently used ones above the limit.
  mutating func addUnused(_ store: OpaqueOperationStore, limit: Int?) -> [OpaqueOperationStore] {
    guard let limit, !store.store.use.retention.isForever else { return [] }
    unused.append(store, version: store.store.use.latest.version)
    var evicted: [OpaqueOperationStore] = []
    while unused.count > limit, let (store, version) = unused.popFirst() {
      // Otherwise a new use of the store is about to be reported.
      if store.store.use.latest.version == version { evicted.append(store) }
    }
    return remove(evicted)
  }
}
