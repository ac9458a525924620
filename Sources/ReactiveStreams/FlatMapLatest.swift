extension StreamSource {
  package func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> StreamSource<Output>
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in
      let shell = DeliveryShell(FlatMapLatestMachine<Output>())
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in
          guard case .element(let element, let outer) = signal else {
            return shell.commit { $0.finishOuter() }
          }
          guard let beginning = shell.withLock({ $0.beginEpoch(within: outer) }) else { return }
          let epoch = beginning.epoch
          beginning.earlier?.end()
          beginning.inner.set(
            transform(element).subscribe { signal in
              shell.commit { $0.receiveInner(signal, epoch: epoch) }?.cancel()
            })
          // After the new subscription: where both are of one store, its observers keep their run.
          beginning.earlierInner?.cancel()
        },
        OperationSubscription { shell.withLock { $0.cancel() }?.cancel() })
    }
  }
}

/// The machine of `flatMapLatest`: the current inner source, and which sources have ended.
///
/// Every element of the outer source begins an epoch. Signals of an inner source that belong to an
/// earlier epoch are dropped: here, also those in the queue, and later by the reader of states.
struct FlatMapLatestMachine<Output: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<Output>>()
  private var epoch: StreamEpoch?
  /// `nil` if there is no inner source that has not ended.
  private var inner: LateSubscription?
  private var isOuterActive = true

  /// Begins the epoch of an element of the outer source, inside the epoch `outer`. Returns what is released
  /// without the lock, or `nil` if the outer source has ended or the subscription was cancelled.
  mutating func beginEpoch(within outer: StreamEpoch? = nil) -> Beginning? {
    guard isOuterActive else { return nil }
    let (newEpoch, newInner) = (StreamEpoch(within: [outer]), LateSubscription())
    return Beginning(
      epoch: newEpoch, inner: newInner, earlier: exchange(&epoch, with: newEpoch),
      earlierInner: exchange(&inner, with: newInner), dropped: deliveries.dropPending())
  }

  struct Beginning: Sendable {
    let epoch: StreamEpoch
    let inner: LateSubscription
    /// The epoch that ends now.
    let earlier: StreamEpoch?
    let earlierInner: LateSubscription?
    let dropped: FIFO<DeliveryQueue<StreamSignal<Output>>.Entry>
  }

  /// Returns the subscription to an inner source that has ended.
  mutating func receiveInner(
    _ signal: StreamSignal<Output>, epoch: StreamEpoch
  ) -> LateSubscription? {
    guard epoch === self.epoch, inner != nil else { return nil }
    switch signal {
    case .element(let element, let inner):
      deliveries.append(.element(element, in: .common([epoch, inner])))
      return nil
    case .finished:
      if !isOuterActive { deliveries.append(.finished) }
      return inner.take()
    }
  }

  mutating func finishOuter() {
    guard isOuterActive else { return }
    isOuterActive = false
    if inner == nil { deliveries.append(.finished) }
  }

  mutating func cancel() -> LateSubscription? {
    isOuterActive = false
    return inner.take()
  }
}
