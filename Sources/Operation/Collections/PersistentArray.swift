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
  private var root = SlotBranch<SlotBranch<SlotBranch<SlotLeaf<Element>>>>()
  /// The number of the first slot below the root.
  private var origin = 0
  /// The slots from the first to the last element. The first and the last one have an element.
  private(set) var slots = 0..<0

  /// The number of elements.
  var count: Int { root.count }

  /// A Boolean value that indicates whether most slots between the elements are empty.
  var isSparse: Bool { slots.count > 4 * count + 64 }

  /// A Boolean value that indicates whether there is no empty slot between the elements.
  private var isDense: Bool { slots.count == count }

  /// Returns the slot of the element at an index of the array.
  func slot(at index: Int) -> Int {
    precondition(0..<count ~= index, "Index out of range")
    return isDense ? slots.lowerBound + index : origin + root.slot(at: index)
  }

  /// Returns the index of the element in a slot.
  func index(of slot: Int) -> Int {
    isDense ? slot - slots.lowerBound : root.count(before: slot - origin)
  }

  /// The element in a slot, which must have one.
  subscript(slot: Int) -> Element { root[slot - origin] }

  /// Changes the element in a slot, which must have one.
  mutating func update<Output>(at slot: Int, _ change: (inout Element) -> Output) -> Output {
    root.update(at: slot - origin) { change(&$0!) }
  }

  /// Adds an element at the end.
  mutating func append(_ element: Element) { insert(element, at: slots.upperBound) }

  /// Adds an element in an empty slot.
  mutating func insert(_ element: Element, at slot: Int) {
    while slot < origin { origin -= root.addFirstChild() }
    root.update(at: slot - origin) { $0 = element }
    let isFirst = count == 1
    slots =
      isFirst
      ? slot..<slot + 1 : min(slots.lowerBound, slot)..<max(slots.upperBound, slot + 1)
  }

  /// Removes the element in a slot, which must have one.
  mutating func remove(at slot: Int) -> Element {
    let element = root.update(at: slot - origin) { $0.take()! }
    if count == 0 {
      self = PersistentArray()
    } else if slot == slots.lowerBound {
      origin += root.removeEmptyFirstChildren()
      slots = origin + root.slot(at: 0)..<slots.upperBound
    } else if slot == slots.upperBound - 1 {
      slots = slots.lowerBound..<origin + root.slot(at: count - 1) + 1
    }
    return element
  }
}

/// A node of the tree. It numbers its slots from zero.
private protocol SlotNode<Element> {
  associatedtype Element
  /// The number of slots of a node; the root may have more.
  static var slotCount: Int { get }
  /// The number of elements.
  var count: Int { get }
  init()
  /// The element in a slot, which must have one.
  subscript(slot: Int) -> Element { get }
  /// Changes the content of a slot, which may be empty before and after.
  mutating func update<Output>(at slot: Int, _ change: (inout Element?) -> Output) -> Output
  /// Returns the number of elements before a slot.
  func count(before slot: Int) -> Int
  /// Returns the slot of the element at an index.
  func slot(at index: Int) -> Int
}

private struct SlotLeaf<Element>: SlotNode {
  private(set) var count = 0
  /// One for each slot; none in a leaf without elements.
  private var slots: [Element?] = []

  init() {}

  static var slotCount: Int { 16 }

  subscript(slot: Int) -> Element { slots[slot]! }

  mutating func update<Output>(at slot: Int, _ change: (inout Element?) -> Output) -> Output {
    if slots.isEmpty { slots = Array(repeating: nil, count: Self.slotCount) }
    if slots[slot] != nil { count -= 1 }
    defer { if slots[slot] != nil { count += 1 } }
    return change(&slots[slot])
  }

  func count(before slot: Int) -> Int { slots[..<slot].count { $0 != nil } }

  func slot(at index: Int) -> Int {
    var rest = index
    var slot = 0
    while rest > 0 || slots[slot] == nil {
      if slots[slot] != nil { rest -= 1 }
      slot += 1
    }
    return slot
  }
}

private struct SlotBranch<Child: SlotNode>: SlotNode {
  private(set) var count = 0
  /// The last one has an element.
  private var children: [Child] = []

  init() {}

  static var slotCount: Int { 32 * Child.slotCount }

  subscript(slot: Int) -> Child.Element { children[slot / Child.slotCount][slot % Child.slotCount] }

  mutating func update<Output>(at slot: Int, _ change: (inout Child.Element?) -> Output) -> Output {
    let child = slot / Child.slotCount
    while children.count <= child { children.append(Child()) }
    count -= children[child].count
    defer {
      count += children[child].count
      if children[child].count == 0 { children[child] = Child() }
      while children.last?.count == 0 { children.removeLast() }
    }
    return children[child].update(at: slot % Child.slotCount, change)
  }

  func count(before slot: Int) -> Int {
    let child = slot / Child.slotCount
    return children[..<child].reduce(0) { $0 + $1.count }
      + children[child].count(before: slot % Child.slotCount)
  }

  func slot(at index: Int) -> Int {
    var rest = index
    var child = 0
    while rest >= children[child].count {
      rest -= children[child].count
      child += 1
    }
    return child * Child.slotCount + children[child].slot(at: rest)
  }

  /// Adds a child before the others, and returns the number of its slots.
  mutating func addFirstChild() -> Int {
    children.insert(Child(), at: 0)
    return Child.slotCount
  }

  /// Removes the children before the first element, and returns the number of their slots.
  mutating func removeEmptyFirstChildren() -> Int {
    let emptyCount = children.prefix { $0.count == 0 }.count
    if emptyCount > 0 { children.removeFirst(emptyCount) }
    return emptyCount * Child.slotCount
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

extension SlotLeaf: Equatable where Element: Equatable {}
extension SlotBranch: Equatable where Child: Equatable {}

extension PersistentArray: Sendable where Element: Sendable {}
extension SlotLeaf: Sendable where Element: Sendable {}
extension SlotBranch: Sendable where Child: Sendable {}
