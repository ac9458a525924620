import Synchronization

/// The machine behind every delivery of the library: the subscribers, the queued events, and whether
/// a thread is delivering them.
///
/// - *idle*: no thread is delivering. The next commit that finds a queued event starts to drain.
/// - *draining*: one thread takes one delivery after the other, and performs each without the lock.
///   An event that is appended meanwhile stays in the queue, so deliveries have the order of the
///   commits.
///
/// A subscriber is notified of what is appended after it subscribed, and of nothing before.
// Without the annotations of this file these benchmarks are over their limits: write per subscriber, state
// stream.
@usableFromInline package struct DeliveryQueue<Event: Sendable>: Sendable {
  /// An event that is queued, and its recipients.
  @usableFromInline struct Entry: Sendable {
    @usableFromInline let event: Event
    /// The subscribers that are notified first, such as the handlers of one run.
    @usableFromInline let others: [Subscriber<Event>]
    /// Then each subscriber is notified whose identifier is in this range.
    @usableFromInline let ids: Range<UInt64>
    /// Whether it is a state for subscribers that need only the newest one.
    @usableFromInline let isReplaceable: Bool

    @inlinable init(
      _ event: Event, for others: [Subscriber<Event>], _ ids: Range<UInt64>,
      isReplaceable: Bool = false
    ) {
      self.event = event
      self.others = others
      self.ids = ids
      self.isReplaceable = isReplaceable
    }
  }

  package private(set) var isDraining = false
  @usableFromInline var entries = FIFO<Entry>()
  @usableFromInline var subscribers = SlotList<UInt64, Subscriber<Event>>()
  /// Whether the list of subscribers is the one that the last delivery has taken.
  private var isListTaken = false
  /// That list, which the delivery has given back for the next one. To copy the list instead costs two
  /// atomic operations. Empty while a delivery has the list, and when the list has changed.
  private var returnedSlots: [SlotList<UInt64, Subscriber<Event>>.Slot] = []
  @usableFromInline var nextID: UInt64 = 0
  /// The number of subscribers that need only the newest state.
  @usableFromInline var newestCount = 0

  package init() {}

  package var subscriberCount: Int { subscribers.count }
  package var pendingCount: Int { entries.count }

  /// Adds a subscriber, and notifies it of `event` first.
  package mutating func subscribe(
    _ subscriber: Subscriber<Event>, initially event: consuming Event? = nil
  ) -> UInt64 {
    if let event = consume event { entries.append(Entry(event, for: [], nextID..<nextID + 1)) }
    defer { nextID += 1 }
    if subscriber.wantsNewest { newestCount += 1 }
    listWillChange()
    subscribers.insert(subscriber, for: nextID)
    return nextID
  }

  /// Removes a subscriber, and returns it to be released without the lock.
  package mutating func unsubscribe(_ id: UInt64) -> Subscriber<Event>? {
    listWillChange()
    let subscriber = subscribers.remove(id)
    if subscriber?.wantsNewest == true { newestCount -= 1 }
    subscriber?.isActive.store(false, ordering: .releasing)
    return subscriber
  }

  /// Queues an event for `others`, and then for all present subscribers. It is dropped if none of them
  /// needs other events than the newest state.
  package mutating func append(
    _ event: @autoclosure () -> Event, also others: [Subscriber<Event>] = []
  ) {
    guard newestCount < subscribers.count || !others.isEmpty else { return }
    entries.append(Entry(event(), for: others, 0..<nextID))
  }

  /// Queues a state for `others`, and then for all present subscribers. It replaces one that is
  /// pending, if all of them need only the newest state.
  ///
  /// - Returns: What was replaced, to be released without the lock.
  @inlinable package mutating func append(
    state event: consuming Event, also others: [Subscriber<Event>] = []
  ) -> Event? {
    guard subscribers.count > 0 || !others.isEmpty else { return nil }
    let isReplaceable = newestCount == subscribers.count && others.isEmpty
    let ids = 0..<nextID
    let replaced = isReplaceable ? entries.popLast { $0.isReplaceable && $0.ids == ids } : nil
    entries.append(Entry(event, for: others, ids, isReplaceable: isReplaceable))
    return replaced?.event
  }

  /// Queues an event for one subscriber only.
  package mutating func notify(_ subscriber: Subscriber<Event>, of event: Event) {
    entries.append(Entry(event, for: [subscriber], 0..<0))
  }

  /// Removes what has not been delivered, and returns it to be released without the lock.
  mutating func dropPending() -> FIFO<Entry> { entries.takeAll() }

  /// Starts to drain, if there is something to deliver and no other thread is draining.
  package mutating func beginDraining() -> Delivery<Event> {
    guard !isDraining, !entries.isEmpty else { return Delivery() }
    isDraining = true
    var delivery = Delivery<Event>()
    swap(&returnedSlots, &delivery.slots)
    // No list is replaced: the delivery has the present one, or none.
    _ = takeNext(into: &delivery)
    return delivery
  }

  /// Takes the next event for the thread that drains, or ends the drain.
  ///
  /// - Returns: A list that was replaced, to be released without the lock.
  @usableFromInline package mutating func takeNext(
    into delivery: inout Delivery<Event>
  ) -> [SlotList<UInt64, Subscriber<Event>>.Slot] {
    guard let entry = entries.popFirst() else {
      isDraining = false
      if isListTaken { swap(&returnedSlots, &delivery.slots) }
      return []
    }
    delivery.entry = entry
    delivery.pendingCount = entries.count
    if isListTaken { return [] }
    isListTaken = true
    var slots = subscribers.slots
    swap(&slots, &delivery.slots)
    return slots
  }

  /// Releases the list that was given back, so that it is changed in place if no delivery has it.
  private mutating func listWillChange() {
    isListTaken = false
    returnedSlots = []
  }
}

/// The events that a thread delivers, one after the other, and the subscribers at the time when the
/// present one was taken from the queue.
@usableFromInline package struct Delivery<Event: Sendable>: Sendable {
  /// `nil` if there is nothing to deliver.
  @usableFromInline var entry: DeliveryQueue<Event>.Entry?
  @usableFromInline var slots: [SlotList<UInt64, Subscriber<Event>>.Slot] = []
  /// The number of events behind this one when it was taken.
  @usableFromInline var pendingCount = 0

  @inlinable package init() {}

  @inlinable package var hasEvent: Bool { entry != nil }

  /// Calls the recipients of the event, and releases it.
  @inlinable package mutating func perform() {
    guard let entry = entry.take() else { return }
    for subscriber in entry.others { subscriber.receive(entry.event) }
    var index = SlotList.position(of: entry.ids.lowerBound, in: slots)
    while index < slots.count, slots[index].id < entry.ids.upperBound {
      // The list retains the subscriber. With another retain for each call, the benchmark write per
      // subscriber is over its limit.
      let subscriber = slots[index].element.map(Unmanaged.passUnretained)
      subscriber?._withUnsafeGuaranteedRef { $0.receive(entry.event) }
      index += 1
    }
  }
}
