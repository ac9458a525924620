public import Synchronization

/// A machine that has a delivery queue among its parts.
@usableFromInline package protocol DeliveryMachine: Sendable {
  associatedtype Event: Sendable
  var deliveries: DeliveryQueue<Event> { get set }
}

// Without the annotation of `drain` these benchmarks are over their limits: write per subscriber, subscribe
// and cancel, state stream, write per @SharedQuery.
extension Mutex where Value: DeliveryMachine {
  /// Performs a transition under the lock, and returns with its output the first delivery of the thread,
  /// if it has to drain the queue.
  package borrowing func perform<Output: Sendable>(
    _ transition: (inout Value) -> Output
  ) -> (output: Output, delivery: Delivery<Value.Event>) {
    withLock { machine in (transition(&machine), machine.deliveries.beginDraining()) }
  }

  /// Performs deliveries until the queue is empty, beginning with one that was taken from it.
  ///
  /// A thread performs those that were queued when it began, and a bounded number of later ones: what
  /// other threads append meanwhile must not keep it for ever. Then it hands over the next delivery.
  ///
  /// The list of subscribers is given back under the lock. So a thread that finds it unshared, and changes
  /// it in place, holds the lock after this thread: the last read of the list happens before the change.
  ///
  /// - Parameter delivery: The first delivery, and at the end the one to hand over. It has no event when
  ///   the queue is empty.
  @inlinable package borrowing func drain(_ delivery: inout Delivery<Value.Event>) {
    var remaining = delivery.pendingCount + 10_000
    while delivery.hasEvent, remaining >= 0 {
      delivery.perform()
      let replaced = withLock { $0.deliveries.takeNext(into: &delivery) }
      withExtendedLifetime(replaced) {}
      remaining -= 1
    }
  }
}

/// A shell whose deliveries a task of the library continues, when a thread has performed its part.
package protocol DeliveryDrainer: AnyObject, Sendable {
  associatedtype Event: Sendable
  /// Performs deliveries, as ``Mutex/drain(_:)`` does.
  func drain(_ delivery: inout Delivery<Event>)
  /// The executor of the task that continues; `nil` for that of the process.
  var drainExecutor: (any TaskExecutor)? { get }
}

extension DeliveryDrainer {
  package var drainExecutor: (any TaskExecutor)? { nil }

  /// Performs deliveries, and hands over what is left after a bounded number.
  package func deliver(_ first: Delivery<Event>) {
    var delivery = first
    CurrentWork.without { drain(&delivery) }
    if delivery.hasEvent { handOver(delivery) }
  }

  /// Continues to deliver in a task of its own.
  package func handOver(_ delivery: Delivery<Event>) {
    Task.detached(executorPreference: drainExecutor) { self.deliver(delivery) }
  }
}
