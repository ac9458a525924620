public import Synchronization

/// One handler, and whether it is still to be called.
@usableFromInline package final class Subscriber<Event: Sendable>: Sendable {
  @usableFromInline let handler: @Sendable (Event) -> Void
  @usableFromInline let isActive = Atomic(true)

  @inlinable package init(_ handler: @escaping @Sendable (Event) -> Void) {
    self.handler = handler
  }

  @inlinable package func receive(_ event: Event) {
    if isActive.load(ordering: .acquiring) { handler(event) }
  }

  /// Ends the calls: one that has not begun when this returns does not begin.
  @inlinable package func deactivate() {
    isActive.store(false, ordering: .releasing)
  }
}

/// The subscribers of one delivery queue in the order in which they came.
///
/// Identifiers only grow, so the list is sorted by them: a removal finds its slot by bisection and
/// leaves a hole, and holes are swept when they are half of the list.
@usableFromInline struct SubscriberList<Event: Sendable>: Sendable {
  @usableFromInline struct Slot: Sendable {
    @usableFromInline let id: UInt64
    @usableFromInline var subscriber: Subscriber<Event>?

    @inlinable init(id: UInt64, subscriber: Subscriber<Event>) {
      self.id = id
      self.subscriber = subscriber
    }
  }

  @usableFromInline var slots: [Slot] = []
  @usableFromInline var count = 0
  @usableFromInline var nextID: UInt64 = 0

  @inlinable init() {}

  @inlinable mutating func append(_ subscriber: consuming Subscriber<Event>) -> UInt64 {
    defer { nextID += 1 }
    slots.append(Slot(id: nextID, subscriber: subscriber))
    count += 1
    return nextID
  }

  @inlinable mutating func remove(_ id: UInt64) -> Subscriber<Event>? {
    guard let index = index(of: id), let subscriber = slots[index].subscriber.take() else {
      return nil
    }
    count -= 1
    if index == slots.count - 1 { slots.removeLast() }
    if slots.isEmpty { return subscriber }
    if count == 0 {
      slots.removeAll(keepingCapacity: slots.count <= 64)
    } else if slots.count >= 16, count * 2 <= slots.count {
      slots.removeAll { $0.subscriber == nil }
    }
    return subscriber
  }

  @inlinable func index(of id: UInt64) -> Int? {
    var low = 0
    var high = slots.count
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < slots.count && slots[low].id == id ? low : nil
  }
}
