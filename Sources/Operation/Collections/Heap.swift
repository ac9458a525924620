/// A priority queue that returns the least element first: a binary heap.
struct Heap<Element: Comparable & Sendable>: Sendable {
  /// Element `i` is not greater than its children, elements `2 * i + 1` and `2 * i + 2`.
  private(set) var elements: [Element] = []

  var count: Int { elements.count }
  /// The least element.
  var first: Element? { elements.first }

  init(_ elements: [Element] = []) { for element in elements { insert(element) } }

  mutating func insert(_ element: Element) {
    elements.append(element)
    var child = elements.count - 1
    while child > 0, elements[child] < elements[(child - 1) / 2] {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes the least element, and returns it.
  mutating func popFirst() -> Element? {
    guard let first = elements.first else { return nil }
    let last = elements.removeLast()
    if elements.isEmpty { return first }
    elements[0] = last
    var parent = 0
    while let child = leastChild(of: parent), elements[child] < elements[parent] {
      elements.swapAt(child, parent)
      parent = child
    }
    return first
  }

  private func leastChild(of parent: Int) -> Int? {
    let left = 2 * parent + 1
    guard left < elements.count else { return nil }
    let right = left + 1
    return right < elements.count && elements[right] < elements[left] ? right : left
  }
}
