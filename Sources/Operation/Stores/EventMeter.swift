import FoundationEssentials
import ReactiveStreams
import Synchronization

/// Sends the events of a client to their subscribers.
///
/// Every run checks whether there are subscribers, so their number is an atomic, and an event without
/// a subscriber costs one load.
final class EventMeter: Sendable {
  private let broadcast = Broadcast<OperationClientEvent>()
  private let subscriberCount = Atomic(0)
  /// Counts as a subscriber while it has a reader.
  let changes = ChangeFeed()

  var isObserved: Bool { subscriberCount.load(ordering: .relaxed) > 0 }

  func send(_ event: OperationClientEvent) {
    if changes.hasReader { changes.append(event) }
    broadcast.send(event)
  }

  /// Notes that a store has changed. Called if there is a subscriber.
  func noteChange(of store: some ErasedOperationStore) {
    if changes.hasReader { changes.append(store) }
  }

  /// Begins to collect changes and events, until the subscription ends. One reader at a time.
  func collectChanges() -> OperationSubscription {
    changes.begin()
    subscriberCount.wrappingAdd(1, ordering: .relaxed)
    return OperationSubscription { [self] in
      subscriberCount.wrappingSubtract(1, ordering: .relaxed)
      changes.end()
    }
  }

  func subscribe(
    _ handler: @escaping @Sendable (OperationClientEvent) -> Void
  ) -> OperationSubscription {
    subscriberCount.wrappingAdd(1, ordering: .relaxed)
    let subscription = broadcast.subscribe(handler)
    return OperationSubscription { [self] in
      subscription.cancel()
      subscriberCount.wrappingSubtract(1, ordering: .relaxed)
    }
  }
}

extension OperationStore {
  /// Sends an event of a run, if there is a subscriber.
  func send(
    _ occurrence: @autoclosure () -> OperationClientEvent.Occurrence, in context: OperationContext
  ) {
    guard hub.events.isObserved else { return }
    hub.events.send(
      OperationClientEvent(
        date: context.now(), path: path, kind: State.kind, occurrence: occurrence()))
  }

  /// Sends the event of the end of a run, if there is a subscriber.
  ///
  /// - Parameter began: When the run began; `nil` if there was no subscriber then.
  func sendEnd(
    _ outcome: @autoclosure () -> OperationClientEvent.Outcome, in context: OperationContext,
    began: Date?
  ) {
    send(
      .runEnded(
        context.eventRun, outcome(), duration: began.map { context.now().duration(since: $0) }),
      in: context)
  }
}

extension OperationContext {
  /// The run that this context belongs to.
  var eventRun: OperationClientEvent.Run {
    OperationClientEvent.Run(id: runNode?.id ?? .next(), cause: runNode?.cause ?? .fetch)
  }
}
