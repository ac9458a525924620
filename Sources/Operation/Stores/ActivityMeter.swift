import Observation
import ReactiveStreams
import Synchronization

/// Where a store is, as far as its client counts it.
enum ActivityPhase: Sendable {
  case idle
  case running
  case paused
  case failed
}

/// Counts what the stores of a client are at.
///
/// The lock guards the counts and who listens. The changes of a store may come out of their order,
/// which does not matter to sums; what is shown is never below zero. The registrar is told without
/// the lock, and only if anybody has read.
final class ActivityMeter: Sendable, Observable {
  private let machine = Mutex(ActivityMachine())
  private let registrar = ObservationRegistrar()
  private let isRead = Atomic(false)

  var activity: OperationActivity {
    isRead.store(true, ordering: .sequentiallyConsistent)
    registrar.access(self, keyPath: \.activity)
    return machine.withLock { $0.shown }
  }

  var source: StreamSource<OperationActivity> {
    StreamSource { [self] handler in
      let subscriber = Subscriber<OperationActivity> { handler(.element($0)) }
      let id = machine.commit { machine in
        let shown = machine.shown
        return machine.deliveries.subscribe(subscriber, initially: shown)
      }
      return OperationSubscription { [self] in
        let removed = machine.withLock { $0.deliveries.unsubscribe(id) }
        withExtendedLifetime(removed) {}
      }
    }
  }

  func move(_ kind: OperationKind, from old: ActivityPhase, to new: ActivityPhase) {
    machine.commit { $0.move(kind, from: old, to: new) }
    guard isRead.load(ordering: .sequentiallyConsistent) else { return }
    registrar.withMutation(of: self, keyPath: \.activity) {}
  }
}

/// The counts, and who is told of them.
struct ActivityMachine: DeliveryMachine {
  var deliveries = DeliveryQueue<OperationActivity>()
  private var sums = OperationActivity()

  var shown: OperationActivity {
    var shown = sums
    for kind in [OperationKind.query, .pages, .mutation] {
      let counts = sums[kind]
      shown[kind] = OperationActivity.Counts(
        running: max(counts.running, 0), paused: max(counts.paused, 0),
        failed: max(counts.failed, 0))
    }
    return shown
  }

  mutating func move(_ kind: OperationKind, from old: ActivityPhase, to new: ActivityPhase) {
    sums[kind].move(from: old, to: new)
    guard deliveries.subscriberCount > 0 else { return }
    let shown = shown
    deliveries.append(shown)
  }
}

extension OperationActivity.Counts {
  fileprivate mutating func move(from old: ActivityPhase, to new: ActivityPhase) {
    count(old, as: -1)
    count(new, as: 1)
  }

  private mutating func count(_ phase: ActivityPhase, as change: Int) {
    switch phase {
    case .idle: break
    case .running: running += change
    case .paused: paused += change
    case .failed: failed += change
    }
  }
}
