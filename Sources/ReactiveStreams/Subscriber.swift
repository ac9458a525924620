import Synchronization

/// One handler, and whether it is still to be called.
package final class Subscriber<Event: Sendable>: Sendable {
  private let handler: @Sendable (Event) -> Void
  private let isActive = Atomic(true)

  package init(_ handler: @escaping @Sendable (Event) -> Void) {
    self.handler = handler
  }

  package func receive(_ event: Event) {
    if isActive.load(ordering: .acquiring) { handler(event) }
  }

  /// Ends the calls: one that has not begun when this returns does not begin.
  package func deactivate() {
    isActive.store(false, ordering: .releasing)
  }
}

/// The subscribers of one delivery queue in the order in which they came.
///
/// Identifiers only grow, so the list is sorted by them: a removal finds its slot by bisection and
/// leaves a hole, and holes are swept when they are half of the list.
struct SubscriberList<Event: Sendable>: Sendable {
  struct Slot: Sendable {
    let id: UInt64
    var subscriber: Subscriber<Event>?
  }

  private(set) var slots: [Slot] = []
  private(set) var count = 0
  private(set) var nextID: UInt64 = 0

  mutating func append(_ subscriber: Subscriber<Event>) -> UInt64 {
    defer { nextID += 1 }
    slots.append(Slot(id: nextID, subscriber: subscriber))
    count += 1
    return nextID
  }

  mutating func remove(_ id: UInt64) -> Subscriber<Event>? {
    guard let index = index(of: id), let subscriber = slots[index].subscriber.take() else {
      return nil
    }
    count -= 1
    if count == 0 {
      slots.removeAll(keepingCapacity: slots.count <= 64)
    } else if slots.count >= 16, count * 2 <= slots.count {
      slots.removeAll { $0.subscriber == nil }
    }
    return subscriber
  }

  private func index(of id: UInt64) -> Int? {
    var low = 0
    var high = slots.count
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < slots.count && slots[low].id == id ? low : nil
  }
}
