public import ReactiveStreams

extension OperationClient {
  /// Evicts all unused stores whenever memory is short, the least recently used one first.
  ///
  /// Stores that are retained forever, and stores that are in use, are not evicted. The stores are
  /// evicted on the thread on which the source notifies, with no lock held.
  ///
  /// - Parameters:
  ///   - pressure: The least pressure at which stores are evicted.
  ///   - source: The source of memory pressure. The default is the one in the context of this client's
  ///     queries.
  /// - Returns: The subscription. It does not keep the client alive.
  public func evictWhen(
    pressure: MemoryPressure, from source: (any MemoryPressureSource)? = nil
  ) -> OperationSubscription {
    let source = source ?? context(for: .query, at: []).memoryPressureSource
    return source.subscribe { [weak self] current in
      if current >= pressure { self?.evictUnused() }
    }
  }

  func evictUnused() { evict { index, _ in index.evictUnused() } }

  /// Sets a timer, unless it is replaced meanwhile.
  func setTimer(_ new: StoreIndex.Timer, insteadOf old: StoreIndex.Timer?, at now: Duration) {
    old?.place.cancel()
    let delay = max(new.time - now, .zero)
    new.place.set(
      clock.schedule(after: delay) { [weak self, weak place = new.place] in
        if let place { self?.evict { $0.evictDue(at: $1, place) } }
      })
  }

  /// Performs a transition at the present time, and sends the events of the stores that it evicts.
  private func evict(_ transition: (inout StoreIndex, Duration) -> [OpaqueOperationStore]) {
    let now = hub.elapsed()
    _ = update(at: now, { transition(&$0, now) }, beforeDelivery: didEvict)
  }
}

extension OperationClient: StoreHost {
  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {
    let now = hub.elapsed()
    _ = update(at: now, { $0.useChanged(of: store, change, at: now) }, beforeDelivery: didUse)
  }

  func wasReleased(_ id: ObjectIdentifier, at path: OperationPath) {
    update { _ = $0.remove(id, at: path) }
    hub.remove([path])
  }

  func stores(at path: OperationPath) -> [OpaqueOperationStore] { read { $0.stores(at: path) } }

  func hasStore(at path: OperationPath) -> Bool { read { $0.hasStore(at: path) } }

  func hasStore(_ id: ObjectIdentifier, at path: OperationPath) -> Bool {
    read { $0.reference(id, at: path) != nil }
  }
}
