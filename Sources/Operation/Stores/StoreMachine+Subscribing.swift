import FoundationEssentials
import ReactiveStreams

/// What a store does because it is observed.
struct StoreObservation: Sendable {
  /// The subscriptions that start runs while the store is observed.
  private var triggers: OperationSubscription?
  /// Increases when the store begins to be observed, and when it ends.
  private(set) var epoch = 0
  private var control = Control.notifying

  /// The notification of the controllers.
  private enum Control: Sendable {
    /// A thread attaches or notifies the controllers, and checks again when it has.
    case notifying
    case notified([AttachedController], isObserved: Bool)
  }

  /// Begins to be observed, or ends. Returns the triggers to cancel.
  mutating func change() -> OperationSubscription? {
    epoch += 1
    return triggers.take()
  }

  /// Stores the triggers of an epoch. Returns them if that epoch is over.
  mutating func setTriggers(_ new: OperationSubscription, epoch: Int) -> OperationSubscription? {
    guard epoch == self.epoch else { return new }
    triggers = new
    return nil
  }

  /// The controllers were attached, or notified.
  mutating func didNotify(_ controllers: [AttachedController], isObserved: Bool) {
    control = .notified(controllers, isObserved: isObserved)
  }

  /// Returns the controllers that the calling thread has to notify, if no other thread does.
  mutating func controllersToNotify(isObserved: Bool) -> [AttachedController]? {
    guard case .notified(let controllers, isObserved: !isObserved) = control else { return nil }
    control = .notifying
    return controllers
  }
}

extension StoreMachine {
  /// The store at the time of its first subscriber.
  struct FirstObservation: Sendable {
    let epoch: Int
    let isStale: Bool?
  }

  /// Adds a subscriber, and notifies it of the current state.
  mutating func subscribe(
    _ subscriber: Subscriber<Event>
  ) -> (id: UInt64, first: FirstObservation?) {
    let id = deliveries.subscribe(subscriber, initially: .stateChanged(notifiedState))
    guard deliveries.subscriberCount == 1 else { return (id, nil) }
    _ = observation.change()
    return (id, FirstObservation(epoch: observation.epoch, isStale: isStale))
  }

  /// What remains to be cancelled and released without the lock after an unsubscription.
  struct Unsubscription: Sendable {
    let subscriber: Subscriber<Event>?
    var triggers: OperationSubscription?
    var cores: [Core] = []
  }

  /// Removes a subscriber. With the last one, the leases of the observers are released.
  mutating func unsubscribe(_ id: UInt64) -> Unsubscription {
    var removal = Unsubscription(subscriber: deliveries.unsubscribe(id))
    guard removal.subscriber != nil, deliveries.subscriberCount == 0 else { return removal }
    removal.triggers = observation.change()
    removal.cores = releaseObserverLeases()
    return removal
  }

  /// Returns the controllers to notify, and of what.
  mutating func controllersToNotify() -> (controllers: [AttachedController], isObserved: Bool)? {
    let isObserved = deliveries.subscriberCount > 0
    return observation.controllersToNotify(isObserved: isObserved).map { ($0, isObserved) }
  }

  /// Whether the value is missing, invalidated, or out of date; `nil` if that depends on the clock or
  /// the user's predicate, which are called without the lock.
  var isStale: Bool? {
    guard !isVisiblyInvalidated, visibleDate != nil else { return true }
    switch context.settings.values.staleness {
    case .always: return true
    case .never: return false
    case .after, .when: return nil
    }
  }
}

/// The part of a store in the client's counts of running, paused and failed stores.
struct CountedActivity: Sendable {
  typealias Change = (from: ActivityPhase, to: ActivityPhase)

  private var phase = ActivityPhase.idle
  private var isCounted: Bool

  init(isCounted: Bool) { self.isCounted = isCounted }

  /// The store is removed from the client, and counts as idle from now on.
  mutating func stopCounting() { isCounted = false }

  /// Returns the change of the phase after a transition to `state`, if there is one.
  mutating func change(to state: some OperationState) -> Change? {
    let new: ActivityPhase =
      if !isCounted {
        .idle
      } else if state.isLoading {
        state.isPaused ? .paused : .running
      } else {
        state.error == nil ? .idle : .failed
      }
    guard new != phase else { return nil }
    defer { phase = new }
    return (phase, new)
  }
}
