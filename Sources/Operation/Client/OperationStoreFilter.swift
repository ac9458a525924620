/// A predicate of stores, beside a prefix of their paths.
///
/// ```swift
/// client.invalidate(matching: ["users"], where: .observed && !.loading)
/// ```
///
/// A list such as `[.stale, .observed]` accepts the stores that satisfy all of its members. The empty
/// list accepts each store.
public struct OperationStoreFilter: Sendable {
  /// Whether each store that is accepted is stale.
  private(set) var requiresStale = false
  private let predicate: (@Sendable (OpaqueOperationStore) -> Bool)?

  /// Accepts the stores that a closure accepts.
  ///
  /// - Parameter isIncluded: Called on the thread that uses the filter, with no lock held.
  public static func `where`(
    _ isIncluded: @escaping @Sendable (OpaqueOperationStore) -> Bool
  ) -> OperationStoreFilter { OperationStoreFilter(predicate: isIncluded) }

  /// Accepts stores without a value, or with one that is out of date.
  public static let stale = OperationStoreFilter(requiresStale: true) { $0.isStale }
  /// Accepts stores with a run that is scheduled or in flight.
  public static let loading = OperationStoreFilter { $0.isLoading }
  /// The same as ``loading``.
  public static let running = loading
  /// Accepts stores with subscribers.
  public static let observed = OperationStoreFilter { $0.subscriberCount > 0 }
  /// Accepts stores whose last run failed.
  public static let failed = OperationStoreFilter { $0.error != nil }

  /// Returns a filter that accepts the stores that both filters accept.
  public static func && (
    lhs: OperationStoreFilter, rhs: OperationStoreFilter
  ) -> OperationStoreFilter {
    if lhs.isEmpty || rhs.isEmpty { return lhs.isEmpty ? rhs : lhs }
    return OperationStoreFilter(requiresStale: lhs.requiresStale || rhs.requiresStale) {
      lhs.accepts($0) && rhs.accepts($0)
    }
  }

  /// Returns a filter that accepts the stores that at least one of two filters accepts.
  public static func || (
    lhs: OperationStoreFilter, rhs: OperationStoreFilter
  ) -> OperationStoreFilter {
    if lhs.isEmpty || rhs.isEmpty { return [] }
    return OperationStoreFilter(requiresStale: lhs.requiresStale && rhs.requiresStale) {
      lhs.accepts($0) || rhs.accepts($0)
    }
  }

  /// Returns a filter that accepts the stores that another one does not accept.
  public static prefix func ! (filter: OperationStoreFilter) -> OperationStoreFilter {
    OperationStoreFilter { !filter.accepts($0) }
  }

  /// Whether it accepts each store.
  var isEmpty: Bool { predicate == nil }

  func accepts(_ store: OpaqueOperationStore) -> Bool { predicate?(store) ?? true }
}

extension OperationStoreFilter: ExpressibleByArrayLiteral {
  /// Creates a filter that accepts the stores that all of some filters accept.
  public init(arrayLiteral filters: OperationStoreFilter...) {
    self = filters.reduce(OperationStoreFilter(predicate: nil)) { $0 && $1 }
  }
}

/// The stores that run again after an invalidation.
public enum InvalidatedStores: Sendable, Hashable {
  /// Those with subscribers.
  case observed
  /// None starts a run. If observers have a run in flight, one more follows it.
  case nothing
  /// Those with subscribers, and all other ones that match, are no mutations and may run automatically.
  case all
}
