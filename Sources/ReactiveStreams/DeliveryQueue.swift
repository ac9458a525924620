/// The machine behind every delivery of the library: who listens, what is still to be told, and
/// whether somebody is telling it.
///
/// Its states:
/// - *idle*: nothing is being delivered. The next event that has an audience starts a drain.
/// - *draining*: one thread takes one delivery after the other, each performed without the lock.
///   Events that come meanwhile wait in the queue, so deliveries come in the order of the commits.
///
/// A subscriber hears of what is appended after it subscribed, and of nothing before.
package struct DeliveryQueue<Event: Sendable>: Sendable {
  private enum Phase: Sendable {
    case idle
    case draining
  }

  fileprivate enum Audience: Sendable {
    /// Everybody whose identifier is below the bound, and those named before them.
    case everyone(before: UInt64, also: [Subscriber<Event>])
    case only([Subscriber<Event>])
  }

  fileprivate struct Entry: Sendable {
    let event: Event
    let audience: Audience
  }

  private var phase = Phase.idle
  private var entries = FIFO<Entry>()
  private var subscribers = SubscriberList<Event>()

  package init() {}

  package var subscriberCount: Int { subscribers.count }
  package var pendingCount: Int { entries.count }

  /// Adds a subscriber, which hears `event` first.
  package mutating func subscribe(
    _ subscriber: Subscriber<Event>, initially event: Event? = nil
  ) -> UInt64 {
    let id = subscribers.append(subscriber)
    if let event { tell(event, only: [subscriber]) }
    return id
  }

  /// Removes a subscriber and gives it back, so that it is released without the lock.
  package mutating func unsubscribe(_ id: UInt64) -> Subscriber<Event>? {
    let subscriber = subscribers.remove(id)
    subscriber?.deactivate()
    return subscriber
  }

  /// Queues an event for all present subscribers, and for `others` before them.
  package mutating func append(
    _ event: @autoclosure () -> Event, also others: [Subscriber<Event>] = []
  ) {
    guard subscribers.count > 0 || !others.isEmpty else { return }
    let audience = Audience.everyone(before: subscribers.nextID, also: others)
    entries.append(Entry(event: event(), audience: audience))
  }

  /// Queues an event for some subscribers only.
  package mutating func tell(
    _ event: @autoclosure () -> Event, only subscribers: [Subscriber<Event>]
  ) {
    guard !subscribers.isEmpty else { return }
    entries.append(Entry(event: event(), audience: .only(subscribers)))
  }

  /// Forgets what has not been delivered, and gives it back to be released without the lock.
  package mutating func dropPending() -> DroppedEvents<Event> {
    defer { entries.removeAll() }
    return DroppedEvents(entries: entries)
  }

  /// Makes the caller the drainer, if there is something to deliver and nobody delivers.
  package mutating func beginDraining() -> Delivery<Event>? {
    switch phase {
    case .draining: return nil
    case .idle: return takeNext()
    }
  }

  /// Gives the drainer its next delivery, or ends the drain.
  package mutating func takeNext() -> Delivery<Event>? {
    guard let entry = entries.popFirst() else {
      phase = .idle
      return nil
    }
    phase = .draining
    switch entry.audience {
    case .only(let subscribers):
      return Delivery(event: entry.event, first: subscribers, slots: [], bound: 0)
    case .everyone(let bound, let others):
      return Delivery(event: entry.event, first: others, slots: subscribers.slots, bound: bound)
    }
  }
}

/// Events that were dropped before they were delivered, and those who would have heard of them.
package struct DroppedEvents<Event: Sendable>: Sendable {
  fileprivate let entries: FIFO<DeliveryQueue<Event>.Entry>

  package var count: Int { entries.count }
}

/// One event and those who hear of it, as they were when it was taken from the queue.
package struct Delivery<Event: Sendable>: Sendable {
  let event: Event
  let first: [Subscriber<Event>]
  let slots: [SubscriberList<Event>.Slot]
  let bound: UInt64

  package func perform() {
    for subscriber in first { subscriber.receive(event) }
    for slot in slots {
      guard slot.id < bound else { break }
      slot.subscriber?.receive(event)
    }
  }
}
