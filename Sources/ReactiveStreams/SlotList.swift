/// A list that is sorted by identifiers. Most insertions append. No identifier is inserted while
/// the list has its element.
///
/// A removal finds its slot by bisection and empties it. Empty slots are removed when they are half
/// of the list.
// Without the annotations of this file the benchmark write per subscriber is over its limit.
@usableFromInline package struct SlotList<ID: Comparable & Sendable, Element: Sendable>: Sendable {
  @usableFromInline package struct Slot: Sendable {
    @usableFromInline package let id: ID
    @usableFromInline package var element: Element?
  }

  @usableFromInline package var slots: [Slot] = []
  /// How many elements there are.
  @usableFromInline package private(set) var count = 0

  package init() {}

  package var elements: [Element] { slots.compactMap { $0.element } }

  /// Puts an element into its place in the order.
  package mutating func insert(_ element: consuming Element, for id: ID) {
    count += 1
    if slots.isEmpty || slots[slots.count - 1].id < id {
      slots.append(Slot(id: id, element: element))
    } else {
      slots.insert(Slot(id: id, element: element), at: Self.position(of: id, in: slots))
    }
  }

  package mutating func remove(_ id: ID) -> Element? {
    let position = Self.position(of: id, in: slots)
    guard position < slots.count, slots[position].id == id else { return nil }
    let isLast = position == slots.count - 1
    let removed = isLast ? slots.removeLast().element : slots[position].element.take()
    guard let element = removed else { return nil }
    count -= 1
    if slots.isEmpty { return element }
    if count == 0 {
      slots.removeAll(keepingCapacity: slots.count <= 64)
    } else if slots.count >= 16, count * 2 <= slots.count {
      slots.removeAll { $0.element == nil }
    }
    return element
  }

  /// The position of the first slot whose identifier is not less.
  @inlinable package static func position(of id: ID, in slots: [Slot]) -> Int {
    var low = 0
    var high = slots.count
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
