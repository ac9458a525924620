import FoundationEssentials
import Dispatch
import ReactiveStreams

/// The time in which one thread has exclusive access to a store.
///
/// The owner changes the state in place, and reads its changes. Other threads read the snapshot of
/// the state before, and their writes wait at gates. What the owner changes is notified once, at the
/// end.
struct ExclusiveAccess<State: OperationState>: Sendable {
  typealias Event = OperationEvent<State>
  /// An event that is withheld, and the handlers that are notified of it before the subscribers.
  typealias Notification = (event: Event, handlers: [Subscriber<Event>])

  let owner: ThreadID
  /// What other threads read; `nil` as long as they read the state itself.
  @Indirect var snapshot: StateSnapshot<State>?
  /// Whether the owner computes the values with the optimistic edits. If an edit changes the store meanwhile,
  /// the values are computed again afterwards, and not inside of this computation.
  var isComputing = false
  var depth = 1
  private(set) var hasChanged = false
  /// The handlers of runs that are notified of the change before the subscribers.
  private(set) var handlers: [Subscriber<Event>] = []
  /// The events that are notified after the change.
  var events: [Notification] = []
  /// What is done after that, such as resuming awaiters of runs that have ended.
  var actions: [@Sendable () -> Void] = []
  /// Where writers of other threads wait.
  var gates: [Gate] = []

  /// Whether the owner may read another state than the one that was delivered, or is queued.
  var mayDiffer: Bool { hasChanged || isComputing }

  mutating func noteChange(for others: [Subscriber<Event>] = []) {
    hasChanged = true
    handlers += others.filter { other in !handlers.contains { $0 === other } }
  }

  /// Returns the notifications at the end of the access: first `state`, if it has changed.
  func notifications(with state: State) -> [Notification] {
    hasChanged ? [(.stateChanged(state), handlers)] + events : events
  }
}

/// What other threads read while a thread has exclusive access.
struct StateSnapshot<State: OperationState>: Sendable {
  let displayed: State
  let confirmedValue: State.StateValue
  let valueDate: Date?
  let isInvalidated: Bool
  let resultCount: Int
  let confirmedVersion: Int
}

/// The notifications of transitions below optimistic edits, until the displayed value has been
/// computed.
struct WithheldNotifications<State: OperationState>: Sendable {
  /// What was displayed before them.
  let snapshot: StateSnapshot<State>
  var notifications: [ExclusiveAccess<State>.Notification] = []
  /// The number of edits that have become part of the value since, which the states lack.
  var confirmedEdits = 0
}

/// The place where a thread waits until another thread signals.
typealias Gate = DispatchSemaphore
