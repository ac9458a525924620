/// A queue whose `append` and `popFirst` take constant time, amortised.
package struct FIFO<Element: Sendable>: Sendable {
  private var storage: [Element?] = []
  private var head = 0

  package init() {}

  package var count: Int { storage.count - head }
  package var isEmpty: Bool { head == storage.count }

  package mutating func append(_ element: Element) {
    storage.append(element)
  }

  package mutating func popFirst() -> Element? {
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

  package mutating func removeAll() {
    self = FIFO()
  }
}
