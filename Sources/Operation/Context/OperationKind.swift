/// What kind of request a store is for.
public enum OperationKind: String, Sendable, Hashable, Codable {
  /// A request that reads.
  case query
  /// A request that reads page by page.
  case pages
  /// A request that changes something.
  case mutation
}
