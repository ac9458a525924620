/// Many elements in an order, with a table of their identifiers.
///
/// An element keeps its slot when others are added or removed, so the table changes for that one
/// element. Identifiers that are not equal to themselves, such as `Double.nan`, are not in it.
struct IdentifiedTable<ID: Hashable, Element: Identifiable> where Element.ID == ID {
  private(set) var elements = PersistentArray<Element>()
  private var slots = PersistentDictionary<ID, Int>()

  /// Creates a table of elements with different identifiers.
  init(_ elements: [Element]) { for element in elements { insert(element, at: count) } }

  /// The number of elements.
  var count: Int { elements.count }
  /// The elements as a plain array.
  var allElements: [Element] { (0..<count).map { self[$0] } }

  /// The element at an index.
  subscript(index: Int) -> Element { elements[elements.slot(at: index)] }

  /// Returns the slot of the element with an identifier.
  func slot(of id: ID) -> Int? { slots[id] }

  /// Changes the element in a slot, but not its identifier.
  mutating func update<Output>(at slot: Int, _ change: (inout Element) -> Output) -> Output {
    elements.update(at: slot, change)
  }

  /// Adds an element with a new identifier before an index, or at the end. The elements of the shorter side
  /// move by one slot.
  mutating func insert(_ element: Element, at index: Int) {
    let isFront = index < count / 2
    var moved: [Element] = []
    for _ in 0..<(isFront ? index : count - index) {
      moved.append(remove(at: isFront ? elements.slots.lowerBound : elements.slots.upperBound - 1))
    }
    var next: Element? = element
    while let element = next {
      put(element, in: isFront ? elements.slots.lowerBound - 1 : elements.slots.upperBound)
      next = moved.popLast()
    }
  }

  /// Replaces the element in a slot by one with a new identifier.
  mutating func replace(at slot: Int, with element: Element) {
    slots[elements.remove(at: slot).id] = nil
    put(element, in: slot)
  }

  /// Removes the element in a slot.
  mutating func remove(at slot: Int) -> Element {
    let element = elements.remove(at: slot)
    slots[element.id] = nil
    if elements.isSparse { self = Self(allElements) }
    return element
  }

  /// Adds an element with a new identifier in an empty slot.
  private mutating func put(_ element: Element, in slot: Int) {
    elements.insert(element, at: slot)
    let id = element.id
    if id == id { slots[id] = slot }
  }
}

extension IdentifiedTable: Sendable where ID: Sendable, Element: Sendable {}
