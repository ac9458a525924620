public import ReactiveStreams

extension OperationClient {
  /// Lets go of the stores that nobody uses whenever memory is short, the least recently used ones
  /// first, until the subscription goes.
  ///
  /// Stores that are retained for ever stay.
  ///
  /// - Parameters:
  ///   - pressure: From which pressure on.
  ///   - source: Who tells of it; that of the client's queries unless given.
  public func evictWhen(
    pressure: MemoryPressure, from source: (any MemoryPressureSource)? = nil
  ) -> OperationSubscription {
    let source = source ?? context(for: .query).memoryPressureSource
    return source.subscribe { [weak self] present in
      if present >= pressure { self?.evictUnused() }
    }
  }
}
