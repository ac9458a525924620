/// What a peer has not received yet.
///
/// A store is in it once, however often it changes, so a slow peer gets its newest state only. Of the
/// events the newest ones are kept. Both are bounded by what the client contains and by the limit, and
/// what is left out is counted.
struct InspectorBacklog: Sendable {
  /// What goes into one message.
  struct Batch: Sendable {
    let changed: [Int]
    let removed: [Int]
    let events: [InspectedEvent]
    /// The number of events that were left out.
    let missed: Int
  }

  let eventLimit: Int
  /// The stores to send, each once, the first change first, and the same as a set. A removed store is
  /// in the list only.
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

  mutating func note(changed ids: some Sequence<Int>) {
    for id in ids where isChanged.insert(id).inserted { changed.append(id) }
  }

  /// Notes that stores were removed. What the peer does not have is not sent.
  mutating func note(removed ids: some Sequence<Int>) {
    for id in ids {
      isChanged.remove(id)
      if resultCounts.removeValue(forKey: id) != nil { removed.append(id) }
    }
    // A peer that does not read must not collect the numbers of short-lived stores.
    if changed.count > 2 * isChanged.count + 64 { changed.removeAll { !isChanged.contains($0) } }
  }

  mutating func note(_ new: some Sequence<InspectedEvent>, dropped: Int) {
    events += new
    missed += dropped
    let excess = events.count - eventLimit
    guard excess > 0 else { return }
    events.removeFirst(excess)
    missed += excess
  }

  /// Returns what comes next, with at most some stores, and removes it.
  mutating func take(storeLimit: Int) -> Batch {
    var stores: [Int] = []
    var taken = 0
    while stores.count < storeLimit, taken < changed.count {
      if isChanged.remove(changed[taken]) != nil { stores.append(changed[taken]) }
      taken += 1
    }
    changed.removeFirst(taken)
    defer { (removed, events, missed) = ([], [], 0) }
    return Batch(changed: stores, removed: removed, events: events, missed: missed)
  }

  /// Notes that the peer gets a store with a number of results. Returns how many results it has missed.
  mutating func noteSent(_ id: Int, resultCount: Int) -> Int {
    let earlier = resultCounts.updateValue(resultCount, forKey: id)
    // A reset begins again with zero.
    return earlier.map { max(resultCount - $0 - 1, 0) } ?? 0
  }
}
