/// Stores that came to a client, or left it.
public struct OperationStoreChange: Sendable {
  /// The stores that were made.
  public let storesAdded: OperationStoreCollection<OpaqueOperationStore>
  /// The stores that were taken out.
  public let storesRemoved: OperationStoreCollection<OpaqueOperationStore>

  init(storesAdded: [OpaqueOperationStore] = [], storesRemoved: [OpaqueOperationStore] = []) {
    self.storesAdded = OperationStoreCollection(storesAdded, path: \.path)
    self.storesRemoved = OperationStoreCollection(storesRemoved, path: \.path)
  }

  /// What of the change is below a path; `nil` if nothing is.
  func restricted(to prefix: OperationPath) -> OperationStoreChange? {
    if prefix.isEmpty { return self }
    let change = OperationStoreChange(
      storesAdded: storesAdded.filter { prefix.isPrefix(of: $0.path) },
      storesRemoved: storesRemoved.filter { prefix.isPrefix(of: $0.path) })
    return change.storesAdded.isEmpty && change.storesRemoved.isEmpty ? nil : change
  }
}

/// Stores of a client, in no particular order, which are also found by their path.
public struct OperationStoreCollection<Store: Sendable>: Sendable, RandomAccessCollection {
  let stores: [Store]
  let path: @Sendable (Store) -> OperationPath

  init(_ stores: [Store], path: @escaping @Sendable (Store) -> OperationPath) {
    self.stores = stores
    self.path = path
  }

  /// The position of the first store: zero.
  public var startIndex: Int { 0 }
  /// The position after the last store.
  public var endIndex: Int { stores.count }

  /// The store at a position, which must be one of the collection.
  public subscript(position: Int) -> Store { stores[position] }

  /// The store on a path; found by a look at each.
  public subscript(path: OperationPath) -> Store? { stores.first { self.path($0) == path } }
}
