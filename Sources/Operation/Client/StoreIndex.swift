import ReactiveStreams

/// The machine of a client: its stores by path, their retention, and the subscribers that are
/// notified of added and removed stores.
///
/// The first type of request on a path has the path's store. A request of another type on the same
/// path clashes with it, and gets a store of its own there.
///
/// An evicted store is not retained, and is found until it is released. Then it has itself removed. If it
/// is used before, it is retained again. So a request has one store as long as that is referenced.
struct StoreIndex: DeliveryMachine {
  /// What identifies the store of a request.
  struct Lookup: ~Copyable, Sendable {
    let path: OperationPath
    let type: RequestType
    let retention: OperationRetention

    /// - Parameter retention: The retention of the client, for a request without its own.
    init<Request: StatefulOperationRequest>(
      of request: Request, default retention: OperationRetention
    ) {
      path = request.path
      type = RequestType(of: request)
      self.retention = request.retention ?? retention
    }
  }

  /// The stores on one path.
  struct Entry: Sendable {
    var first: StoreReference
    /// The stores for other types of requests, in the order in which they were inserted.
    var others: [StoreReference] = []

    var references: [StoreReference] { [first] + others }

    func reference(where matches: (StoreReference) -> Bool) -> StoreReference? {
      matches(first) ? first : others.first(where: matches)
    }

    mutating func replace(_ id: ObjectIdentifier, by reference: StoreReference) {
      if first.id == id { return first = reference }
      if let index = others.firstIndex(where: { $0.id == id }) { others[index] = reference }
    }

    /// Calls a function with the stores that were not released.
    func forEachStore(_ body: (OpaqueOperationStore) -> Void) {
      if let store = first.store { body(store) }
      // Most paths have one store. With an iterator over none, the benchmark stores(matching:) is further over
      // its limit.
      if others.isEmpty { return }
      for other in others { if let store = other.store { body(store) } }
    }

    /// Returns the entry with some of its stores; `nil` if none is left.
    func filter(_ isIncluded: (StoreReference) -> Bool) -> Entry? {
      if others.isEmpty { return isIncluded(first) ? self : nil }
      let rest = references.filter(isIncluded)
      return rest.first.map { Entry(first: $0, others: Array(rest.dropFirst())) }
    }
  }

  /// A store that is not in use, and the version of its use then.
  struct UnusedStore: Sendable, Identifiable {
    let store: OpaqueOperationStore
    let version: Int

    var id: ObjectIdentifier { store.id }
  }

  /// What the insertion of a store, a use of it, or the end of one has changed.
  struct Use: Sendable {
    let store: OpaqueOperationStore
    /// Whether the store was evicted, and is retained again.
    var isReadmitted = false
    /// The type of the request of the first store on the path, if this one was inserted beside it.
    var clashing: (any Any.Type)?
    /// The stores of other types on the path, which are released without the lock.
    var others: [OpaqueOperationStore] = []
    /// The stores that were evicted, which can include this one.
    var evicted: [OpaqueOperationStore] = []
  }

  var deliveries = DeliveryQueue<OperationStoreChange>()
  var entries = PathIndex<Entry>()
  var deadlines = Heap<Deadline>()
  /// The timer that is set; `nil` if it has fired.
  var timer: Timer?
  /// The latest time at which the timer was considered.
  var lastSeen = Duration.zero - .longest
  /// The stores that are not in use, the least recently used one first, if their number is limited.
  var unused = IdentifiedArrayOf<UnusedStore>()
  /// The greatest number of unused stores.
  let limit: Int?

  init(limit: Int? = nil) { self.limit = limit }

  /// Returns the first store on a path.
  func store(at path: OperationPath) -> OpaqueOperationStore? {
    guard let entry = entries[path] else { return nil }
    if let store = entry.first.store { return store }
    // Each reference is read once: an evicted store may be released at any time, and what a lazy collection reads
    // and drops would be released here, under the lock.
    for other in entry.others { if let store = other.store { return store } }
    return nil
  }

  func hasStore(at path: OperationPath) -> Bool { entries.contains(path) }

  func stores(at path: OperationPath) -> [OpaqueOperationStore] {
    entries[path]?.references.compactMap(\.store) ?? []
  }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    entries[path]?.reference { $0.type == type }?.store
  }

  func reference(_ id: ObjectIdentifier, at path: OperationPath) -> StoreReference? {
    entries[path]?.reference { $0.id == id }
  }

  /// Returns the store of a request, which is used now, if the client retains it. The longest retention
  /// applies. Also returns whether there is an evicted one instead.
  mutating func use(
    _ lookup: borrowing Lookup, at time: Duration
  ) -> (store: OpaqueOperationStore?, isEvicted: Bool) {
    let reference = entries.read(lookup.path) { $0.reference { $0.type == lookup.type } } ?? nil
    guard let found = reference?.retained else { return (nil, reference != nil) }
    let isForever = found.withUse { use in
      use.lastUse = time
      if lookup.retention.isLonger(than: use.retention) { use.retention = lookup.retention }
      return use.retention.isForever
    }
    if let listed = unused.remove(id: found.id), !isForever { unused.append(listed) }
    return (found, false)
  }

  /// Returns the store of a request, which is used now. The client retains an evicted one again.
  mutating func readmit(_ lookup: borrowing Lookup, at time: Duration) -> Use? {
    if let store = use(lookup, at: time).store { return Use(store: store) }
    guard let store = store(at: lookup.path, for: lookup.type) else { return nil }
    let retention = store.withUse { $0.retention }
    let longest = lookup.retention.isLonger(than: retention) ? lookup.retention : retention
    readmit(store, for: longest, at: time)
    return Use(store: store, isReadmitted: true, evicted: addInserted(store))
  }

  /// Retains an evicted store again.
  mutating func readmit(
    _ store: OpaqueOperationStore, for retention: OperationRetention, at time: Duration
  ) {
    entries[store.path]?.replace(store.id, by: .retained(store))
    retain(store, for: retention, at: time)
  }

  /// Notes that a store is in the index from now on.
  private mutating func retain(
    _ store: OpaqueOperationStore, for retention: OperationRetention, at time: Duration
  ) {
    store.withUse { use in
      (use.isRetained, use.isEvicted) = (true, false)
      use.lastUse = time
      use.retention = retention
      use.isWatched = isAlwaysWatched(use)
    }
    setDeadline(retention.evictionDelay.map { time + $0 }, of: store)
    deliveries.append(OperationStoreChange(storesAdded: [store]))
  }

  /// Inserts a new store, unless another thread has inserted one for the request. Returns the use of the
  /// store that is in the index.
  mutating func insert(
    _ store: OpaqueOperationStore, for lookup: borrowing Lookup, at time: Duration
  ) -> Use {
    let reference = StoreReference.retained(store)
    let clashing = entries.insert(Entry(first: reference), at: lookup.path)
    if clashing != nil, let present = readmit(lookup, at: time) { return present }
    retain(store, for: lookup.retention, at: time)
    var use = Use(store: store)
    // Another one of the same type, or one without references, is released, and about to be removed.
    var entry = clashing?.filter { other in
      guard other.type != lookup.type, let store = other.store else { return false }
      use.others.append(store)
      return true
    }
    entry?.others.append(reference)
    if clashing != nil { entries[lookup.path] = entry ?? Entry(first: reference) }
    use.clashing = entry?.first.type.request
    use.evicted = addInserted(store)
    return use
  }

  /// Adds a store to the unused ones whose caller is about to use it.
  private mutating func addInserted(_ store: OpaqueOperationStore) -> [OpaqueOperationStore] {
    // The limit is at least one, or the store would be evicted before that.
    addUnused(store, limit: limit.map { max($0, 1) })
  }

  /// Removes stores, also evicted ones. Returns those that were retained.
  mutating func remove(_ stores: [OpaqueOperationStore]) -> [OpaqueOperationStore] {
    let removed = stores.filter { store in
      guard let reference = remove(store.id, at: store.path) else { return false }
      store.withUse { ($0.isRetained, $0.isEvicted, $0.isWatched) = (false, false, false) }
      unused.remove(id: store.id)
      return reference.isRetained
    }
    if !removed.isEmpty { deliveries.append(OperationStoreChange(storesRemoved: removed)) }
    return removed
  }

  /// Removes a store, or what is left of an evicted one that was released. Returns what was removed.
  @discardableResult
  mutating func remove(_ id: ObjectIdentifier, at path: OperationPath) -> StoreReference? {
    let entry = entries[path]
    entries[path] = entry?.filter { $0.id != id }
    if entries.count == 0 { pruneDeadlines() }
    return entry?.reference { $0.id == id }
  }
}
