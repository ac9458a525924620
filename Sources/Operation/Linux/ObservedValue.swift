import ReactiveStreams
import Synchronization

/// A value that others watch, and that something feeds while they do.
///
/// The lock guards the machine. Handlers are called without it, and so is the feed: it is started
/// for the first subscriber and ended after the last one, by one thread at a time. A subscription
/// keeps what it listens to alive.
final class ObservedValue<Value: Sendable & Equatable>: Sendable {
  /// Begins to tell of values, until the subscription that it gives is cancelled.
  typealias Feed = @Sendable (_ tell: @escaping @Sendable (Value) -> Void) -> OperationSubscription

  /// What a feed tells, and may hold on to: a part of its own, so that it does not hold the feed.
  private final class Told: Sendable {
    let machine: Mutex<ObservedValueMachine<Value>>

    init(_ machine: ObservedValueMachine<Value>) { self.machine = Mutex(machine) }
  }

  private let told: Told
  private let measure: (@Sendable () -> Value)?
  private let feed: Feed

  /// - Parameters:
  ///   - value: What the value is until something else is known.
  ///   - tellsRepeats: Whether a value that equals the one before is told, too.
  ///   - measure: Finds the value while nothing feeds it; without it, it is the last one.
  init(
    _ value: Value, tellsRepeats: Bool = false, measure: (@Sendable () -> Value)? = nil,
    feed: @escaping Feed = { _ in .empty }
  ) {
    told = Told(ObservedValueMachine(value: value, tellsRepeats: tellsRepeats))
    self.measure = measure
    self.feed = feed
  }

  var value: Value {
    let (value, isFed) = told.machine.withLock { ($0.value, $0.isFed) }
    guard let measure, !isFed else { return value }
    let measured = measure()
    told.machine.withLock { $0.saw(measured) }
    return measured
  }

  var subscriberCount: Int { told.machine.withLock { $0.deliveries.subscriberCount } }

  func set(_ value: Value) {
    told.machine.commit { $0.set(value) }
  }

  /// Calls `handler` with every value that is told from now on.
  func subscribe(_ handler: @escaping @Sendable (Value) -> Void) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let id = told.machine.withLock { $0.deliveries.subscribe(subscriber) }
    startOrEndFeed()
    return OperationSubscription { [self] in
      let subscriber = told.machine.withLock { $0.deliveries.unsubscribe(id) }
      // Released without the lock: the optimiser moves the release of an unused result under it.
      withExtendedLifetime(subscriber) {}
      startOrEndFeed()
    }
  }

  private func startOrEndFeed() {
    while let step = told.machine.withLock({ $0.nextStep() }) {
      switch step {
      case .start(let run):
        if let value = measure?() { told.machine.commit { $0.found(value) } }
        let subscription = feed { [told] value in
          told.machine.commit { $0.hear(value, from: run) }
        }
        told.machine.withLock { $0.started(subscription) }
      case .end(let subscription):
        subscription.cancel()
        told.machine.withLock { $0.ended() }
      }
    }
  }
}

/// Who listens to a value, what it is, and whether its feed runs.
struct ObservedValueMachine<Value: Sendable & Equatable>: DeliveryMachine {
  private enum Feed: Sendable {
    /// Nothing feeds the value, and nobody starts to.
    case off
    /// A thread is starting the feed, or ending it, and looks again when it has.
    case changing
    /// The feed runs until this is cancelled.
    case on(OperationSubscription)
  }

  /// What the thread that was given it does next.
  enum Step: Sendable {
    case start(run: UInt64)
    case end(OperationSubscription)
  }

  var deliveries = DeliveryQueue<Value>()
  private(set) var value: Value
  private let tellsRepeats: Bool
  private var feed = Feed.off
  /// What was measured while a thread starts the feed, or ends it.
  private var seen: [Value] = []
  /// Counts the runs of the feed, so that what an old one says late is not heard.
  private var run: UInt64 = 0

  init(value: Value, tellsRepeats: Bool = false) {
    self.value = value
    self.tellsRepeats = tellsRepeats
  }

  var isFed: Bool {
    if case .on = feed { true } else { false }
  }

  mutating func set(_ new: Value) {
    guard tellsRepeats || new != value else { return }
    value = new
    deliveries.append(new)
  }

  mutating func hear(_ new: Value, from run: UInt64) {
    if run == self.run { set(new) }
  }

  /// Somebody has measured the value; subscribers do that, too, while the feed is started.
  mutating func saw(_ measured: Value) {
    guard case .changing = feed, deliveries.subscriberCount > 0, !seen.contains(measured) else {
      return
    }
    seen.append(measured)
  }

  /// Takes what the value is now, and tells it to those who may have seen another one.
  mutating func found(_ new: Value) {
    value = new
    if seen.contains(where: { $0 != new }) { deliveries.append(new) }
    seen = []
  }

  mutating func nextStep() -> Step? {
    switch feed {
    case .off where deliveries.subscriberCount > 0:
      feed = .changing
      run += 1
      return .start(run: run)
    case .on(let subscription) where deliveries.subscriberCount == 0:
      feed = .changing
      run += 1
      return .end(subscription)
    case .off, .changing, .on: return nil
    }
  }

  mutating func started(_ subscription: OperationSubscription) {
    feed = .on(subscription)
    seen = []
  }

  mutating func ended() {
    feed = .off
    if deliveries.subscriberCount == 0 { seen = [] }
  }
}
