import ReactiveStreams
import Synchronization

/// The smallest thing that has a state stream: a value, those who follow it, and an end.
final class StateCell<Element: Sendable>: Sendable {
  private struct Machine: DeliveryMachine {
    var deliveries = DeliveryQueue<StreamSignal<Element>>()
    var value: Element?
    var subscriptionCount = 0

    mutating func subscribe(_ subscriber: Subscriber<StreamSignal<Element>>) -> UInt64 {
      subscriptionCount += 1
      return deliveries.subscribe(subscriber, initially: value.map { .element($0) })
    }

    /// Returns the value that gave way, so that it is released without the lock.
    mutating func set(_ element: Element) -> Element? {
      let old = value.take()
      value = element
      deliveries.append(.element(element))
      return old
    }
  }

  private let machine: Mutex<Machine>

  init(_ value: Element? = nil) {
    machine = Mutex(Machine(value: value))
  }

  var subscriberCount: Int { machine.withLock { $0.deliveries.subscriberCount } }
  /// How often somebody subscribed.
  var subscriptionCount: Int { machine.withLock { $0.subscriptionCount } }

  func set(_ element: Element) {
    _ = machine.commit { $0.set(element) }
  }

  func finish() {
    machine.commit { $0.deliveries.append(.finished) }
  }

  var source: StreamSource<Element> {
    StreamSource { handler in
      let id = self.machine.commit { $0.subscribe(Subscriber(handler)) }
      return OperationSubscription { _ = self.machine.withLock { $0.deliveries.unsubscribe(id) } }
    }
  }

  var stream: StateStream<Element> { StateStream(source) }
}

extension StreamSignal {
  /// The element, or nil for the end.
  var element: Element? {
    if case .element(let element) = self { element } else { nil }
  }
}
