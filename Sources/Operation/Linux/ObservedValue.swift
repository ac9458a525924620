import ReactiveStreams

/// A value with subscribers, and a feed that reports its changes while there are subscribers.
///
/// The feed is started for the first subscriber and ended after the last one, by one thread at a
/// time and with no lock held. A subscription retains the value.
final class ObservedValue<Value: Sendable & Equatable>: Sendable {
  /// Starts to report values to `notify`, until the returned subscription is cancelled.
  typealias Feed =
    @Sendable (_ notify: @escaping @Sendable (Value) -> Void) -> OperationSubscription

  /// What `notify` retains. It must not retain this object, which retains the feed.
  private let shell: DeliveryShell<ObservedValueMachine<Value>>
  private let measure: @Sendable () -> Value
  private let feed: Feed
  /// The feed that runs. One thread at a time starts and ends it, in the deliveries of ``turns``.
  private let running = LastElement<OperationSubscription>()
  private let turns = Broadcast<Never>()

  /// Creates a value that keeps what was set or reported last, with and without subscribers.
  ///
  /// - Parameter notifiesRepeats: Whether subscribers are notified of a value that equals the one
  ///   before.
  init(_ value: Value, notifiesRepeats: Bool = false, feed: @escaping Feed = { _ in .empty }) {
    shell = DeliveryShell(ObservedValueMachine(value, notifiesRepeats: notifiesRepeats))
    measure = { value }
    self.feed = feed
  }

  /// Creates a value that each read measures until the feed reports one, and again after the feed
  /// has ended.
  ///
  /// The feed should report the present value before it returns.
  init(measure: @escaping @Sendable () -> Value, feed: @escaping Feed) {
    shell = DeliveryShell(ObservedValueMachine())
    self.measure = measure
    self.feed = feed
  }

  var value: Value {
    if let value = shell.withLock({ $0.value }) { return value }
    let measured = measure()
    return shell.withLock { $0.read(measured) }
  }

  var subscriberCount: Int { shell.subscriberCount }

  func set(_ value: Value) { shell.commit { $0.set(value) } }

  /// Calls `handler` with each later change.
  func subscribe(_ handler: @escaping @Sendable (Value) -> Void) -> OperationSubscription {
    defer { startOrEndFeed() }
    return .combined(
      shell.subscribe(handler), OperationSubscription { [self] in startOrEndFeed() })
  }

  private func startOrEndFeed() {
    turns.afterDeliveries { [self] in
      if let subscription = running.value {
        guard shell.withLock({ $0.endRun() }) else { return }
        subscription.cancel()
        running.set(nil)
        shell.withLock { $0.forgetMeasured() }
      } else if let run = shell.withLock({ $0.runToStart }) {
        running.set(feed { [shell] value in shell.commit { $0.set(value, fromRun: run) } })
      }
    }
  }
}

/// The machine of an observed value: its subscribers, the value, and the runs of its feed.
struct ObservedValueMachine<Value: Sendable & Equatable>: DeliveryMachine {
  var deliveries = DeliveryQueue<Value>()
  /// The value, or `nil` while readers have to measure it.
  private(set) var value: Value?
  private let isMeasured: Bool
  private let notifiesRepeats: Bool
  /// What readers measured between the first subscription and the first report. Subscribers may have read
  /// any of these values.
  private var measured: [Value] = []
  /// The number of runs that have ended. What an ended run reports is ignored.
  private var run: UInt64 = 0

  /// - Parameter value: The first value; `nil` for a value that is measured while the feed is off.
  init(_ value: Value? = nil, notifiesRepeats: Bool = false) {
    self.value = value
    isMeasured = value == nil
    self.notifiesRepeats = notifiesRepeats
  }

  /// Replaces the value, and notifies the subscribers if one of them may have read another one.
  mutating func set(_ new: Value) {
    let old = value.map { [$0] } ?? measured
    value = new
    measured = []
    if notifiesRepeats || old.contains(where: { $0 != new }) { deliveries.append(new) }
  }

  mutating func set(_ new: Value, fromRun run: UInt64) { if run == self.run { set(new) } }

  /// Returns what a reader that has measured the value returns: the value, if there is one by now.
  mutating func read(_ new: Value) -> Value {
    if let value { return value }
    if deliveries.subscriberCount > 0, !measured.contains(new) { measured.append(new) }
    return new
  }

  /// The number of the run that begins, if there are subscribers.
  var runToStart: UInt64? { deliveries.subscriberCount > 0 ? run : nil }

  /// Ends the run, unless there are subscribers.
  mutating func endRun() -> Bool {
    if deliveries.subscriberCount > 0 { return false }
    run += 1
    if isMeasured { value = nil }
    return true
  }

  /// The feed has ended.
  mutating func forgetMeasured() { if deliveries.subscriberCount == 0 { measured = [] } }
}
