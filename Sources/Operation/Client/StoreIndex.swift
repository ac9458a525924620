import ReactiveStreams

/// The machine of a client: its stores by path, their retention, and the subscribers that are
/// notified of added and removed stores.
///
/// The first type of request on a path has the path's store. A request of another type on the same
/// path clashes with it, and gets a store of its own there.
struct StoreIndex: DeliveryMachine {
  /// What identifies the store of a request.
  struct Lookup: Sendable {
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
    var first: OpaqueOperationStore
    /// The stores for other types of requests, in the order in which they were inserted.
    var others: [OpaqueOperationStore] = []

    var stores: [OpaqueOperationStore] { [first] + others }

    func store(where matches: (OpaqueOperationStore) -> Bool) -> OpaqueOperationStore? {
      matches(first) ? first : others.first(where: matches)
    }

    /// Returns the entry without a store; `nil` if no store is left.
    func removing(_ id: ObjectIdentifier) -> Entry? {
      let rest = stores.filter { $0.id != id }
      return rest.first.map { Entry(first: $0, others: Array(rest.dropFirst())) }
    }
  }

  enum Insertion: Sendable {
    /// The store was inserted, and others were evicted for it.
    case inserted(evicted: [OpaqueOperationStore])
    /// The store was inserted beside the first one, which is for a request of another type.
    case clashed(with: any Any.Type)
    /// Another thread has inserted a store for the same request.
    case present(OpaqueOperationStore)
  }

  var deliveries = DeliveryQueue<OperationStoreChange>()
  var entries = PathIndex<Entry, OpaqueOperationStore> { ($0.first, $0.others) }
  var deadlines = Heap<Deadline>()
  /// The timer that is set; `nil` if it has fired.
  var timer: Timer?
  var lastGeneration = 0
  /// The latest time at which the timer was considered.
  var lastSeen = Duration.zero - .longest
  /// The stores that are not in use, if their number is limited.
  var unused = UnusedStores()
  /// The greatest number of unused stores.
  let limit: Int?

  init(limit: Int? = nil) { self.limit = limit }

  /// Returns the first store on a path.
  func store(at path: OperationPath) -> OpaqueOperationStore? { entries[path]?.first }
  func stores(at path: OperationPath) -> [OpaqueOperationStore] { entries[path]?.stores ?? [] }
  func hasStore(at path: OperationPath) -> Bool { entries.contains(path) }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    entries[path]?.store { $0.store.erasedRequestType == type }
  }

  func store(_ id: ObjectIdentifier, at path: OperationPath) -> OpaqueOperationStore? {
    entries[path]?.store { $0.id == id }
  }

  /// The stores whose paths begin with a prefix.
  func stores(matching prefix: OperationPath) -> [OpaqueOperationStore] {
    entries.members(matching: prefix)
  }

  /// Returns the store of a request, which is used now. The longest retention applies.
  mutating func use(_ lookup: Lookup, at time: Duration) -> OpaqueOperationStore? {
    var found: OpaqueOperationStore?
    // In place, because a copy would retain every store on the path.
    entries.update(lookup.path) { entry in
      found = entry.store { $0.store.erasedRequestType == lookup.type }
    }
    guard let found else { return nil }
    found.store.use.lastUse = time
    if lookup.retention.isLonger(than: found.store.use.retention) {
      found.store.use.retention = lookup.retention
    }
    if limit != nil {
      if found.store.use.retention.isForever { unused.remove(found) } else { unused.touch(found) }
    }
    return found
  }

  /// Inserts a new store, unless the request has one.
  mutating func insert(
    _ store: OpaqueOperationStore, for lookup: Lookup, at time: Duration
  ) -> Insertion {
    let clashing = entries.insert(Entry(first: store), at: store.path)
    if clashing != nil, let present = use(lookup, at: time) { return .present(present) }
    store.store.use.lastUse = time
    store.store.use.retention = lookup.retention
    store.store.use.isWatched = isAlwaysWatched(store)
    setDeadline(lookup.retention.evictionDelay.map { time + $0 }, of: store)
    deliveries.append(OperationStoreChange(storesAdded: [store]))
    guard var entry = clashing else {
      // The limit is at least one, or the store would be evicted before the caller can use it.
      return .inserted(evicted: addUnused(store, limit: limit.map { max($0, 1) }))
    }
    entry.others.append(store)
    entries[store.path] = entry
    return .clashed(with: entry.first.store.erasedRequestType.request)
  }

  /// Removes stores. Returns those that were in the index.
  mutating func remove(_ stores: [OpaqueOperationStore]) -> [OpaqueOperationStore] {
    var removed: [OpaqueOperationStore] = []
    for store in stores {
      guard let entry = entries[store.path], entry.store(where: { $0.id == store.id }) != nil
      else { continue }
      entries[store.path] = entry.removing(store.id)
      unused.remove(store)
      removed.append(store)
    }
    if !removed.isEmpty {
      deliveries.append(OperationStoreChange(storesRemoved: removed))
      pruneDeadlines()
    }
    return removed
  }
}

extension OpaqueOperationStore {
  var id: ObjectIdentifier { ObjectIdentifier(base) }
}
