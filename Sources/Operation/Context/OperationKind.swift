/// The kind of request that a store is for.
public enum OperationKind: String, Sendable, Hashable, Codable {
  /// A request that fetches a value.
  case query
  /// A request that fetches a list page by page.
  case pages
  /// A request that changes something.
  case mutation
}

/// The purpose of a run of a paginated request.
public enum PaginatedRunKind: String, Sendable, Hashable {
  /// Fetches the initial page. While the state has no page, every run is of this kind.
  case initialPage
  /// Fetches the page after the last one of the state.
  case nextPage
  /// Fetches the page before the first one of the state.
  case previousPage
  /// Fetches as many pages as the state has, one after the other, from the first one on.
  case allPages
  /// Fetches the pages that the request's ``PaginatedRefetch`` selects.
  case refetch
}
