/// What stores have to be, beside standing below a path.
public struct OperationStoreFilter: OptionSet, Sendable, Hashable {
  /// The bits of the set.
  public let rawValue: Int

  /// Creates a filter from its bits; those without a meaning ask for nothing.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Stores without a value, or with one that is out of date.
  public static let stale = OperationStoreFilter(rawValue: 1 << 0)
  /// Stores with a run that is scheduled or under way.
  public static let running = OperationStoreFilter(rawValue: 1 << 1)
  /// Stores that somebody has subscribed to.
  public static let observed = OperationStoreFilter(rawValue: 1 << 2)

  func accepts(_ store: OpaqueOperationStore) -> Bool {
    if contains(.observed), store.subscriberCount == 0 { return false }
    if contains(.running), !store.isLoading { return false }
    return !contains(.stale) || store.isStale
  }
}
