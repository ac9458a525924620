import ReactiveStreams

/// What a store does because it is observed.
///
/// Observers whose rules have equal keys form a group. A group begins with its first observer and ends
/// with its last one. A group that begins again has another identifier.
struct StoreObservation<State: OperationState>: Sendable {
  typealias Rules = RequestRules<State>

  struct Group: Sendable {
    let id: Int
    /// `nil` for the rules of the store.
    let rules: Rules?
    var count = 1
    /// The subscriptions that start runs while the group has observers.
    var triggers: OperationSubscription?
  }

  /// The group with the rules of the store, if there is one, comes first.
  private var groups: [Group] = []
  private var lastID = 0
  /// The controllers, and whether they were last notified that the store is observed. `nil` while a thread
  /// attaches or notifies them, which checks again when it has.
  var notified: (controllers: [AttachedController], isObserved: Bool)?

  /// The rules of each group.
  var rules: [Rules?] { groups.map { $0.rules } }

  func contains(_ group: Int) -> Bool { groups.contains { $0.id == group } }

  /// Adds an observer. Returns its group, and whether it is the first of it.
  mutating func begin(_ rules: Rules?) -> (group: Int, isFirst: Bool) {
    if let index = groups.firstIndex(where: { $0.rules?.key == rules?.key }) {
      groups[index].count += 1
      return (groups[index].id, false)
    }
    lastID += 1
    groups.insert(Group(id: lastID, rules: rules), at: rules == nil ? 0 : groups.count)
    return (lastID, true)
  }

  /// Removes an observer of a group. Returns the group if it was the last one. Its rules are the user's
  /// request: they are released, and its triggers cancelled, without the lock.
  mutating func end(_ group: Int) -> Group? {
    guard let index = groups.firstIndex(where: { $0.id == group }) else { return nil }
    groups[index].count -= 1
    return groups[index].count == 0 ? groups.remove(at: index) : nil
  }

  /// Stores the triggers of a group. Returns them if the group has ended.
  mutating func setTriggers(_ new: OperationSubscription, of group: Int) -> OperationSubscription? {
    guard let index = groups.firstIndex(where: { $0.id == group }) else { return new }
    groups[index].triggers = new
    return nil
  }
}

extension StoreMachine {
  /// The place of a subscriber in the queue and in its group.
  typealias ObserverID = (subscription: UInt64, group: Int)

  /// A subscription, whether it is the first one of its group, and whether there was a value then
  /// that was not invalidated; `false` if it is not the first one.
  typealias Observation = (id: ObserverID, isFirst: Bool, hasValidValue: Bool)

  /// Adds a subscriber, and notifies it of the current state.
  ///
  /// - Parameter rules: The rules of the subscriber's request; `nil` if they are those of the store.
  mutating func subscribe(
    _ subscriber: Subscriber<Event>, by rules: RequestRules<State>? = nil
  ) -> Observation {
    let id = deliveries.subscribe(subscriber, initially: .stateChanged(notifiedState))
    let (group, isFirst) = observation.begin(rules)
    return ((id, group), isFirst, isFirst && hasValidValue)
  }

  /// What remains to be cancelled and released without the lock after an unsubscription: the
  /// subscriber, the triggers of its group, if it was the last one there, and runs that are not held
  /// any more.
  typealias Unsubscription = (
    subscriber: Subscriber<Event>?, triggers: OperationSubscription?, cores: [Core]
  )

  /// Removes a subscriber. With the last one, the leases of the observers are released.
  mutating func unsubscribe(_ id: ObserverID) -> Unsubscription {
    guard let subscriber = deliveries.unsubscribe(id.subscription) else { return (nil, nil, []) }
    let group = observation.end(id.group)
    if let rules = group?.rules { release(rules) }
    let isLast = deliveries.subscriberCount == 0
    return (subscriber, group?.triggers, isLast ? releaseObserverLeases() : [])
  }

  /// Returns the controllers that the calling thread has to notify, if no other thread does, and of what.
  mutating func controllersToNotify() -> (controllers: [AttachedController], isObserved: Bool)? {
    let isObserved = deliveries.subscriberCount > 0
    guard let (controllers, wasObserved) = observation.notified, wasObserved != isObserved else {
      return nil
    }
    observation.notified = nil
    return (controllers, isObserved)
  }
}
