import Operation

extension StormRequests {
  /// A query whose value is loaded in a batch, and saved.
  func saved(_ id: Int) -> some QueryRequest<Tagged, State> {
    Query<Tagged, any Error>(path: ["saved", id]) { context in
      let ticket = nextTicket()
      let number = try await batches.load(id, in: context)
      if ticket % 5 == 0 { throw StormFailure() }
      return Tagged(ticket: ticket, edits: [number])
    }
    .persisted()
  }

  /// A query whose run lasts until it is cancelled.
  func newest(_ id: Int) -> some QueryRequest<Tagged, State> {
    Query<Tagged, any Error>(
      path: ["newest", id],
      newestOf: { _ in news.values.map { Tagged(edits: [id, $0]) } })
  }

  /// A query that also runs at an interval, and waits for a connection. It has the store of a plain one, which
  /// nothing observes to the end: a poll would not end either.
  func frequent(_ id: Int) -> some QueryRequest<Tagged, State> {
    plain(id).stale(after: .seconds(2)).networkMode(.online)
      .rerun(every: .seconds(3), while: .following(news.values.map { $0 % 2 == 0 }))
      .rerunOnChange(of: .connected)
  }

  func plain(_ id: Int) -> some QueryRequest<Tagged, State> { query(id, at: "frequent") }

  func mapped(_ id: Int) -> some QueryRequest<Int, QueryState<Int, any Error>> {
    query(id).map { $0.edits.count }
  }
}
