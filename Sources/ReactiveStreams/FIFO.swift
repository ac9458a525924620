/// A queue whose `append` and `popFirst` take constant time, amortised.
///
/// The first element has a place of its own: most queues hold one at most.
package struct FIFO<Element: Sendable>: Sendable {
  /// `nil` only if there is none behind it either.
  var first: Element?
  var others: [Element?] = []
  var head = 0

  package init() {}

  package var count: Int { first == nil ? 0 : 1 + others.count - head }
  package var isEmpty: Bool { first == nil }

  package mutating func append(_ element: consuming Element) {
    if first == nil {
      first = element
    } else {
      others.append(element)
    }
  }

  package mutating func popFirst() -> Element? {
    guard let element = first.take() else { return nil }
    if head < others.count { first = popOther() }
    return element
  }

  mutating func popOther() -> Element? {
    let element = others[head].take()
    head += 1
    if head == others.count {
      others.removeAll(keepingCapacity: head <= 64)
      head = 0
    } else if head >= 32, head * 2 >= others.count {
      others.removeFirst(head)
      head = 0
    }
    return element
  }

  package mutating func removeAll() {
    self = FIFO()
  }
}
