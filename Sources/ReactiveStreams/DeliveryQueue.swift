public import Synchronization

/// The machine behind every delivery of the library: the subscribers, the queued events, and whether
/// a thread is delivering them.
///
/// - *idle*: no thread is delivering. The next commit that finds a queued event starts to drain.
/// - *draining*: one thread takes one delivery after the other, and performs each without the lock.
///   An event that is appended meanwhile stays in the queue, so deliveries have the order of the
///   commits.
///
/// A subscriber is notified of what is appended after it subscribed, and of nothing before.
@usableFromInline package struct DeliveryQueue<Event: Sendable>: Sendable {
  /// An event and its recipients. A class, because most events contain a state, and are moved twice.
  @usableFromInline package final class Entry: Sendable {
    @usableFromInline let event: Event
    /// The subscriber that is notified alone, such as a new one of the current state.
    @usableFromInline let recipient: Subscriber<Event>?
    /// The subscribers that are notified first, such as the handlers of one run.
    @usableFromInline let others: [Subscriber<Event>]
    /// Then each subscriber is notified whose identifier is below the bound.
    @usableFromInline let bound: UInt64
    /// Whether it is a state for subscribers that need only the newest one.
    @usableFromInline let isReplaceable: Bool

    @inlinable init(
      _ event: Event, for recipient: Subscriber<Event>? = nil, others: [Subscriber<Event>] = [],
      bound: UInt64 = 0, isReplaceable: Bool = false
    ) {
      self.event = event
      self.recipient = recipient
      self.others = others
      self.bound = bound
      self.isReplaceable = isReplaceable
    }
  }

  @usableFromInline var isDraining = false
  @usableFromInline var entries = FIFO<Entry>()
  @usableFromInline var subscribers = SlotList<UInt64, Subscriber<Event>>()
  @usableFromInline var nextID: UInt64 = 0
  /// The number of subscribers that need only the newest state.
  @usableFromInline var newestCount = 0

  package init() {}

  package var subscriberCount: Int { subscribers.count }
  package var pendingCount: Int { entries.count }

  /// Adds a subscriber, and notifies it of `event` first.
  @inlinable package mutating func subscribe(
    _ subscriber: Subscriber<Event>, initially event: consuming Event? = nil
  ) -> UInt64 {
    if let event = consume event { notify(subscriber, of: event) }
    defer { nextID += 1 }
    if subscriber.wantsNewest { newestCount += 1 }
    subscribers.insert(subscriber, for: nextID)
    return nextID
  }

  /// Removes a subscriber, and returns it to be released without the lock.
  @inlinable package mutating func unsubscribe(_ id: UInt64) -> Subscriber<Event>? {
    let subscriber = subscribers.remove(id)
    if subscriber?.wantsNewest == true { newestCount -= 1 }
    subscriber?.isActive.store(false, ordering: .releasing)
    return subscriber
  }

  /// Queues an event for `others`, and then for all present subscribers. It is dropped if none of them
  /// needs other events than the newest state.
  @inlinable package mutating func append(
    _ event: @autoclosure () -> Event, also others: [Subscriber<Event>] = []
  ) {
    guard newestCount < subscribers.count || !others.isEmpty else { return }
    entries.append(Entry(event(), others: others, bound: nextID))
  }

  /// Queues a state for all present subscribers. It replaces one that is pending, if all of them need
  /// only the newest state.
  ///
  /// - Returns: What was replaced, to be released without the lock.
  @inlinable package mutating func append(state event: consuming Event) -> Entry? {
    guard subscribers.count > 0 else { return nil }
    let isReplaceable = newestCount == subscribers.count
    let entry = Entry(event, bound: nextID, isReplaceable: isReplaceable)
    let replaced = entries.replaceLast(with: entry) {
      isReplaceable && $0.isReplaceable && $0.bound == entry.bound
    }
    if replaced == nil { entries.append(entry) }
    return replaced
  }

  /// Queues an event for one subscriber only.
  @inlinable package mutating func notify(_ subscriber: Subscriber<Event>, of event: Event) {
    entries.append(Entry(event, for: subscriber))
  }

  /// Removes what has not been delivered, and returns it to be released without the lock.
  package mutating func dropPending() -> DroppedEvents<Event> {
    defer { entries.removeAll() }
    return DroppedEvents(entries: entries)
  }

  /// Starts to drain, if there is something to deliver and no other thread is draining.
  @inlinable package mutating func beginDraining() -> Delivery<Event>? {
    isDraining ? nil : takeNext()
  }

  /// Returns the next delivery of the thread that drains, or ends the drain.
  @inlinable package mutating func takeNext() -> Delivery<Event>? {
    guard let entry = entries.popFirst() else {
      isDraining = false
      return nil
    }
    isDraining = true
    return Delivery(entry: entry, subscribers: subscribers, pendingCount: entries.count)
  }
}

/// Events that were dropped before they were delivered, with their recipients.
package struct DroppedEvents<Event: Sendable>: Sendable {
  fileprivate let entries: FIFO<DeliveryQueue<Event>.Entry>

  package var count: Int { entries.count }
}

/// One event, and the subscribers at the time when it was taken from the queue.
@usableFromInline package struct Delivery<Event: Sendable>: Sendable {
  @usableFromInline let entry: DeliveryQueue<Event>.Entry
  @usableFromInline let subscribers: SlotList<UInt64, Subscriber<Event>>
  /// The number of events behind this one when it was taken.
  @usableFromInline let pendingCount: Int

  @inlinable init(
    entry: DeliveryQueue<Event>.Entry, subscribers: SlotList<UInt64, Subscriber<Event>>,
    pendingCount: Int
  ) {
    self.entry = entry
    self.subscribers = subscribers
    self.pendingCount = pendingCount
  }

  @inlinable package func perform() {
    entry.recipient?.receive(entry.event)
    for subscriber in entry.others { subscriber.receive(entry.event) }
    for index in subscribers.slots.indices {
      guard subscribers.slots[index].id < entry.bound else { return }
      subscribers.slots[index].element?.receive(entry.event)
    }
  }
}
