import FoundationEssentials
import ReactiveStreams

/// The machine of a client: which store stands on which path, and who is told of a change.
///
/// The first request type on a path has the path's store. Another type on the same path clashes
/// with it, and gets a store of its own beside it.
@usableFromInline struct StoreIndex: DeliveryMachine {
  struct Entry: Sendable {
    let store: OpaqueOperationStore
    let type: RequestType
    var retention: OperationRetention
    /// When the store is asked whether it may leave; in the distant future, if never.
    var deadline: Date

    init(
      store: OpaqueOperationStore, type: RequestType, retention: OperationRetention, deadline: Date?
    ) {
      self.store = store
      self.type = type
      self.retention = retention
      self.deadline = deadline ?? .distantFuture
    }
  }

  /// What two requests have to have in common to share a store.
  @usableFromInline struct RequestType: Sendable, Equatable {
    /// The type of the request, which reports name.
    @usableFromInline let request: any Any.Type
    @usableFromInline let state: ObjectIdentifier

    @inlinable init<Request: StatefulOperationRequest>(of request: Request) {
      self.request = request.requestType
      state = ObjectIdentifier(Request.State.self)
    }

    @inlinable static func == (lhs: RequestType, rhs: RequestType) -> Bool {
      lhs.request == rhs.request && lhs.state == rhs.state
    }
  }

  /// The stores of one path.
  private struct Place: Sendable {
    var first: Entry
    /// Those of types that came second.
    var others: [Entry] = []

    var entries: [Entry] { [first] + others }

    mutating func ask(
      for type: RequestType, retention: OperationRetention?
    ) -> OpaqueOperationStore? {
      if first.type == type { return first.ask(for: retention) }
      guard let index = others.firstIndex(where: { $0.type == type }) else { return nil }
      return others[index].ask(for: retention)
    }

    func store(for type: RequestType) -> OpaqueOperationStore? {
      first.type == type ? first.store : others.first { $0.type == type }?.store
    }

    mutating func update(_ id: ObjectIdentifier, _ change: (inout Entry) -> Void) {
      if first.isStore(id) { return change(&first) }
      if let index = others.firstIndex(where: { $0.isStore(id) }) { change(&others[index]) }
    }

    /// The place without a store; `nil` if there is no other.
    func without(_ id: ObjectIdentifier) -> Place? {
      let rest = entries.filter { !$0.isStore(id) }
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

  @usableFromInline var deliveries = DeliveryQueue<OperationStoreChange>()
  private var places = PathIndex<Place, OpaqueOperationStore> {
    ($0.first.store, $0.others.map(\.store))
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
  func store(at path: OperationPath) -> OpaqueOperationStore? {
    places[path]?.first.store
  }

  func stores(at path: OperationPath) -> [OpaqueOperationStore] {
    places[path]?.entries.map(\.store) ?? []
  }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    places[path]?.store(for: type)
  }

  mutating func askPlace(
    for type: RequestType, at path: OperationPath, retention: OperationRetention?
  ) -> OpaqueOperationStore? {
    var store: OpaqueOperationStore?
    places.update(path) { store = $0.ask(for: type, retention: retention) }
    return store
  }

  /// The stores below a path.
  func stores(matching prefix: OperationPath) -> [OpaqueOperationStore] {
    places.members(matching: prefix)
  }

  func entry(_ id: ObjectIdentifier, at path: OperationPath) -> Entry? {
    guard let place = places[path] else { return nil }
    if place.first.isStore(id) { return place.first }
    return place.others.first { $0.isStore(id) }
  }

  mutating func update(
    _ id: ObjectIdentifier, at path: OperationPath, _ change: (inout Entry) -> Void
  ) {
    places.update(path) { $0.update(id, change) }
  }

  mutating func insert(_ entry: Entry) -> Insertion {
    let path = entry.store.path
    guard var place = places.insert(Place(first: entry), at: path) else {
      noteAdded(entry)
      // The new one does not leave before anybody could use it.
      return .inserted(left: noteUnused(entry, limit: limit.map { max($0, 1) }))
    }
    if let present = place.store(for: entry.type) { return .present(present) }
    place.others.append(entry)
    places[path] = place
    noteAdded(entry)
    return .clashed(with: place.first.type.request)
  }

  private mutating func noteAdded(_ entry: Entry) {
    deliveries.append(OperationStoreChange(storesAdded: [entry.store]))
    if entry.deadline != .distantFuture { note(entry.deadline, of: entry.store) }
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
      guard entry(id, at: store.path) != nil, let place = places[store.path] else { continue }
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

extension StoreIndex.Entry {
  fileprivate mutating func ask(for retention: OperationRetention?) -> OpaqueOperationStore {
    if let retention, retention.isLonger(than: self.retention) { self.retention = retention }
    return store
  }

  fileprivate func isStore(_ id: ObjectIdentifier) -> Bool { ObjectIdentifier(store.base) == id }
}
