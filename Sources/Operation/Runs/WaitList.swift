import ReactiveStreams

/// What waits, or is waited for, by the identifiers of the waits, in the order in which they began: a task
/// group removes a child in constant time if its children end in the order in which they were added.
///
/// The first element is stored beside the list: most tasks have no other, and a list on the heap for it puts
/// the benchmark fetch further over its limit.
struct WaitList<Element: Sendable>: Sendable {
  private var first: (id: OperationTaskID, element: Element)?
  private var others = SlotList<OperationTaskID, Element>()

  var count: Int { others.count + (first == nil ? 0 : 1) }
  var elements: [Element] { (first.map { [$0.element] } ?? []) + others.elements }

  mutating func insert(_ element: Element, for id: OperationTaskID) {
    if count == 0 {
      first = (id, element)
    } else if let present = first, id < present.id {
      others.insert(present.element, for: present.id)
      first = (id, element)
    } else {
      others.insert(element, for: id)
    }
  }

  mutating func remove(_ id: OperationTaskID) -> Element? {
    first?.id == id ? first.take()?.element : others.remove(id)
  }

  func forEach(_ body: (Element) -> Void) {
    if let first { body(first.element) }
    for slot in others.slots { slot.element.map(body) }
  }
}
