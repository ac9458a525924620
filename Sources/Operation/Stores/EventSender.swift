import ReactiveStreams
import Synchronization

/// Sends the events of a client to their subscribers, and to the reader of its changes.
///
/// Every run checks whether there are any, so their number is an atomic, and an event that nothing
/// receives costs one load.
final class EventSender: Sendable {
  let changes = ChangeFeed()
  private let broadcast = Broadcast<OperationClientEvent>()
  /// The number of subscribers, and ``reader`` if there is a reader.
  private let observers = Atomic(0)
  /// More than there are subscribers.
  private static let reader = 1 << 32

  var isObserved: Bool { observers.load(ordering: .relaxed) > 0 }
  /// Whether the changes have a reader.
  var hasReader: Bool { observers.load(ordering: .relaxed) >= Self.reader }

  /// Counts an event and does no more, if only a reader of the changes is there, and has as many events as
  /// it keeps. Returns whether it did.
  func countOnly(_ occurrence: OperationClientEvent.Occurrence) -> Bool {
    guard changes.isFull, observers.load(ordering: .relaxed) == Self.reader else { return false }
    changes.count(occurrence)
    return true
  }

  func send(_ event: OperationClientEvent) {
    let observers = observers.load(ordering: .relaxed)
    if observers >= Self.reader { changes.append(event) }
    if observers % Self.reader > 0 { broadcast.send(event) }
  }

  func subscribe(
    _ handler: @escaping @Sendable (OperationClientEvent) -> Void
  ) -> OperationSubscription {
    observers.wrappingAdd(1, ordering: .relaxed)
    let subscription = broadcast.subscribe(handler)
    return OperationSubscription { [self] in
      subscription.cancel()
      observers.wrappingSubtract(1, ordering: .relaxed)
    }
  }

  /// Returns a source of the events that are sent to the subscribers, until another broadcast ends.
  func source(until end: Broadcast<Never>) -> StreamSource<OperationClientEvent> {
    StreamSource { [self] handler in subscribe { handler(.element($0)) } }
      .ending(with: end, after: broadcast.afterDeliveries)
  }

  /// Begins to collect changes for a reader, until the subscription ends, or there is another reader.
  func collectChanges() -> (reader: OperationTaskID, subscription: OperationSubscription) {
    let reader = changes.begin()
    observers.wrappingAdd(Self.reader, ordering: .relaxed)
    let subscription = OperationSubscription { [self] in
      observers.wrappingSubtract(Self.reader, ordering: .relaxed)
      changes.end(reader)
    }
    return (reader, subscription)
  }
}

extension OperationStore {
  /// Sends an event of a run, if there is a subscriber.
  func send(
    _ occurrence: @autoclosure () -> OperationClientEvent.Occurrence,
    in context: @autoclosure () -> OperationContext
  ) {
    guard hub.events.isObserved else { return }
    let occurrence = occurrence()
    // The run has its turn, and the state has not changed.
    if case .attemptBegan = occurrence, hub.events.hasReader { hub.events.changes.append(self) }
    if hub.events.countOnly(occurrence) { return }
    hub.events.send(
      OperationClientEvent(
        date: context().now(), path: path, kind: State.kind, occurrence: occurrence))
  }

  /// Sends the event of the end of a run, if there is a subscriber.
  ///
  /// - Parameter began: When the run began; `nil` if there was no subscriber then.
  func sendEnd(
    _ outcome: @autoclosure () -> OperationClientEvent.Outcome,
    in context: @autoclosure () -> OperationContext, began: Duration?
  ) {
    guard hub.events.isObserved else { return }
    let (context, outcome) = (context(), outcome())
    // An event that is only counted needs no duration.
    if hub.events.countOnly(.runEnded(context.eventRun, outcome, duration: nil)) { return }
    let duration = began.map { context.operationClock.elapsed().limited - $0.limited }
    send(.runEnded(context.eventRun, outcome, duration: duration), in: context)
  }
}

extension OperationContext {
  /// The run that this context belongs to.
  var eventRun: OperationClientEvent.Run {
    OperationClientEvent.Run(id: runNode?.id ?? .next(), cause: runNode?.cause ?? .fetch)
  }
}
