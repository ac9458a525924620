import ReactiveStreams

/// The machine of a client: which store stands on which path, and who is told of a change.
///
/// The first request type on a path has the path's store. Another type on the same path clashes
/// with it, and gets a store of its own beside it.
struct StoreIndex: DeliveryMachine {
  struct Entry: Sendable {
    let store: OpaqueOperationStore
    let type: RequestType
    let requestName: String
  }

  /// What two requests have to have in common to share a store.
  struct RequestType: Sendable, Hashable {
    private let request: ObjectIdentifier
    private let state: ObjectIdentifier

    init<Request: StatefulOperationRequest>(of request: Request) {
      self.request = ObjectIdentifier(request.requestType)
      state = ObjectIdentifier(Request.State.self)
    }
  }

  /// The stores of one path.
  private struct Place: Sendable {
    let first: Entry
    /// Those of types that came second.
    var others: [Entry] = []

    var entries: [Entry] { [first] + others }
  }

  enum Insertion: Sendable {
    /// The new store is in the index.
    case inserted
    /// The new store is in the index, beside the one of another type.
    case clashed(with: String)
    /// Somebody else was faster; his store stays.
    case present(OpaqueOperationStore)
  }

  var deliveries = DeliveryQueue<OperationStoreChange>()
  private var places = PathIndex<Place>()

  /// How many nodes the tree of paths has.
  var nodeCount: Int { places.nodeCount }

  /// The store that stands on a path for whoever does not name a request.
  func store(at path: OperationPath) -> OpaqueOperationStore? {
    places[path]?.first.store
  }

  func stores(at path: OperationPath) -> [OpaqueOperationStore] {
    places[path]?.entries.map(\.store) ?? []
  }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    guard let place = places[path] else { return nil }
    if place.first.type == type { return place.first.store }
    return place.others.first { $0.type == type }?.store
  }

  /// The stores below a path.
  func stores(matching prefix: OperationPath) -> [OpaqueOperationStore] {
    let places = places.values(matching: prefix)
    var stores: [OpaqueOperationStore] = []
    stores.reserveCapacity(places.count)
    for place in places {
      stores.append(place.first.store)
      for entry in place.others { stores.append(entry.store) }
    }
    return stores
  }

  mutating func insert(_ entry: Entry) -> Insertion {
    let path = entry.store.path
    if let present = store(at: path, for: entry.type) { return .present(present) }
    defer { deliveries.append(OperationStoreChange(storesAdded: [entry.store])) }
    guard let first = places[path]?.first else {
      places[path] = Place(first: entry)
      return .inserted
    }
    places[path]?.others.append(entry)
    return .clashed(with: first.requestName)
  }

  /// Takes out every store below a path, or on it alone.
  mutating func remove(at path: OperationPath, isPrefix: Bool) -> [OpaqueOperationStore] {
    let stores = isPrefix ? stores(matching: path) : stores(at: path)
    for store in stores { places[store.path] = nil }
    if !stores.isEmpty { deliveries.append(OperationStoreChange(storesRemoved: stores)) }
    return stores
  }
}
