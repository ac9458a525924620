import FoundationEssentials
import ReactiveStreams

/// When stores leave the client.
///
/// Every store that may leave has one deadline, which is never later than the time at which it may.
/// When it has come, the store is asked when it was used last, and leaves or gets another deadline;
/// so a use costs nothing here. Only where the number of unused stores is limited, or a store goes
/// with its last use, do stores tell of their use.
extension StoreIndex {
  struct Deadline: Sendable, Comparable {
    let date: Date
    let path: OperationPath
    let id: ObjectIdentifier

    static func < (lhs: Deadline, rhs: Deadline) -> Bool { lhs.date < rhs.date }
  }

  /// A store whose deadline has come.
  struct Candidate: Sendable {
    let store: OpaqueOperationStore
    /// How many seconds after its last use it may leave.
    let patience: Double
  }

  enum Verdict: Sendable {
    case stay(OpaqueOperationStore, until: Date)
    /// The store leaves, unless it has been used since.
    case leave(OpaqueOperationStore, StoreUse.Mark)
  }

  /// A timer to set.
  struct Wake: Sendable {
    let date: Date
    let generation: Int
  }

  /// The stores that may leave.
  var mortalStores: [OpaqueOperationStore] {
    stores(matching: []).filter { !$0.retention.isEndless }
  }

  /// Gives the timer to set, if the one that is set would be too late.
  mutating func nextWake(at now: Date) -> Wake? {
    // Two threads may see one clock in either order, so a little is no sign of anything.
    if now.timeIntervalSince(lastSeen) < -10 { clockWasSetBack(to: now) }
    lastSeen = now
    guard let first = deadlines.first?.date, wake.map({ first < $0.date }) ?? true else {
      return nil
    }
    lastGeneration += 1
    wake = Wake(date: first, generation: lastGeneration)
    return wake
  }

  /// The clock was set back: no store stays longer than its patience from now.
  private mutating func clockWasSetBack(to now: Date) {
    for store in mortalStores {
      guard let patience = store.retention.patience else { continue }
      if store.lastUse.date > now { store.lastUse = StoreUse.Moment(now) }
      setDeadline(now.advanced(by: patience), of: store)
    }
    prune()
  }

  /// A timer has gone off; gives the stores whose time has come, if it is the one that is set.
  mutating func takeDue(at now: Date, generation: Int) -> [Candidate] {
    guard wake?.generation == generation else { return [] }
    wake = nil
    var due: [Candidate] = []
    while let first = deadlines.first, now.duration(since: first.date) >= .zero {
      _ = deadlines.popFirst()
      drop(first)
      guard let store = store(first.id, at: first.path), store.deadline == first.date,
        let patience = store.retention.patience
      else { continue }
      due.append(Candidate(store: store, patience: patience))
    }
    return due
  }

  mutating func settle(_ verdicts: [Verdict]) -> [OpaqueOperationStore] {
    var leaving: [OpaqueOperationStore] = []
    for verdict in verdicts {
      switch verdict {
      case .stay(let store, let date): setDeadline(date, of: store)
      case .leave(let store, let mark):
        let latest = store.useMark
        if latest == mark {
          leaving.append(store)
        } else if contains(store) {
          let lastUse = latest.isNoted ? latest.lastUse.date : max(latest.lastUse.date, lastSeen)
          setDeadline(store.retention.patience.map(lastUse.advanced), of: store)
        }
      }
    }
    return remove(leaving)
  }

  /// Has a store asked when its deadline has come; without one, never.
  mutating func setDeadline(_ date: Date?, of store: OpaqueOperationStore) {
    store.deadline = date ?? .distantFuture
    guard let date else { return }
    let id = ObjectIdentifier(store.base)
    deadlines.insert(Deadline(date: date, path: store.path, id: id))
  }

  /// Lets go of deadlines of stores that have left.
  mutating func prune() {
    guard deadlines.count > 2 * count + 32 || count == 0 else { return }
    deadlines = Heap(
      deadlines.elements.filter { deadline in
        if store(deadline.id, at: deadline.path)?.deadline == deadline.date { return true }
        drop(deadline)
        return false
      })
  }
}

extension StoreIndex {
  /// A store began to be used, or ended; gives those that leave.
  mutating func useChanged(
    of store: OpaqueOperationStore, _ change: StoreUse.Change
  ) -> [OpaqueOperationStore] {
    // A later change is told of by itself.
    guard contains(store), change.version == store.useMark.version else { return [] }
    if change.isUsed {
      unused.remove(ObjectIdentifier(store.base))
      return []
    }
    if store.retention.endsWithUse { return remove([store]) }
    return noteUnused(store, limit: limit)
  }

  /// Puts a store among the unused ones; gives those that are too many.
  mutating func noteUnused(_ store: OpaqueOperationStore, limit: Int?) -> [OpaqueOperationStore] {
    guard let limit, !store.retention.isEndless else { return [] }
    let version = store.useMark.version
    unused.append(ObjectIdentifier(store.base), at: store.path, version: version)
    var leaving: [OpaqueOperationStore] = []
    while unused.count > limit, let (id, path, version) = unused.popFirst() {
      guard let store = self.store(id, at: path) else { continue }
      if store.useMark.version == version { leaving.append(store) }
    }
    return remove(leaving)
  }
}

/// The stores that nobody uses, the least recently used one first.
struct UnusedStores: Sendable {
  private var order = FIFO<(id: ObjectIdentifier, place: Int)>()
  private var places: [ObjectIdentifier: (place: Int, path: OperationPath, version: Int)] = [:]
  private var nextPlace = 0

  var count: Int { places.count }

  mutating func append(_ id: ObjectIdentifier, at path: OperationPath, version: Int) {
    nextPlace += 1
    places[id] = (nextPlace, path, version)
    order.append((id, nextPlace))
    if order.count > 2 * places.count + 32 { prune() }
  }

  /// Makes one of them the most recently used one.
  mutating func touch(_ id: ObjectIdentifier) {
    if let (_, path, version) = places[id] { append(id, at: path, version: version) }
  }

  mutating func remove(_ id: ObjectIdentifier) {
    places[id] = nil
  }

  mutating func popFirst() -> (ObjectIdentifier, OperationPath, version: Int)? {
    while let (id, place) = order.popFirst() {
      guard let found = places[id], found.place == place else { continue }
      places[id] = nil
      return (id, found.path, found.version)
    }
    return nil
  }

  private mutating func prune() {
    var kept = FIFO<(id: ObjectIdentifier, place: Int)>()
    while let next = order.popFirst() {
      if places[next.id]?.place == next.place { kept.append(next) }
    }
    order = kept
  }
}
