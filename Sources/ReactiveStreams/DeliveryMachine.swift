package import Synchronization

/// A machine that has a delivery queue among its parts.
package protocol DeliveryMachine: Sendable {
  associatedtype Event: Sendable
  var deliveries: DeliveryQueue<Event> { get set }
}

extension Mutex where Value: DeliveryMachine {
  /// Performs a transition under the lock, and the deliveries that it left after the lock.
  ///
  /// Returns when they have been performed, unless another thread is delivering: then that thread
  /// performs them.
  package borrowing func commit<Output: Sendable>(
    _ transition: (inout Value) -> Output
  ) -> Output {
    let (output, delivery) = withLock { machine in
      (transition(&machine), machine.deliveries.beginDraining())
    }
    if let delivery { drain(from: delivery) }
    return output
  }

  /// Performs the deliveries that have come while the drainer told something by itself.
  package borrowing func drain() {
    if let delivery = withLock({ $0.deliveries.takeNext() }) { drain(from: delivery) }
  }

  /// Performs deliveries, beginning with one that was taken already.
  ///
  /// Each is kept until the next has been taken. So whoever finds the list of subscribers unshared,
  /// and changes it in its place, holds the lock after the drainer has: the last look at a list comes
  /// before its next change by the lock, and not by the count of its references alone.
  package borrowing func drain(from first: consuming Delivery<Value.Event>) {
    var next = Optional(first)
    while let delivery = next.take() {
      delivery.perform()
      next = withLock { $0.deliveries.takeNext() }
      withExtendedLifetime(delivery) {}
    }
  }

  /// Tells an event of the caller's own, who is the drainer; gives him his next delivery, which he
  /// performs when he has let go of the event. Those who have gone meanwhile go when the lock is open.
  package borrowing func tell(
    _ event: Value.Event, to audience: consuming Audience<Value.Event>
  ) -> Delivery<Value.Event>? {
    audience.hear(event)
    let next = withLock { $0.deliveries.takeNext(returning: &audience) }
    withExtendedLifetime(audience) {}
    return next
  }
}

extension DeliveryQueue: DeliveryMachine {
  package var deliveries: DeliveryQueue<Event> {
    _read { yield self }
    _modify { yield &self }
  }
}
