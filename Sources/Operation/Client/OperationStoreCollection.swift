/// A collection of stores of a client, in no particular order.
public struct OperationStoreCollection<Store: Sendable>: Sendable, RandomAccessCollection {
  let stores: [Store]
  let path: @Sendable (Store) -> OperationPath

  /// The position of the first store, which is zero.
  public var startIndex: Int { 0 }
  /// The position after the last store.
  public var endIndex: Int { stores.count }

  /// The store at a position.
  ///
  /// - Parameter position: A valid position of the collection. Another one stops the program.
  public subscript(position: Int) -> Store { stores[position] }

  /// The first store on a path; `nil` if there is none. It compares the paths of all stores.
  public subscript(path: OperationPath) -> Store? { stores.first { self.path($0) == path } }
}

/// A change of a client's stores: those that were added, and those that were removed.
public struct OperationStoreChange: Sendable {
  /// The stores that were added.
  public let storesAdded: OperationStoreCollection<OpaqueOperationStore>
  /// The stores that were removed.
  public let storesRemoved: OperationStoreCollection<OpaqueOperationStore>

  init(storesAdded: [OpaqueOperationStore] = [], storesRemoved: [OpaqueOperationStore] = []) {
    self.storesAdded = OperationStoreCollection(stores: storesAdded, path: \.path)
    self.storesRemoved = OperationStoreCollection(stores: storesRemoved, path: \.path)
  }

  /// Returns the part of the change whose paths begin with a prefix, and whose stores a filter accepts;
  /// `nil` if it is empty.
  func restricted(
    to prefix: OperationPath, where filter: OperationStoreFilter
  ) -> OperationStoreChange? {
    if prefix.isEmpty, filter.isEmpty { return self }
    let isIncluded = { prefix.isPrefix(of: $0.path) && filter.accepts($0) }
    let change = OperationStoreChange(
      storesAdded: storesAdded.filter(isIncluded), storesRemoved: storesRemoved.filter(isIncluded))
    return change.storesAdded.isEmpty && change.storesRemoved.isEmpty ? nil : change
  }
}
