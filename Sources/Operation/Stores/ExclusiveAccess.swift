import FoundationEssentials
import Dispatch
import Glibc
import ReactiveStreams

/// The time in which one thread has exclusive access to a store.
///
/// The owner changes the state in place, and reads its changes. Other threads read the snapshot of
/// the state before, and their writes wait at gates. What the owner changes is notified once, at the
/// end.
struct ExclusiveAccess<State: OperationState>: Sendable {
  typealias Event = OperationEvent<State>

  enum Phase: Sendable {
    case changing
    /// The owner computes what the optimistic edits make of the value. What they change meanwhile has
    /// it computed again, and not inside of this computation.
    case computing
  }

  let owner: ThreadID
  /// What other threads read; `nil` as long as they read the state itself.
  var snapshot: StateSnapshot<State>?
  var phase = Phase.changing
  var depth = 1
  private(set) var hasChanged = false
  /// The handlers of runs that are notified of the change before the subscribers.
  private(set) var handlers: [Subscriber<Event>] = []
  /// The events that are notified after the change.
  private var events: [WithheldNotification<State>] = []
  /// What is done after that, such as resuming awaiters of runs that have ended.
  private(set) var actions: [@Sendable () -> Void] = []
  private(set) var gates: [Gate] = []

  init(owner: ThreadID, snapshot: StateSnapshot<State>?) {
    self.owner = owner
    self.snapshot = snapshot
  }

  mutating func noteChange(for others: [Subscriber<Event>] = []) {
    hasChanged = true
    handlers += others.filter { other in !handlers.contains { $0 === other } }
  }

  mutating func withhold(_ event: Event, also others: [Subscriber<Event>]) {
    events.append(.event(event, also: others))
  }

  mutating func atEnd(_ actions: [@Sendable () -> Void]) { self.actions += actions }

  /// Returns a gate at which a writer of another thread waits.
  mutating func makeGate() -> Gate {
    let gate = Gate()
    gates.append(gate)
    return gate
  }

  /// Returns the notifications at the end of the access: first `state`, if it has changed.
  func notifications(with state: State) -> [WithheldNotification<State>] {
    hasChanged ? [.state(state, also: handlers)] + events : events
  }
}

/// What other threads read while a thread has exclusive access. A class, because few stores have one.
final class StateSnapshot<State: OperationState>: Sendable {
  let displayed: State
  let confirmedValue: State.StateValue
  let valueDate: Date?
  let isInvalidated: Bool
  let resultCount: Int

  init(
    displayed: State, confirmedValue: State.StateValue, valueDate: Date?, isInvalidated: Bool,
    resultCount: Int
  ) {
    self.displayed = displayed
    self.confirmedValue = confirmedValue
    self.valueDate = valueDate
    self.isInvalidated = isInvalidated
    self.resultCount = resultCount
  }
}

/// A notification that is withheld until the displayed value has been computed.
enum WithheldNotification<State: OperationState>: Sendable {
  case state(State, also: [Subscriber<OperationEvent<State>>])
  case event(OperationEvent<State>, also: [Subscriber<OperationEvent<State>>])
}

/// The notifications of transitions below optimistic edits, until the displayed value has been
/// computed.
struct WithheldNotifications<State: OperationState>: Sendable {
  /// What was displayed before them.
  let snapshot: StateSnapshot<State>
  private(set) var notifications: [WithheldNotification<State>] = []
  /// The number of edits that have become part of the value since, which the states lack.
  private(set) var confirmedEdits = 0

  init(snapshot: StateSnapshot<State>) { self.snapshot = snapshot }

  mutating func append(_ notification: WithheldNotification<State>) {
    notifications.append(notification)
  }

  mutating func noteComputation(confirmedEdits: Int) { self.confirmedEdits = confirmedEdits }
}

/// An identifier of a thread, unique among the threads that exist.
package struct ThreadID: Sendable, Hashable {
  let rawValue: UInt

  package static var current: ThreadID { ThreadID(rawValue: UInt(pthread_self())) }
}

/// The place where a thread waits until another thread opens it.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }
  func open() { semaphore.signal() }
}
