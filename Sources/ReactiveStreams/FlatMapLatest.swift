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
          let subscription = transform(element).subscribe { signal in
            shell.commit { $0.receiveInner(signal, epoch: epoch) }?.cancel()
          }
          shell.withLock { $0.setInner(subscription, epoch: epoch) }?.cancel()
          // After the new subscription: where both are of one store, its observers keep their run.
          beginning.inner?.cancel()
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
  private var inner: OperationSubscription?
  private var isOuterActive = true
  private var isInnerActive = false

  /// Begins the epoch of an element of the outer source, inside the epoch `outer`. Returns what is released
  /// without the lock, or `nil` if the outer source has ended or the subscription was cancelled.
  mutating func beginEpoch(within outer: StreamEpoch? = nil) -> Beginning? {
    guard isOuterActive else { return nil }
    let epoch = StreamEpoch(within: [outer])
    defer { self.epoch = epoch }
    isInnerActive = true
    return Beginning(
      epoch: epoch, earlier: self.epoch, inner: inner.take(), dropped: deliveries.dropPending())
  }

  struct Beginning: Sendable {
    let epoch: StreamEpoch
    /// The epoch that ends now.
    let earlier: StreamEpoch?
    let inner: OperationSubscription?
    let dropped: FIFO<DeliveryQueue<StreamSignal<Output>>.Entry>
  }

  /// Stores the subscription to an inner source. Returns it if its epoch is over.
  mutating func setInner(
    _ subscription: OperationSubscription, epoch: StreamEpoch
  ) -> OperationSubscription? {
    guard epoch === self.epoch, isInnerActive else { return subscription }
    inner = subscription
    return nil
  }

  mutating func receiveInner(
    _ signal: StreamSignal<Output>, epoch: StreamEpoch
  ) -> OperationSubscription? {
    guard epoch === self.epoch, isInnerActive else { return nil }
    switch signal {
    case .element(let element, let inner):
      deliveries.append(.element(element, in: .common([epoch, inner])))
      return nil
    case .finished:
      isInnerActive = false
      if !isOuterActive { deliveries.append(.finished) }
      return inner.take()
    }
  }

  mutating func finishOuter() {
    guard isOuterActive else { return }
    isOuterActive = false
    if !isInnerActive { deliveries.append(.finished) }
  }

  mutating func cancel() -> OperationSubscription? {
    epoch = nil
    isOuterActive = false
    isInnerActive = false
    return inner.take()
  }
}
