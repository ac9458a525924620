import Observation
import ReactiveStreams
import Synchronization

/// What a client counts a store as.
enum ActivityPhase: Sendable {
  case idle, running, paused, failed
}

/// The part of a store in the client's counts of running, paused and failed stores.
struct CountedActivity: Sendable {
  typealias Change = (from: ActivityPhase, to: ActivityPhase)

  private var phase = ActivityPhase.idle

  /// Returns the change of the phase after a transition to `state`, if there is one.
  ///
  /// - Parameter isRetained: Whether the client retains the store. Otherwise it counts as idle.
  mutating func change(to state: some OperationState, isRetained: Bool) -> Change? {
    let new: ActivityPhase =
      if !isRetained {
        .idle
      } else if state.isLoading {
        state.isPaused ? .paused : .running
      } else {
        state.error == nil ? .idle : .failed
      }
    guard new != phase else { return nil }
    return (exchange(&phase, with: new), new)
  }
}

/// Counts the stores of a client by their phases, and notifies subscribers and observers.
///
/// The registrar is notified without the lock, and only if the activity was ever read.
final class ActivityMeter: Sendable, Observable {
  private let shell = DeliveryShell(ActivityMachine())
  private let registrar = ObservationRegistrar()
  private let isRead = Atomic(false)

  var activity: OperationActivity {
    isRead.store(true, ordering: .sequentiallyConsistent)
    registrar.access(self, keyPath: \.activity)
    return shell.withLock { $0.activity }
  }

  /// The activities, beginning with the present one, until a broadcast ends.
  func source(until end: Broadcast<Never>) -> StreamSource<OperationActivity> {
    shell.source(until: end) { $0.activity }
  }

  func move(_ kind: OperationKind, from old: ActivityPhase, to new: ActivityPhase) {
    shell.commit { $0.move(kind, from: old, to: new) }
    guard isRead.load(ordering: .sequentiallyConsistent) else { return }
    CurrentWork.without { registrar.withMutation(of: self, keyPath: \.activity) {} }
  }
}

/// The counts of a client, and their subscribers.
///
/// Two changes of a store may arrive in the wrong order, so a sum may be below zero for a moment. The
/// counts of ``activity`` never are.
struct ActivityMachine: DeliveryMachine {
  var deliveries = DeliveryQueue<OperationActivity>()
  private var sums = OperationActivity()

  var activity: OperationActivity {
    [OperationKind.query, .pages, .mutation].reduce(into: sums) { activity, kind in
      let counts = activity[kind]
      activity[kind] = OperationActivity.Counts(
        running: max(counts.running, 0), paused: max(counts.paused, 0),
        failed: max(counts.failed, 0))
    }
  }

  mutating func move(_ kind: OperationKind, from old: ActivityPhase, to new: ActivityPhase) {
    sums[kind].add(-1, to: old)
    sums[kind].add(1, to: new)
    guard deliveries.subscriberCount > 0 else { return }
    let activity = activity
    deliveries.append(activity)
  }
}

extension OperationActivity.Counts {
  fileprivate mutating func add(_ change: Int, to phase: ActivityPhase) {
    switch phase {
    case .idle: break
    case .running: running += change
    case .paused: paused += change
    case .failed: failed += change
    }
  }
}
