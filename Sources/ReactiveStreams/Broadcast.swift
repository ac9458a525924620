import Synchronization

/// Tells everyone who subscribed what is sent, in the order in which it is sent.
///
/// ```swift
/// let logins = Broadcast<User.ID>()
/// let subscription = logins.subscribe { id in print("welcome, \(id)") }
/// logins.send(7)
/// ```
///
/// Handlers are called in the order in which they subscribed, one element at a time and with no
/// lock held, by a thread that sends. A handler may send, subscribe and cancel. When the broadcast
/// goes away, the streams of it end.
public final class Broadcast<Element: Sendable>: Sendable {
  /// The lock guards who listens, what is still to be told, and whether it is all over.
  private let machine = Mutex(BroadcastMachine<Element>())

  /// Creates a broadcast that nobody listens to yet.
  public init() {}

  /// Sends an element to everyone who has subscribed until now.
  ///
  /// Returns when all have been called, unless a delivery is under way: then this element comes right
  /// behind it.
  public func send(_ element: Element) {
    machine.commit { $0.send(.element(element)) }
  }

  /// Ends the streams of this broadcast, when they have read what was sent before.
  public func finish() {
    machine.commit { $0.send(.finished) }
  }

  /// Calls `handler` with every element that is sent from now on.
  public func subscribe(
    _ handler: @escaping @Sendable (Element) -> Void
  ) -> OperationSubscription {
    subscribe(to: { signal in
      if case .element(let element) = signal { handler(element) }
    })
  }

  /// How many handlers and stream iterators listen.
  public var subscriberCount: Int {
    machine.withLock { $0.deliveries.subscriberCount }
  }

  /// Every element that is sent after an iterator of the stream is made; nothing is dropped.
  public var values: EventStream<Element> {
    values(buffering: .all)
  }

  /// The elements that are sent after an iterator of the stream is made.
  public func values(buffering: StreamBuffering) -> EventStream<Element> {
    EventStream(
      StreamSource { [weak self] handler in
        guard let self else {
          handler(.finished)
          return .empty
        }
        return self.subscribe(to: handler)
      }, buffering: buffering)
  }

  private func subscribe(
    to handler: @escaping @Sendable (StreamSignal<Element>) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let id = machine.commit { $0.subscribe(subscriber) }
    return OperationSubscription { [weak self] in
      let subscriber = self?.machine.withLock { $0.deliveries.unsubscribe(id) }
      // Released without the lock: the optimiser moves the release of an unused result under it.
      withExtendedLifetime(subscriber) {}
    }
  }

  deinit {
    finish()
  }
}

/// The delivery queue, and whether an end has been sent: after it nothing more is.
struct BroadcastMachine<Element: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private var isFinished = false

  mutating func send(_ signal: StreamSignal<Element>) {
    guard !isFinished else { return }
    if case .finished = signal { isFinished = true }
    deliveries.append(signal)
  }

  mutating func subscribe(_ subscriber: Subscriber<StreamSignal<Element>>) -> UInt64 {
    deliveries.subscribe(subscriber, initially: isFinished ? .finished : nil)
  }
}
