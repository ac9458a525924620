import Synchronization

/// The shell around a machine that has subscribers.
///
/// The lock guards the machine. Handlers are called, and subscribers are released, without it.
package final class DeliveryShell<Machine: DeliveryMachine>: DeliveryDrainer {
  private let machine: Mutex<Machine>

  package init(_ machine: sending Machine) { self.machine = Mutex(machine) }

  package var subscriberCount: Int { machine.withLock { $0.deliveries.subscriberCount } }

  /// Reads or changes the machine, and delivers nothing.
  package func withLock<Output: Sendable>(_ body: (inout Machine) -> Output) -> Output {
    machine.withLock { body(&$0) }
  }

  /// Performs a transition, and then the deliveries that are queued.
  @discardableResult
  package func commit<Output: Sendable>(_ transition: (inout Machine) -> Output) -> Output {
    let (output, delivery) = machine.perform(transition)
    if delivery.hasEvent { deliver(delivery) }
    return output
  }

  package func drain(_ delivery: inout Delivery<Machine.Event>) { machine.drain(&delivery) }

  /// Calls an action when what is queued has been delivered, and at once if nothing is.
  ///
  /// - Parameter event: Any event. Nothing receives it.
  package func afterDeliveries(
    passing event: (Machine) -> Machine.Event, _ action: @escaping @Sendable () -> Void
  ) { commit { $0.deliveries.notify(Subscriber { _ in action() }, of: event($0)) } }

  /// Returns a source that sends the present event and each later one, and ends when a broadcast does.
  package func source(
    until end: Broadcast<Never>, present: @escaping @Sendable (Machine) -> Machine.Event
  ) -> StreamSource<Machine.Event> {
    let events = StreamSource { [self] handler in
      subscribe({ handler(.element($0)) }) { $0.deliveries.subscribe($1, initially: present($0)) }
    }
    return events.ending(with: end) { [self] in afterDeliveries(passing: present, $0) }
  }

  /// Adds a subscriber in a transition that returns its identifier.
  package func subscribe(
    _ handler: @escaping @Sendable (Machine.Event) -> Void,
    by transition: (inout Machine, Subscriber<Machine.Event>) -> UInt64 = {
      $0.deliveries.subscribe($1)
    }
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let id = commit { transition(&$0, subscriber) }
    return OperationSubscription { [self] in
      withExtendedLifetime(withLock { $0.deliveries.unsubscribe(id) }) {}
    }
  }
}
