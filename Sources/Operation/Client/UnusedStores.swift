/// The stores that are not in use, the least recently used one first.
///
/// Each store has a position, and a store that is used again gets a new one at the end.
struct UnusedStores: Sendable {
  private var stores: [Int: (store: OpaqueOperationStore, version: Int)] = [:]
  private var positions: [ObjectIdentifier: Int] = [:]
  private var (first, end) = (0, 0)

  var count: Int { positions.count }

  /// Adds a store as the most recently used one, with the version of its use.
  mutating func append(_ store: OpaqueOperationStore, version: Int) {
    remove(store)
    positions[store.id] = end
    stores[end] = (store, version)
    end += 1
  }

  /// Makes a store the most recently used one, if it is one of the unused stores.
  mutating func touch(_ store: OpaqueOperationStore) {
    if let position = positions[store.id], let version = stores[position]?.version {
      append(store, version: version)
    }
  }

  mutating func remove(_ store: OpaqueOperationStore) {
    if positions.isEmpty { return }
    if let position = positions.removeValue(forKey: store.id) { stores[position] = nil }
  }

  mutating func popFirst() -> (store: OpaqueOperationStore, version: Int)? {
    while first < end {
      defer { first += 1 }
      guard let next = stores.removeValue(forKey: first) else { continue }
      positions[next.store.id] = nil
      return next
    }
    return nil
  }
}
