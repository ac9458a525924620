public import ReactiveStreams
import Synchronization

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

  /// Sets a timer. Of two timers the one with the greater generation remains.
  func setTimer(_ new: StoreIndex.Timer, at now: Duration) {
    let subscription = clock.schedule(after: max(new.time - now, .zero)) { [weak self] in
      self?.evict { $0.evictDue(at: $1, generation: new.generation) }
    }
    let replaced = timer.withLock { current in
      guard new.generation > current.generation else { return subscription }
      return exchange(&current, with: (new.generation, subscription)).subscription
    }
    replaced.cancel()
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
