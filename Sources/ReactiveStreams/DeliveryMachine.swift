public import Synchronization

/// A machine that has a delivery queue among its parts.
@usableFromInline package protocol DeliveryMachine: Sendable {
  associatedtype Event: Sendable
  var deliveries: DeliveryQueue<Event> { get set }
}

// Without the annotations of this file these benchmarks are over their limits: write without
// subscribers, write per subscriber, subscribe and cancel, state stream.
extension Mutex where Value: DeliveryMachine {
  /// Performs a transition under the lock, and after the lock the deliveries that are queued then.
  ///
  /// Returns when they have been performed. If another thread is delivering, that thread performs
  /// them.
  @inlinable package borrowing func commit<Output: Sendable>(
    _ transition: (inout Value) -> Output
  ) -> Output {
    let (output, delivery) = withLock { machine in
      (transition(&machine), machine.deliveries.beginDraining())
    }
    if let delivery { drain(from: delivery) }
    return output
  }

  /// Performs deliveries until the queue is empty, beginning with one that was taken from it.
  ///
  /// Each delivery is kept until the next one has been taken under the lock. So a thread that finds
  /// the list of subscribers unshared, and changes it in place, holds the lock after this thread has
  /// released it: the last read of the list happens before the change.
  @inlinable package borrowing func drain(from first: Delivery<Value.Event>) {
    var next = Optional(first)
    while let delivery = next {
      delivery.perform()
      next = withLock { $0.deliveries.takeNext() }
      withExtendedLifetime(delivery) {}
    }
  }
}
