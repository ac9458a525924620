/// Stores of a client, in no particular order.
public struct OperationStoreCollection<Store: Sendable>: Sendable, RandomAccessCollection {
  private let stores: [Store]
  private let path: @Sendable (Store) -> OperationPath

  init(_ stores: [Store], path: @escaping @Sendable (Store) -> OperationPath) {
    self.stores = stores
    self.path = path
  }

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

/// Stores that were added to a client or removed from it.
public struct OperationStoreChange: Sendable {
  /// The stores that were added.
  public let storesAdded: OperationStoreCollection<OpaqueOperationStore>
  /// The stores that were removed.
  public let storesRemoved: OperationStoreCollection<OpaqueOperationStore>

  init(storesAdded: [OpaqueOperationStore] = [], storesRemoved: [OpaqueOperationStore] = []) {
    self.storesAdded = OperationStoreCollection(storesAdded, path: \.path)
    self.storesRemoved = OperationStoreCollection(storesRemoved, path: \.path)
  }

  /// Returns the part of the change whose paths begin with a prefix; `nil` if it is empty.
  func restricted(to prefix: OperationPath) -> OperationStoreChange? {
    if prefix.isEmpty { return self }
    let change = OperationStoreChange(
      storesAdded: storesAdded.filter { prefix.isPrefix(of: $0.path) },
      storesRemoved: storesRemoved.filter { prefix.isPrefix(of: $0.path) })
    return change.storesAdded.isEmpty && change.storesRemoved.isEmpty ? nil : change
  }
}

/// Conditions that stores satisfy, beside a prefix of their paths.
///
/// A store satisfies a filter if it satisfies all of its members. The empty filter accepts each
/// store.
public struct OperationStoreFilter: OptionSet, Sendable, Hashable {
  /// The bits of the set.
  public let rawValue: Int

  /// Creates a filter from its bits. Bits without a meaning are ignored.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Accepts stores without a value, or with one that is out of date.
  public static let stale = OperationStoreFilter(rawValue: 1 << 0)
  /// Accepts stores with a run that is scheduled or in flight.
  public static let running = OperationStoreFilter(rawValue: 1 << 1)
  /// Accepts stores with subscribers.
  public static let observed = OperationStoreFilter(rawValue: 1 << 2)

  func accepts(_ store: OpaqueOperationStore) -> Bool {
    if contains(.observed), store.subscriberCount == 0 { return false }
    if contains(.running), !store.isLoading { return false }
    return !contains(.stale) || store.isStale
  }
}
