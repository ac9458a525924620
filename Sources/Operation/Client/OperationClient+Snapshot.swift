extension OperationClient {
  /// What the client holds now: each store by itself as it is, and not all at one instant.
  public func snapshot() -> OperationClientSnapshot {
    let now = clock.now()
    let stores = stores(matching: []).map { $0.snapshot(at: now) }
    return OperationClientSnapshot(
      date: now, stores: stores.sorted { $0.path.lexicographicallyPrecedes($1.path) })
  }
}
