/// A queue whose `append` and `popFirst` take constant time, amortised.
@usableFromInline package struct FIFO<Element: Sendable>: Sendable {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var head = 0

  @inlinable package init() {}

  @inlinable package var count: Int { storage.count - head }
  @inlinable package var isEmpty: Bool { head == storage.count }

  @inlinable package mutating func append(_ element: Element) {
    storage.append(element)
  }

  @inlinable package mutating func popFirst() -> Element? {
    guard head < storage.count else { return nil }
    let element = storage[head].take()
    head += 1
    if head == storage.count {
      storage.removeAll(keepingCapacity: head <= 64)
      head = 0
    } else if head >= 32, head * 2 >= storage.count {
      storage.removeFirst(head)
      head = 0
    }
    return element
  }

  @inlinable package mutating func removeAll() {
    self = FIFO()
  }
}
