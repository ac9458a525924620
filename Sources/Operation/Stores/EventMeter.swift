import FoundationEssentials
import ReactiveStreams
import Synchronization

/// Tells those who listen what happens in a client; while nobody does, an event costs one look at a
/// number.
final class EventMeter: Sendable {
  private let broadcast = Broadcast<OperationClientEvent>()
  let listenerCount = Atomic(0)

  var isHeard: Bool { listenerCount.load(ordering: .relaxed) > 0 }

  func send(_ event: OperationClientEvent) { broadcast.send(event) }

  func subscribe(
    _ handler: @escaping @Sendable (OperationClientEvent) -> Void
  ) -> OperationSubscription {
    listenerCount.wrappingAdd(1, ordering: .relaxed)
    let subscription = broadcast.subscribe(handler)
    return OperationSubscription { [self] in
      subscription.cancel()
      listenerCount.wrappingSubtract(1, ordering: .relaxed)
    }
  }
}

extension OperationStore {
  /// Tells of a run, if anybody listens.
  func tell(
    _ occurrence: @autoclosure () -> OperationClientEvent.Occurrence, in context: OperationContext
  ) {
    if hub.events.isHeard { send(occurrence(), in: context) }
  }

  func send(
    _ occurrence: OperationClientEvent.Occurrence, in context: OperationContext
  ) {
    hub.events.send(
      OperationClientEvent(
        date: context.now(), path: path, kind: State.kind, occurrence: occurrence))
  }

  /// Tells of the end of a run; its duration is known if somebody listened when it began.
  func tellEnd(
    _ outcome: @autoclosure () -> OperationClientEvent.Outcome, in context: OperationContext,
    began: Date?
  ) {
    tell(
      .runEnded(
        context.eventRun, outcome(), duration: began.map { context.now().duration(since: $0) }),
      in: context)
  }
}

extension OperationContext {
  /// The run that this context belongs to, as the events of a client tell of it.
  var eventRun: OperationClientEvent.Run {
    OperationClientEvent.Run(
      id: runNode?.id ?? .next(), cause: runNode?.cause ?? .fetch)
  }
}
