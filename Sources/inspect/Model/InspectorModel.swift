/// All that the inspector knows about a program. It is fed with the program's messages.
struct InspectorModel: Equatable, Sendable {
  enum Connection: Equatable, Sendable {
    case connecting
    case connected
    /// The program has ended, or it has ended the connection.
    case ended(reason: String)
    /// The program has ended the connection in place of a greeting.
    case refused(reason: String)
  }

  private(set) var connection = Connection.connecting
  private(set) var hello: Hello?
  private(set) var stores: [Int: StoreRecord] = [:]
  private(set) var counts = Counts()
  private(set) var timelines: [Int: Timeline] = [:]
  private(set) var detail: StoreDetail?
  private(set) var isOffline = false
  /// All changes and events that the program left out.
  private(set) var missed = 0
  /// Increases with each change of a store.
  private(set) var version = 0
  /// Increases when a store is added or removed.
  private(set) var structureVersion = 0

  /// Begins a new connection, to the same program or its next start.
  mutating func reconnect() { self = InspectorModel() }

  mutating func end(reason: String) {
    // A program that says goodbye closes the connection right after it.
    if connection == .connecting || connection == .connected { connection = .ended(reason: reason) }
  }

  mutating func receive(_ message: ServerMessage) {
    switch message {
    case .hello(let hello):
      self.hello = hello
      isOffline = hello.isOffline
      connection = .connected
    case .snapshot(let snapshot):
      stores = Dictionary(snapshot.stores.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
      counts = snapshot.counts
      version += 1
      structureVersion += 1
    case .changes(let changes): receive(changes)
    case .detail(let detail): self.detail = detail
    case .bye(let reason):
      if hello == nil { connection = .refused(reason: reason) } else { end(reason: reason) }
    case .reply, .unknown: break
    }
  }

  private mutating func receive(_ changes: Changes) {
    let before = stores.count
    for store in changes.stores { stores[store.id] = store }
    // Identifiers are never used again, so a new store adds to the count.
    if stores.count != before || !changes.removed.isEmpty { structureVersion += 1 }
    for id in changes.removed {
      stores[id] = nil
      timelines[id] = nil
    }
    if !changes.stores.isEmpty || !changes.removed.isEmpty { version += 1 }
    for event in changes.events where event.kind != "removed" && stores[event.store] != nil {
      timelines[event.store, default: Timeline()].apply(event)
    }
    counts = changes.counts ?? counts
    isOffline = changes.isOffline
    missed = missed &+ changes.missed
  }

  /// Forgets the detail when another store is opened.
  mutating func closeDetail() { detail = nil }

  /// Returns how many stores have a status.
  func count(of status: StoreRecord.Status) -> Int { stores.values.count { $0.status == status } }
}
