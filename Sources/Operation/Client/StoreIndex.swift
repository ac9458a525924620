/// The machine of a client: which store stands on which path.
///
/// The first request type on a path has the path's store. Another type on the same path clashes
/// with it, and gets a store of its own beside it.
struct StoreIndex: Sendable {
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

  enum Insertion: Sendable {
    /// The new store is in the index.
    case inserted
    /// The new store is in the index, beside the one of another type.
    case clashed(with: String)
    /// Somebody else was faster; his store stays.
    case present(OpaqueOperationStore)
  }

  private var entries: [OperationPath: Entry] = [:]
  /// The stores of types that came second, by path.
  private var clashing: [OperationPath: [Entry]] = [:]

  var count: Int { entries.count + clashing.values.reduce(0) { $0 + $1.count } }

  /// The store that stands on a path for whoever does not name a request.
  func store(at path: OperationPath) -> OpaqueOperationStore? {
    entries[path]?.store
  }

  func store(at path: OperationPath, for type: RequestType) -> OpaqueOperationStore? {
    guard let first = entries[path] else { return nil }
    if first.type == type { return first.store }
    return clashing[path]?.first { $0.type == type }?.store
  }

  mutating func insert(_ entry: Entry) -> Insertion {
    let path = entry.store.path
    if let present = store(at: path, for: entry.type) { return .present(present) }
    guard let first = entries[path] else {
      entries[path] = entry
      return .inserted
    }
    clashing[path, default: []].append(entry)
    return .clashed(with: first.requestName)
  }

  /// Takes out every store of a path.
  mutating func remove(at path: OperationPath) -> [Entry] {
    let first = entries.removeValue(forKey: path)
    return [first].compactMap { $0 } + (clashing.removeValue(forKey: path) ?? [])
  }
}
