/// A queue whose `append` and `popFirst` take constant time, amortised.
///
/// The first element is stored beside the array: most queues hold at most one element.
// Without the annotations of this file the benchmarks write per subscriber and state stream are over
// their limits.
@usableFromInline package struct FIFO<Element: Sendable>: Sendable {
  /// `nil` only if there is none in `others` either.
  @usableFromInline var first: Element?
  @usableFromInline var others: [Element?] = []
  @usableFromInline var head = 0

  package init() {}

  package var count: Int { first == nil ? 0 : 1 + others.count - head }
  package var isEmpty: Bool { first == nil }

  @inlinable package mutating func append(_ element: consuming Element) {
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

  /// Removes the last element if it satisfies a condition.
  @inlinable package mutating func popLast(if condition: (Element) -> Bool) -> Element? {
    if others.isEmpty { return first.map(condition) == true ? first.take() : nil }
    guard let last = others[others.count - 1], condition(last) else { return nil }
    if head == others.count - 1 { return popOther() }
    others.removeLast()
    return last
  }

  @usableFromInline mutating func popOther() -> Element? {
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

  /// Removes all elements, and returns them, to be released without a lock.
  mutating func takeAll() -> FIFO { exchange(&self, with: FIFO()) }
}
