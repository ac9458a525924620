import Synchronization

extension StreamSource {
  package func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> StreamSource<Output>
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in
      let shell = FlatMapLatest(transform: transform, handler: handler)
      let outer = subscribe { shell.receive($0) }
      return OperationSubscription {
        outer.cancel()
        shell.cancel()
      }
    }
  }
}

/// The machine of `flatMapLatest`: which inner source counts, and what is over.
///
/// Every element of the outer source begins an epoch. Signals of an inner source that belong to an
/// earlier epoch are dropped, also those that wait for delivery.
struct FlatMapLatestMachine<Output: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<Output>>()
  private var epoch = 0
  private var inner: OperationSubscription?
  private var isOuterActive = true
  private var isInnerActive = false

  /// The outer source gave an element. What is returned is released without the lock; it is nil
  /// when the element was on its way while all was cancelled.
  mutating func beginEpoch() -> Beginning? {
    guard isOuterActive else { return nil }
    epoch += 1
    isInnerActive = true
    return Beginning(epoch: epoch, inner: inner.take(), dropped: deliveries.dropPending())
  }

  struct Beginning: Sendable {
    let epoch: Int
    let inner: OperationSubscription?
    let dropped: DroppedEvents<StreamSignal<Output>>
  }

  /// The subscription to an inner source was made; it is given back if its epoch is over.
  mutating func setInner(
    _ subscription: OperationSubscription, epoch: Int
  ) -> OperationSubscription? {
    guard epoch == self.epoch, isInnerActive else { return subscription }
    inner = subscription
    return nil
  }

  mutating func receiveInner(_ signal: StreamSignal<Output>, epoch: Int) -> OperationSubscription? {
    guard epoch == self.epoch, isInnerActive else { return nil }
    switch signal {
    case .element:
      deliveries.append(signal)
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
    epoch += 1
    isOuterActive = false
    isInnerActive = false
    return inner.take()
  }
}

/// The lock guards the machine; subscribing, cancelling and the closure happen without it.
private final class FlatMapLatest<Element: Sendable, Output: Sendable>: Sendable {
  private let machine: Mutex<FlatMapLatestMachine<Output>>
  private let transform: @Sendable (Element) -> StreamSource<Output>
  private let subscriber: Subscriber<StreamSignal<Output>>

  init(
    transform: @escaping @Sendable (Element) -> StreamSource<Output>,
    handler: @escaping StreamSource<Output>.Handler
  ) {
    self.transform = transform
    var initial = FlatMapLatestMachine<Output>()
    subscriber = Subscriber(handler)
    _ = initial.deliveries.subscribe(subscriber)
    machine = Mutex(initial)
  }

  func receive(_ signal: StreamSignal<Element>) {
    switch signal {
    case .finished:
      machine.commit { $0.finishOuter() }
    case .element(let element):
      guard let beginning = machine.withLock({ $0.beginEpoch() }) else { return }
      let epoch = beginning.epoch
      let subscription = transform(element).subscribe { signal in
        self.machine.commit { $0.receiveInner(signal, epoch: epoch) }?.cancel()
      }
      machine.withLock { $0.setInner(subscription, epoch: epoch) }?.cancel()
      // Left behind the new one: where both look at one store, its observers keep their run.
      beginning.inner?.cancel()
    }
  }

  func cancel() {
    subscriber.deactivate()
    machine.withLock { $0.cancel() }?.cancel()
  }
}
