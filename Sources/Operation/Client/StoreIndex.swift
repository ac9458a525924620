import FoundationEssentials
import ReactiveStreams

/// The machine of a client: which store stands on which path, and who is told of a change.
///
/// The first request type on a path has the path's store. Another type on the same path clashes
/// with it, and gets a store of its own beside it.
struct StoreIndex: DeliveryMachine {
  /// The stores of one path. What else the client notes of a store lies in its ``StoreUse``, beside
  /// what a look-up touches anyway.
  struct Place: Sendable {
    var first: OpaqueOperationStore
    /// Those of types that came second.
    var others: [OpaqueOperationStore] = []

    var stores: [OpaqueOperationStore] { [first] + others }

    /// The store that `isWanted`, in the order in which they came.
    func store(_ isWanted: (OpaqueOperationStore) -> Bool) -> OpaqueOperationStore? {
      isWanted(first) ? first : others.first(where: isWanted)
    }

    /// The place without a store; `nil` if there is no other.
    func without(_ id: ObjectIdentifier) -> Place? {
      let rest = stores.filter { !$0.isStore(id) }
      return rest.first.map { Place(first: $0, others: Array(rest.dropFirst())) }
    }
  }

  enum Insertion: Sendable {
    /// The new store is in the index; others may have left for it.
    case inserted(left: [OpaqueOperationStore])
    /// The new store is in the index, beside the one of another type.
    case clashed(with: any Any.Type)
    /// Somebody else was faster; his store stays.
    case present(OpaqueOperationStore)
  }

  var deliveries = DeliveryQueue<OperationStoreChange>()
  private var places = PathIndex<Place, OpaqueOperationStore> {
    ($0.first, $0.others)
  }
  /// When stores are asked whether they may leave.
  var deadlines = Heap<Deadline>()
  /// The timer that is set.
  var wake: Wake?
  var lastGeneration = 0
  /// What the clock showed when a timer was thought of last.
  var lastSeen = Date.distantPast
  /// The stores that nobody uses, if their number is limited.
  var unused = UnusedStores()
  /// How many unused stores there may be.
  let limit: Int?

  init(limit: Int? = nil) {
    self.limit = limit
  }

  var count: Int { places.count }

  /// How many nodes the tree of paths has.
  var nodeCount: Int { places.nodeCount }

  /// The store that stands on a path for whoever does not name a request.
  func store(at path: OperationPath) -> OpaqueOperationStore? { places[path]?.first }
  func stores(at path: OperationPath) -> [OpaqueOperationStore] { places[path]?.stores ?? [] }
  func hasStore(at path: OperationPath) -> Bool { places.contains(path) }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    places[path]?.store { $0.requestType == type }
  }

  /// A store, if it is there.
  func store(_ id: ObjectIdentifier, at path: OperationPath) -> OpaqueOperationStore? {
    places[path]?.store { $0.isStore(id) }
  }

  /// What has fallen out of the index and may be the user's, to be released without the lock.
  mutating func takeDropped() -> PathIndex<Place, OpaqueOperationStore>.Dropped {
    places.takeDropped()
  }

  /// Keeps the path of a deadline that is given up: the store may have gone, and its path with it.
  mutating func drop(_ deadline: Deadline) { places.drop(deadline.path) }

  func contains(_ store: OpaqueOperationStore) -> Bool {
    self.store(ObjectIdentifier(store.base), at: store.path) != nil
  }

  /// Somebody asks for a store: the longest retention wins, and it has been used now.
  mutating func ask(
    for type: RequestType, at path: OperationPath, retention: OperationRetention?,
    at moment: StoreUse.Moment
  ) -> OpaqueOperationStore? {
    var found: OpaqueOperationStore?
    // In its place: a copy would take references.
    places.update(path) { found = $0.store { $0.ask(for: type, retention, at: moment) } }
    if limit != nil, let found {
      let id = ObjectIdentifier(found.base)
      if found.retention.isEndless { unused.remove(id) } else { unused.touch(id) }
    }
    return found
  }

  /// The stores below a path.
  func stores(matching prefix: OperationPath) -> [OpaqueOperationStore] {
    places.members(matching: prefix)
  }

  /// Puts in a new store, which is asked whether it may leave at `deadline`, or never.
  mutating func insert(
    _ store: OpaqueOperationStore, retention: OperationRetention, deadline: Date?
  ) -> Insertion {
    guard var place = places.insert(Place(first: store), at: store.path) else {
      noteAdded(store, retention, deadline)
      // The new one does not leave before anybody could use it.
      return .inserted(left: noteUnused(store, limit: limit.map { max($0, 1) }))
    }
    let type = store.requestType
    if let present = ask(for: type, at: store.path, retention: retention, at: store.lastUse) {
      return .present(present)
    }
    place.others.append(store)
    places[store.path] = place
    noteAdded(store, retention, deadline)
    return .clashed(with: place.first.requestType.request)
  }

  private mutating func noteAdded(
    _ store: OpaqueOperationStore, _ retention: OperationRetention, _ deadline: Date?
  ) {
    store.retention = retention
    setDeadline(deadline, of: store)
    deliveries.append(OperationStoreChange(storesAdded: [store]))
  }

  /// Takes out every store below a path, or on it alone.
  mutating func remove(at path: OperationPath, isPrefix: Bool) -> [OpaqueOperationStore] {
    remove(isPrefix ? stores(matching: path) : stores(at: path))
  }

  /// Takes out stores; gives those that were there.
  mutating func remove(_ stores: [OpaqueOperationStore]) -> [OpaqueOperationStore] {
    var removed: [OpaqueOperationStore] = []
    for store in stores {
      let id = ObjectIdentifier(store.base)
      guard let place = places[store.path], place.store({ $0.isStore(id) }) != nil else { continue }
      places[store.path] = place.without(id)
      unused.remove(id)
      removed.append(store)
    }
    if !removed.isEmpty {
      deliveries.append(OperationStoreChange(storesRemoved: removed))
      prune()
    }
    return removed
  }
}

extension OpaqueOperationStore {
  fileprivate func isStore(_ id: ObjectIdentifier) -> Bool { ObjectIdentifier(base) == id }
}
