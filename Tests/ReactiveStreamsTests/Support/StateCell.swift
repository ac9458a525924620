import ReactiveStreams

/// A value with a state stream: the smallest source of states.
final class StateCell<Element: Sendable>: Sendable {
  private struct Machine: DeliveryMachine {
    var deliveries = DeliveryQueue<StreamSignal<Element>>()
    var value: Element?
    var subscriptionCount = 0

    mutating func subscribe(_ subscriber: Subscriber<StreamSignal<Element>>) -> UInt64 {
      subscriptionCount += 1
      return deliveries.subscribe(subscriber, initially: value.map { .element($0) })
    }

    /// Returns the replaced value, to be released without the lock.
    mutating func set(_ element: Element) -> Element? {
      let old = value.take()
      value = element
      deliveries.append(.element(element))
      return old
    }
  }

  private let shell: DeliveryShell<Machine>

  init(_ value: Element? = nil) {
    shell = DeliveryShell(Machine(value: value))
  }

  var subscriberCount: Int { shell.subscriberCount }
  /// The number of subscriptions that were ever made.
  var subscriptionCount: Int { shell.withLock { $0.subscriptionCount } }

  func set(_ element: Element) {
    shell.commit { $0.set(element) }
  }

  func finish() {
    shell.commit { $0.deliveries.append(.finished) }
  }

  var source: StreamSource<Element> {
    StreamSource { [shell] handler in shell.subscribe(handler) { $0.subscribe($1) } }
  }

  var stream: StateStream<Element> { StateStream(source) }
}

extension StreamSignal {
  /// The element, or `nil` for the end.
  var element: Element? {
    if case .element(let element, _) = self { element } else { nil }
  }
}
