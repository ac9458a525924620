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
  /// them. A long queue is handed over, see ``drain(from:handOver:)``.
  @inlinable package borrowing func commit<Output: Sendable>(
    _ transition: (inout Value) -> Output, handOver: (Delivery<Value.Event>) -> Void
  ) -> Output {
    let (output, delivery) = withLock { machine in
      (transition(&machine), machine.deliveries.beginDraining())
    }
    if let delivery { drain(from: delivery, handOver: handOver) }
    return output
  }

  /// Performs deliveries until the queue is empty, beginning with one that was taken from it.
  ///
  /// A thread performs those that were queued when it began, and a bounded number of later ones: what
  /// other threads append meanwhile must not keep it for ever. Then it hands over the next delivery.
  ///
  /// Each delivery is kept until the next one has been taken under the lock. So a thread that finds
  /// the list of subscribers unshared, and changes it in place, holds the lock after this thread has
  /// released it: the last read of the list happens before the change.
  @inlinable package borrowing func drain(
    from delivery: consuming Delivery<Value.Event>, handOver: (Delivery<Value.Event>) -> Void
  ) {
    for _ in 0...delivery.pendingCount + 10_000 {
      delivery.perform()
      let next = withLock { $0.deliveries.takeNext() }
      withExtendedLifetime(delivery) {}
      guard let next else { return }
      delivery = next
    }
    handOver(delivery)
  }
}

/// A shell whose deliveries a task of the library continues, when a thread has performed its part.
package protocol DeliveryDrainer: AnyObject, Sendable {
  associatedtype Event: Sendable
  /// Performs deliveries, and hands over the rest.
  func drain(from delivery: consuming Delivery<Event>)
  /// The executor of the task that continues; `nil` for that of the process.
  var drainExecutor: (any TaskExecutor)? { get }
}

extension DeliveryDrainer {
  package var drainExecutor: (any TaskExecutor)? { nil }

  /// Continues to drain in a task of its own.
  package func handOver(_ delivery: Delivery<Event>) {
    Task.detached(executorPreference: drainExecutor) { self.drain(from: delivery) }
  }
}
