extension PaginatedRequest {
  /// Keeps `limit` pages at most: a next page drops the first ones, a previous page the last ones.
  ///
  /// - Parameter limit: How many; a number below one is reported and taken as one.
  public func maxPages(
    _ limit: Int
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let limit = limit.checkedLimit(for: "The number of pages of \(Self.self)")
    return settings { $0.maxPages = limit }
  }

  /// Says which pages a plain `fetch`, and a run by itself, fetch again; all of them unless said.
  public func refetching(
    _ pages: PaginatedRefetch<PageID, PageValue>
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    settings { $0.refetch = pages }
  }
}
