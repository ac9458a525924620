/// What a peer has not received yet.
///
/// A store is in it once, however often it changes, so a slow peer gets its newest state only. Of the
/// events the newest ones are kept. Both are bounded by what the client contains and by the limit, and
/// what is left out is counted.
struct InspectorBacklog: Sendable {
  let eventLimit: Int
  /// The stores to send, each once, the first change first, and the same as a set.
  private var changed: [Int] = []
  private var isChanged: Set<Int> = []
  private var removed: [Int] = []
  private var events: [InspectedEvent] = []
  private var missed = 0
  /// The number of results of each store that the peer has.
  private var resultCounts: [Int: Int] = [:]

  init(eventLimit: Int = 1_000) { self.eventLimit = eventLimit }

  var isEmpty: Bool { isChanged.isEmpty && removed.isEmpty && events.isEmpty && missed == 0 }

  /// The number of stores in the lists.
  var storedCount: Int { changed.count + removed.count + resultCounts.count }

  mutating func note(_ new: InspectorUpdate) {
    for id in new.changed where isChanged.insert(id).inserted { changed.append(id) }
    for id in new.removed {
      isChanged.remove(id)
      // What the peer does not have is not sent.
      if resultCounts.removeValue(forKey: id) != nil { removed.append(id) }
    }
    // A peer that does not read must not collect the numbers of short-lived stores.
    if changed.count > isChanged.count { changed.removeAll { !isChanged.contains($0) } }
    events += new.events
    missed += new.missed
    let excess = max(events.count - eventLimit, 0)
    events.removeFirst(excess)
    missed += excess
  }

  /// Returns what comes next, with at most some stores, and removes it.
  mutating func take(storeLimit: Int) -> InspectorUpdate {
    let stores = Array(changed.prefix(storeLimit))
    changed.removeFirst(stores.count)
    isChanged.subtract(stores)
    defer { (removed, events, missed) = ([], [], 0) }
    return InspectorUpdate(changed: stores, removed: removed, events: events, missed: missed)
  }

  /// Notes that the peer gets a store with a number of results. Returns how many results it has missed.
  mutating func noteSent(_ id: Int, resultCount: Int) -> Int {
    let earlier = resultCounts.updateValue(resultCount, forKey: id)
    // A reset begins again with zero.
    return earlier.map { max(resultCount - $0 - 1, 0) } ?? 0
  }
}

/// What has changed in a client between two ticks, or what goes into one message.
struct InspectorUpdate: Sendable {
  var changed: [Int] = []
  var removed: [Int] = []
  var events: [InspectedEvent] = []
  /// The number of events that were left out.
  var missed = 0
}
