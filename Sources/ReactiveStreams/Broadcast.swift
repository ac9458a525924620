/// Sends elements to all subscribers, in the order in which they are sent.
///
/// ```swift
/// let logins = Broadcast<User.ID>()
/// let subscription = logins.subscribe { id in print("welcome, \(id)") }
/// logins.send(7)
/// ```
///
/// Handlers are called in the order in which they subscribed, one element at a time and with no
/// lock held, on a thread that sends, or in a task that continues its deliveries. A handler may send,
/// subscribe and cancel. The streams of a broadcast end when it is deallocated.
public final class Broadcast<Element: Sendable>: Sendable {
  private let shell = DeliveryShell(BroadcastMachine<Element>())

  /// Creates a broadcast without subscribers.
  public init() {}

  /// Sends an element to all present subscribers.
  ///
  /// Returns when all handlers have been called. If a delivery is in progress, the element is
  /// delivered right after it, on the thread that delivers.
  public func send(_ element: Element) { shell.commit { $0.send(.element(element)) } }

  /// Ends the streams of this broadcast after the elements that were sent before.
  ///
  /// Elements that are sent later are dropped.
  public func finish() { shell.commit { $0.send(.finished) } }

  /// Calls `handler` with every element that is sent from now on.
  ///
  /// - Parameter handler: Called in the order of the elements, by one thread at a time, on a thread
  ///   that sends, with no lock held.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(_ handler: @escaping @Sendable (Element) -> Void) -> OperationSubscription {
    subscribeToSignals { signal in if case .element(let element, _) = signal { handler(element) } }
  }

  /// The number of subscribed handlers and stream iterators.
  public var subscriberCount: Int { shell.subscriberCount }

  /// A stream of every element that is sent after its iterator is made; nothing is dropped.
  public var values: EventStream<Element> { values(buffering: .all) }

  /// Returns a stream of the elements that are sent after its iterator is made.
  ///
  /// - Parameter buffering: The policy for elements that arrive faster than the reader takes them.
  public func values(buffering: StreamBuffering) -> EventStream<Element> {
    EventStream(
      StreamSource { [weak self] handler in
        if let self { return subscribeToSignals(handler) }
        handler(.finished)
        return .empty
      }, buffering: buffering)
  }

  /// Calls an action when what is queued has been delivered, and at once if nothing is.
  package func afterDeliveries(_ action: @escaping @Sendable () -> Void) {
    shell.afterDeliveries(passing: { _ in .finished }, action)
  }

  /// Calls `handler` with every signal that is sent from now on, or at once with the end.
  package func subscribeToSignals(
    _ handler: @escaping @Sendable (StreamSignal<Element>) -> Void
  ) -> OperationSubscription { shell.subscribe(handler) { $0.subscribe($1) } }

  deinit { finish() }
}

/// The machine of a broadcast and of `merge`: the sides that have not ended.
///
/// Elements are delivered in the order in which they arrive, and none of a side that has ended. The end is
/// delivered when all sides have ended. A broadcast has one side.
struct BroadcastMachine<Element: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  /// A bit for each side that has not ended.
  private var openSides: UInt8

  init(sideCount: Int = 1) { openSides = 1 << sideCount - 1 }

  mutating func send(_ signal: StreamSignal<Element>, from side: Int = 0) {
    guard openSides & 1 << side != 0 else { return }
    if case .finished = signal {
      openSides &= ~(1 << side)
      if openSides != 0 { return }
    }
    deliveries.append(signal)
  }

  mutating func subscribe(_ subscriber: Subscriber<StreamSignal<Element>>) -> UInt64 {
    deliveries.subscribe(subscriber, initially: openSides == 0 ? .finished : nil)
  }
}
