public import FoundationEssentials
import ReactiveStreams
import Synchronization

/// Tells those who listen what happens in a client; while nobody does, an event costs one look at a
/// number.
final class EventMeter: Sendable {
  private let broadcast = Broadcast<OperationClientEvent>()
  private let listenerCount = Atomic(0)

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

/// Tells of one run of a store, if anybody listens.
@usableFromInline struct RunReport: Sendable {
  let events: EventMeter
  let path: OperationPath
  let kind: OperationKind
  @usableFromInline let run: OperationClientEvent.Run
  let clock: any OperationClock
  /// When the run was started; `nil` if nobody listened then.
  @usableFromInline let began: Date?

  @usableFromInline func send(_ occurrence: @autoclosure () -> OperationClientEvent.Occurrence) {
    guard events.isHeard else { return }
    events.send(
      OperationClientEvent(date: clock.now(), path: path, kind: kind, occurrence: occurrence()))
  }

  @usableFromInline func sendEnd(_ outcome: @autoclosure () -> OperationClientEvent.Outcome) {
    send(.runEnded(run, outcome(), duration: began.map { clock.now().duration(since: $0) }))
  }
}

extension OperationStore {
  /// A report of a run that begins now.
  @usableFromInline func report(of core: Machine.Core, in context: OperationContext) -> RunReport {
    let isHeard = hub.events.isHeard
    let clock: any OperationClock = isHeard ? context.operationClock : SystemClock()
    return RunReport(
      events: hub.events, path: path, kind: State.kind,
      run: .init(id: core.id, cause: context.runIdentity?.cause ?? .fetch),
      clock: clock, began: isHeard ? clock.now() : nil)
  }
}
