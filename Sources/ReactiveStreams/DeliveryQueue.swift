/// The machine behind every delivery of the library: who listens, what is still to be told, and
/// whether somebody is telling it.
///
/// Its states:
/// - *idle*: nothing is being delivered. The next event that has an audience starts a drain, or
///   somebody who tells one by himself.
/// - *draining*: one thread takes one delivery after the other, each performed without the lock.
///   Events that come meanwhile wait in the queue, so deliveries come in the order of the commits.
///
/// A subscriber hears of what is appended after it subscribed, and of nothing before.
@usableFromInline package struct DeliveryQueue<Event: Sendable>: Sendable {
  @usableFromInline enum Phase: Sendable {
    case idle
    case draining
  }

  /// An event and who hears of it; an object, so that it moves as one word.
  @usableFromInline package final class Entry: Sendable {
    @usableFromInline let event: Event
    /// Those who hear of it first: mostly nobody.
    @usableFromInline let others: [Subscriber<Event>]
    /// Then everybody hears of it whose identifier is below the bound.
    @usableFromInline let bound: UInt64

    @inlinable init(_ event: Event, others: [Subscriber<Event>], bound: UInt64) {
      self.event = event
      self.others = others
      self.bound = bound
    }
  }

  @usableFromInline var phase = Phase.idle
  @usableFromInline var entries = FIFO<Entry>()
  @usableFromInline var subscribers: SubscriberList<Event>

  // Not with the property, where it would be made by code that asks for its type.
  @inlinable package init() {
    subscribers = SubscriberList()
  }

  @inlinable package var subscriberCount: Int { subscribers.count }
  package var pendingCount: Int { entries.count }

  /// Adds a subscriber, which hears `event` first.
  @inlinable package mutating func subscribe(
    _ subscriber: Subscriber<Event>, initially event: Event? = nil
  ) -> UInt64 {
    if let event { tell(event, only: [subscriber]) }
    return subscribers.append(subscriber)
  }

  /// Makes the caller the drainer behind an event that it tells by itself, if nothing is delivered
  /// before that. So one event needs no object.
  @inlinable package mutating func beginTelling() -> Bool {
    guard phase == .idle, entries.isEmpty else { return false }
    phase = .draining
    return true
  }

  /// Removes a subscriber and gives it back, so that it is released without the lock.
  @inlinable package mutating func unsubscribe(_ id: UInt64) -> Subscriber<Event>? {
    let subscriber = subscribers.remove(id)
    subscriber?.deactivate()
    return subscriber
  }

  /// Queues an event for all present subscribers, and for `others` before them.
  @inlinable package mutating func append(
    _ event: @autoclosure () -> Event, also others: [Subscriber<Event>] = []
  ) {
    guard subscribers.count > 0 || !others.isEmpty else { return }
    entries.append(Entry(event(), others: others, bound: subscribers.nextID))
  }

  /// Queues an event for some subscribers only.
  @inlinable package mutating func tell(
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
  @inline(__always) @inlinable package mutating func beginDraining() -> Delivery<Event>? {
    switch phase {
    case .draining: return nil
    case .idle: return entries.isEmpty ? nil : takeNext()
    }
  }

  /// Gives the drainer its next delivery, or ends the drain.
  @inlinable package mutating func takeNext() -> Delivery<Event>? {
    guard let entry = entries.popFirst() else {
      phase = .idle
      return nil
    }
    phase = .draining
    return Delivery(entry, to: entry.bound > 0 ? subscribers.seats.slots : [])
  }
}

/// Events that were dropped before they were delivered, and those who would have heard of them.
package struct DroppedEvents<Event: Sendable>: Sendable {
  fileprivate let entries: FIFO<DeliveryQueue<Event>.Entry>

  package var count: Int { entries.count }
}

/// One event and those who hear of it, as they were when it was taken from the queue.
@usableFromInline package struct Delivery<Event: Sendable>: Sendable {
  @usableFromInline let entry: DeliveryQueue<Event>.Entry
  @usableFromInline let slots: [SubscriberList<Event>.Slots.Slot]

  @inlinable init(
    _ entry: DeliveryQueue<Event>.Entry, to slots: [SubscriberList<Event>.Slots.Slot]
  ) {
    self.entry = entry
    self.slots = slots
  }

  @inlinable package func perform() {
    for subscriber in entry.others { subscriber.receive(entry.event) }
    let bound = entry.bound
    // To the end of the last call: who is called is held by his slot alone.
    withExtendedLifetime(slots) {
      let slots = slots.span
      for index in slots.indices {
        guard slots[index].id < bound else { break }
        guard let called = slots[index].element?.called else { continue }
        called._withUnsafeGuaranteedRef { $0.receive(entry.event) }
      }
    }
  }
}
