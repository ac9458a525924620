/// An array whose copies share everything that has not been changed since, and whose elements keep
/// their places when others are added or removed.
///
/// Each element is in a numbered *slot*. The order of the elements is that of their slots. A removed
/// element leaves its slot empty, and an element is inserted into any empty slot. Slots exist in
/// both directions without limit, also negative ones.
///
/// The slots are in a tree of small arrays. Three levels of branches are above the leaves, and the
/// root alone grows: it has one child for 16,384 slots. So a change copies four short arrays at
/// most, however many elements there are and whatever other copies exist, and nothing that is not
/// shared.
struct PersistentArray<Element> {
  private var root = SlotNode<Element>()
  /// The number of the first slot below the root.
  private var origin = 0
  /// The slots from the first to the last element. The first and the last one have an element.
  private(set) var slots = 0..<0

  /// The height of the root, and the number of slots of each of its children.
  private static var height: Int { 3 }
  private static var childSize: Int { SlotNode<Element>.slotCount(height - 1) }

  /// The number of elements.
  var count: Int { root.count }

  /// A Boolean value that indicates whether most slots between the elements are empty.
  var isSparse: Bool { slots.count > 4 * count + 64 }

  /// A Boolean value that indicates whether there is no empty slot between the elements.
  private var isDense: Bool { slots.count == count }

  /// Returns the slot of the element at an index of the array.
  func slot(at index: Int) -> Int {
    precondition(0..<count ~= index, "Index out of range")
    return isDense ? slots.lowerBound + index : origin + root.slot(at: index, Self.height)
  }

  /// Returns the index of the element in a slot.
  func index(of slot: Int) -> Int {
    isDense ? slot - slots.lowerBound : root.count(before: slot - origin, Self.height)
  }

  /// The element in a slot, which must have one.
  subscript(slot: Int) -> Element { root.element(at: slot - origin, Self.height) }

  /// Changes the element in a slot, which must have one.
  mutating func update<Output>(at slot: Int, _ change: (inout Element) -> Output) -> Output {
    root.update(at: slot - origin, Self.height) { change(&$0!) }
  }

  /// Adds an element at the end.
  mutating func append(_ element: Element) { insert(element, at: slots.upperBound) }

  /// Adds an element in an empty slot.
  mutating func insert(_ element: Element, at slot: Int) {
    while slot < origin {
      root.addFirstChild()
      origin -= Self.childSize
    }
    root.update(at: slot - origin, Self.height) { $0 = element }
    let others = count == 1 ? slot..<slot + 1 : slots
    slots = min(others.lowerBound, slot)..<max(others.upperBound, slot + 1)
  }

  /// Removes the element in a slot, which must have one.
  mutating func remove(at slot: Int) -> Element {
    let element = root.update(at: slot - origin, Self.height) { $0.take()! }
    if count == 0 {
      self = PersistentArray()
    } else if slot == slots.lowerBound {
      origin += root.removeEmptyFirstChildren() * Self.childSize
      slots = origin + root.slot(at: 0, Self.height)..<slots.upperBound
    } else if slot == slots.upperBound - 1 {
      slots = slots.lowerBound..<origin + root.slot(at: count - 1, Self.height) + 1
    }
    return element
  }
}

/// A node of the tree: a leaf with slots, or a branch with children. It numbers its slots from zero.
///
/// The height of a leaf is zero. Nodes do not store it, and are passed it instead.
private struct SlotNode<Element> {
  /// The number of elements.
  private(set) var count = 0
  /// The contents of the slots of a leaf; none in a leaf without elements.
  private var slots: [Element?] = []
  /// The children of a branch. The last one has an element.
  private var children: [SlotNode] = []

  /// The number of slots of a node; the root may have more.
  static func slotCount(_ height: Int) -> Int { 16 << (5 * height) }

  /// Returns the element in a slot, which must have one.
  func element(at slot: Int, _ height: Int) -> Element {
    if height == 0 { return slots[slot]! }
    let size = Self.slotCount(height - 1)
    return children[slot / size].element(at: slot % size, height - 1)
  }

  /// Changes the content of a slot, which may be empty before and after.
  mutating func update<Output>(
    at slot: Int, _ height: Int, _ change: (inout Element?) -> Output
  ) -> Output {
    if height == 0 {
      if slots.isEmpty { slots = Array(repeating: nil, count: Self.slotCount(0)) }
      if slots[slot] != nil { count -= 1 }
      defer { if slots[slot] != nil { count += 1 } }
      return change(&slots[slot])
    }
    let size = Self.slotCount(height - 1)
    let child = slot / size
    while children.count <= child { children.append(SlotNode()) }
    count -= children[child].count
    defer {
      count += children[child].count
      if children[child].count == 0 { children[child] = SlotNode() }
      while children.last?.count == 0 { children.removeLast() }
    }
    return children[child].update(at: slot % size, height - 1, change)
  }

  /// Returns the number of elements before a slot.
  func count(before slot: Int, _ height: Int) -> Int {
    if height == 0 { return slots[..<slot].count { $0 != nil } }
    let size = Self.slotCount(height - 1)
    return children[..<(slot / size)].reduce(0) { $0 + $1.count }
      + children[slot / size].count(before: slot % size, height - 1)
  }

  /// Returns the slot of the element at an index.
  func slot(at index: Int, _ height: Int) -> Int {
    func count(at position: Int) -> Int {
      height > 0 ? children[position].count : slots[position] == nil ? 0 : 1
    }
    var (rest, position) = (index, 0)
    while rest >= count(at: position) {
      rest -= count(at: position)
      position += 1
    }
    if height == 0 { return position }
    return position * Self.slotCount(height - 1) + children[position].slot(at: rest, height - 1)
  }

  /// Adds a child before the others.
  mutating func addFirstChild() { children.insert(SlotNode(), at: 0) }

  /// Removes the children before the first element, and returns their number.
  mutating func removeEmptyFirstChildren() -> Int {
    let emptyCount = children.prefix { $0.count == 0 }.count
    if emptyCount > 0 { children.removeFirst(emptyCount) }
    return emptyCount
  }
}

extension PersistentArray: Equatable where Element: Equatable {
  /// Returns a Boolean value that indicates whether both have equal elements in the same order.
  ///
  /// Nodes that both share are not compared.
  static func == (lhs: Self, rhs: Self) -> Bool {
    guard lhs.count == rhs.count else { return false }
    // Equal slots at equal places in the tree make equal trees, if none between them is empty.
    if lhs.isDense, lhs.slots == rhs.slots, lhs.origin == rhs.origin { return lhs.root == rhs.root }
    return (0..<lhs.count).allSatisfy { lhs[lhs.slot(at: $0)] == rhs[rhs.slot(at: $0)] }
  }
}

extension SlotNode: Equatable where Element: Equatable {}

extension PersistentArray: Sendable where Element: Sendable {}
extension SlotNode: Sendable where Element: Sendable {}
