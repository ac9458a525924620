import FoundationEssentials
import ReactiveStreams

/// Who listens to a store, and what observers make it do.
extension StoreMachine {
  /// Whether there is no value, or one that was invalidated or is out of date by the request's rule;
  /// `nil` if that rule asks the clock or the user, which is done without the lock.
  var isStale: Bool? {
    guard !isVisiblyInvalidated, visibleDate != nil else { return true }
    switch context.settings.values.staleness {
    case .always: return true
    case .never: return false
    case .after, .when: return nil
    }
  }

  /// What somebody looks at who would have the store run by itself.
  struct Sight: Sendable {
    let hasTriggers: Bool
    let isAutomatic: Bool
    let isStale: Bool?
    let updates: Int
  }

  /// What the first subscriber sees when he comes.
  struct FirstSight: Sendable {
    let sight: Sight
    let observation: Int
  }

  // With what it goes through a call would be one with a copy of the machine.
  var sight: Sight {
    Sight(
      hasTriggers: !context.settings.values.rerunTriggers.isEmpty,
      isAutomatic: context.settings.values.runsAutomatically == true, isStale: isStale,
      updates: visibleLandingCount)
  }

  /// Somebody subscribes, and is told the present state first.
  mutating func subscribe(
    _ subscriber: Subscriber<Event>
  ) -> (id: UInt64, first: FirstSight?) {
    let id = deliveries.subscribe(subscriber, initially: .stateChanged(present))
    guard deliveries.subscriberCount == 1 else { return (id, nil) }
    observation += 1
    return (id, FirstSight(sight: sight, observation: observation))
  }

  /// What wants runs was subscribed to; it is given back if that observation is over.
  mutating func setTriggers(
    _ new: OperationSubscription, observation: Int
  ) -> OperationSubscription? {
    guard observation == self.observation else { return new }
    triggers = new
    return nil
  }

  struct Departure: Sendable {
    var subscriber: Subscriber<Event>?
    var triggers: OperationSubscription?
    var cores: [Core] = []

    init(subscriber: Subscriber<Event>?) {
      self.subscriber = subscriber
    }
  }

  /// A subscriber goes; the last one takes the leases of the observers with him.
  mutating func unsubscribe(_ id: UInt64) -> Departure {
    let count = deliveries.subscriberCount
    var departure = Departure(subscriber: deliveries.unsubscribe(id))
    guard count > 0, deliveries.subscriberCount == 0 else { return departure }
    observation += 1
    departure.triggers = triggers.take()
    if runs.isEmpty { return departure }
    for id in runs.ids where runs[id]?.isHeldByObservers == true {
      runs.update(id) { $0.isHeldByObservers = false }
      if let core = giveBack(id) { departure.cores.append(core) }
    }
    return departure
  }
}

/// What the controllers of a store know of its subscribers.
enum Control: Sendable {
  /// A thread gives them the store, or tells them something, and looks again when it has.
  case changing
  case told([AttachedController], isObserved: Bool)
}

extension StoreMachine {
  /// The controllers have the store, or have been told.
  mutating func told(_ controllers: [AttachedController], isObserved: Bool) {
    control = .told(controllers, isObserved: isObserved)
  }

  /// Gives what the thread that asks has to tell the controllers, if no other is at it.
  mutating func nextTelling() -> (controllers: [AttachedController], isObserved: Bool)? {
    let isObserved = deliveries.subscriberCount > 0
    guard case .told(let controllers, isObserved: !isObserved) = control else { return nil }
    control = .changing
    return (controllers, isObserved)
  }
}
