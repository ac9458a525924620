import FoundationEssentials

/// The stores of a client by the numbers that peers use for them.
///
/// It belongs to the thread of an inspector. It retains the paths, and no store.
struct InspectorCatalog {
  private struct Entry {
    let key: ObjectIdentifier
    let path: OperationPath
    /// What the store had read when it was described last, and what had read it.
    var reads: [Int] = []
    var readBy: [Int] = []
    var isPaused = false
    var nextAttempt: Date?
  }

  let describer: InspectorDescriber
  private var entries: [Int: Entry] = [:]
  private var ids: [ObjectIdentifier: Int] = [:]
  private var idsByPath: [OperationPath: Int] = [:]
  /// The removed stores whose paths are kept until the next update: their events may come later.
  private var leaving: [(path: OperationPath, id: Int)] = []
  private var lastID = 0
  /// The stores that were described since the last update.
  private var described: [Int: InspectedStore] = [:]
  /// What descriptions have found since the last update: stores whose dependencies have changed or that have
  /// become stale, and waits that began.
  private var found = InspectorUpdate()
  /// The stores with a fresh value that becomes stale.
  private var fresh: Set<Int> = []
  /// The fresh stores that the present round of checks has not reached.
  private var unchecked: [Int] = []

  init(describer: InspectorDescriber) { self.describer = describer }

  /// Adds the stores of a client, and returns their numbers.
  mutating func add(storesOf client: OperationClient) -> [Int] {
    client.stores(matching: []).filter(\.store.isRetained).map { add($0.store) }
  }

  private mutating func add(_ store: any ErasedOperationStore) -> Int {
    let key = ObjectIdentifier(store)
    if let id = ids[key] { return id }
    lastID += 1
    entries[lastID] = Entry(key: key, path: store.path)
    ids[key] = lastID
    idsByPath[store.path] = lastID
    return lastID
  }

  /// Takes in the changes of the client. Returns what has changed since the last call.
  mutating func update(
    with changes: ChangeFeed.Changes, from client: OperationClient
  ) -> InspectorUpdate {
    described = [:]
    var update = exchange(&found, with: InspectorUpdate())
    update.changed += changes.stores.filter(\.isRetained).map { add($0) }
    let events = changes.events.compactMap { event in
      idsByPath[event.path].map { InspectedEvent(event, of: $0, describedBy: describer) }
    }
    // The others are of stores without a number, such as one that was added and removed since.
    update.missed = changes.droppedEventCount + changes.events.count - events.count
    update.events += events
    for (path, id) in leaving where idsByPath[path] == id {
      // Of two requests that clash there, one may be left.
      let others = client.stores(at: path).compactMap { ids[ObjectIdentifier($0.base)] }
      idsByPath[path] = others.first
    }
    leaving = []
    update.removed = changes.stores.filter { !$0.isRetained }.compactMap { remove($0) }
    return update
  }

  private mutating func remove(_ store: any ErasedOperationStore) -> Int? {
    guard let id = ids.removeValue(forKey: ObjectIdentifier(store)) else { return nil }
    entries[id] = nil
    fresh.remove(id)
    leaving.append((store.path, id))
    return id
  }

  /// Returns stores whose values have become stale, of the next of those that are to be checked.
  mutating func checkFreshness(atMost limit: Int, in client: OperationClient) -> [Int] {
    if unchecked.isEmpty { unchecked = Array(fresh) }
    let checked = unchecked.suffix(limit)
    unchecked.removeLast(checked.count)
    let stale = checked.filter { store($0, in: client)?.isStale == true }
    fresh.subtract(stale)
    return stale
  }

  /// Returns the store with a number, if the client still has it.
  func store(_ id: Int, in client: OperationClient) -> (any InspectableStore)? {
    guard let entry = entries[id] else { return nil }
    return client.stores(at: entry.path).first { ObjectIdentifier($0.base) == entry.key }?
      .store as? any InspectableStore
  }

  /// Describes a store, once between two updates.
  mutating func describe(_ id: Int, in client: OperationClient) -> InspectedStore? {
    if let described = described[id] { return described }
    guard let store = store(id, in: client) else { return nil }
    var inspected = store.inspect(id, by: describer)
    let (reads, readers) = client.hub.dependencies(of: store.path, limit: 200)
    inspected.use.reads = reads.compactMap { idsByPath[$0] }
    inspected.use.readBy = readers.compactMap { idsByPath[$0] }
    note(inspected, at: client.clock.now())
    if !inspected.facts.isStale, store.canBecomeStale {
      fresh.insert(id)
    } else if fresh.remove(id) != nil {
      // Another peer may display the value as fresh.
      found.changed.append(id)
    }
    described[id] = inspected
    return inspected
  }

  /// Notes whose dependencies have changed, and the waits that began.
  private mutating func note(_ store: InspectedStore, at date: Date) {
    let id = store.facts.id
    guard let old = entries[id] else { return }
    found.changed += Set(old.reads).symmetricDifference(store.use.reads)
    found.changed += Set(old.readBy).symmetricDifference(store.use.readBy)
    entries[id] = Entry(
      key: old.key, path: old.path, reads: store.use.reads, readBy: store.use.readBy,
      isPaused: store.isPaused, nextAttempt: store.retry?.date)
    let time = date.timeIntervalSince1970
    if store.isPaused, !old.isPaused {
      found.events.append(InspectedEvent(store: id, time: time, kind: "paused"))
    }
    if let retry = store.retry, retry.date != old.nextAttempt {
      let wait = (retry.date.timeIntervalSince(date) * 1_000).rounded()
      found.events.append(
        InspectedEvent(
          store: id, time: time, kind: "waiting", attempt: retry.failedAttempts,
          message: "next attempt in \(Int(exactly: wait) ?? 0) ms"))
    }
  }
}
