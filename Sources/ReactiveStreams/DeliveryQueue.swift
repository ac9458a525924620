/// The machine behind every delivery of the library: who listens, what is still to be told, and
/// whether somebody is telling it.
///
/// Its states:
/// - *idle*: nothing is being delivered. The next event that has an audience starts a drain, or
///   somebody who tells one by himself.
/// - *telling*: a transition has an event of its own for everybody, which its thread tells by itself.
///   That thread is the drainer before the lock is open.
/// - *draining*: one thread takes one delivery after the other, each performed without the lock.
///   Events that come meanwhile wait in the queue, so deliveries come in the order of the commits.
///
/// A subscriber hears of what is appended after it subscribed, and of nothing before.
package struct DeliveryQueue<Event: Sendable>: Sendable {
  enum Phase: Sendable {
    case idle
    case telling
    case draining
  }

  /// An event and who hears of it; an object, so that it moves as one word.
  package final class Entry: Sendable {
    let event: Event
    /// Those who hear of it first: mostly nobody.
    let others: [Subscriber<Event>]
    /// Then everybody hears of it whose identifier is below the bound.
    let bound: UInt64

    init(_ event: Event, others: [Subscriber<Event>], bound: UInt64) {
      self.event = event
      self.others = others
      self.bound = bound
    }
  }

  var phase = Phase.idle
  var entries = FIFO<Entry>()
  var subscribers: SubscriberList<Event>

  // Not with the property, where it would be made by code that asks for its type.
  package init() {
    subscribers = SubscriberList()
  }

  package var subscriberCount: Int { subscribers.count }
  package var pendingCount: Int { entries.count }

  /// Adds a subscriber, which hears `event` first.
  package mutating func subscribe(
    _ subscriber: Subscriber<Event>, initially event: Event? = nil
  ) -> UInt64 {
    if let event { tell(event, only: [subscriber]) }
    return subscribers.append(subscriber)
  }

  /// Makes the caller the drainer behind an event that it tells by itself, if nothing is delivered
  /// before that. So one event needs no object.
  package mutating func beginTelling() -> Bool {
    guard phase == .idle, entries.isEmpty else { return false }
    phase = .draining
    return true
  }

  /// Makes the caller the one who tells everybody an event by himself, if nothing is delivered before
  /// that and somebody listens. He has to be lent the audience under the same lock.
  package mutating func beginTellingAll() -> Bool {
    guard phase == .idle, entries.isEmpty, subscribers.count > 0 else { return false }
    phase = .telling
    return true
  }

  /// Lends those whom the caller is to tell an event by himself, if he is; he is the drainer then.
  package mutating func lendAudience() -> Audience<Event>? {
    guard phase == .telling else { return nil }
    phase = .draining
    return Audience(subscribers.lend())
  }

  /// Takes those back who were lent, and gives the drainer his next delivery. Those who have gone
  /// meanwhile are left in the audience, to be released without the lock.
  package mutating func takeNext(
    returning audience: inout Audience<Event>
  ) -> Delivery<Event>? {
    subscribers.takeBack(&audience.seats)
    return takeNext()
  }

  /// Removes a subscriber and gives it back, so that it is released without the lock; where the
  /// subscribers are lent, who tells them something does that.
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
    entries.append(Entry(event(), others: others, bound: subscribers.nextID))
  }

  /// Queues an event for some subscribers only.
  package mutating func tell(
    _ event: @autoclosure () -> Event, only subscribers: [Subscriber<Event>]
  ) {
    guard !subscribers.isEmpty else { return }
    entries.append(Entry(event(), others: subscribers, bound: 0))
  }

  /// Forgets what has not been delivered, and gives it back to be released without the lock.
  package mutating func dropPending() -> DroppedEvents<Event> {
    defer { entries.removeAll() }
    return DroppedEvents(entries: entries)
  }

  /// Makes the caller the drainer, if there is something to deliver and nobody delivers.
  package mutating func beginDraining() -> Delivery<Event>? {
    switch phase {
    case .draining, .telling: return nil
    case .idle: return entries.isEmpty ? nil : takeNext()
    }
  }

  /// Gives the drainer its next delivery, or ends the drain.
  package mutating func takeNext() -> Delivery<Event>? {
    if entries.isEmpty {
      phase = .idle
      return nil
    }
    phase = .draining
    return takeFirst()
  }

  mutating func takeFirst() -> Delivery<Event>? {
    guard let entry = entries.popFirst() else { return nil }
    return Delivery(entry, to: Audience(entry.bound > 0 ? subscribers.seats : .init()))
  }
}

/// Events that were dropped before they were delivered, and those who would have heard of them.
package struct DroppedEvents<Event: Sendable>: Sendable {
  fileprivate let entries: FIFO<DeliveryQueue<Event>.Entry>

  package var count: Int { entries.count }
}

/// One event and those who hear of it, as they were when it was taken from the queue.
package struct Delivery<Event: Sendable>: Sendable {
  let entry: DeliveryQueue<Event>.Entry
  let audience: Audience<Event>

  init(_ entry: DeliveryQueue<Event>.Entry, to audience: Audience<Event>) {
    self.entry = entry
    self.audience = audience
  }

  package func perform() {
    for subscriber in entry.others { subscriber.receive(entry.event) }
    audience.hear(entry.event, below: entry.bound)
  }
}

/// Those who subscribed, as they were at one time.
package struct Audience<Event: Sendable>: Sendable {
  var seats: SubscriberList<Event>.Slots

  init(_ seats: SubscriberList<Event>.Slots) {
    self.seats = seats
  }

  /// Calls everybody whose identifier is below a bound.
  package func hear(_ event: Event, below bound: UInt64 = .max) {
    // To the end of the last call: who is called is held by his slot alone.
    defer { withExtendedLifetime(seats) {} }
    let slots = seats.slots.span
    for index in slots.indices {
      guard slots[index].id < bound else { break }
      guard let called = slots[index].element?.called else { continue }
      called._withUnsafeGuaranteedRef { $0.receive(event) }
    }
  }
}
