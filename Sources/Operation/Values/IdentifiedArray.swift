/// An array whose elements are also found by their identifiers, in constant time.
///
/// An element whose identifier is there already takes that element's place, whichever way it comes
/// in, so no identifier stands twice. One whose identifier is not equal to itself, such as
/// `Double.nan`, is found by its position only, and takes nobody's place.
public struct IdentifiedArray<ID: Hashable, Element: Identifiable> where Element.ID == ID {
  @usableFromInline var elements: [Element] = []
  /// The positions by identifier, as counted from the origin; `nil` for a few elements, which are
  /// found faster by a look.
  @usableFromInline var positions: [ID: Int]?
  /// What a position is when it is noted as zero: it moves with the first element, so that not all
  /// are noted anew when one comes before them, or goes.
  @usableFromInline var origin = 0

  @inlinable static var largestWithoutPositions: Int { 16 }

  /// Creates an empty array.
  @inlinable public init() {}

  /// Creates an array of the given elements, in their order.
  @inlinable public init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// The identifiers in the order of the elements.
  @inlinable public var ids: [ID] { elements.map(\.id) }

  /// The position of the element with an identifier.
  @inlinable public func index(id: ID) -> Int? {
    // In place: an element is not copied for a look at its identifier.
    elements.withUnsafeBufferPointer { elements in
      guard let positions else { return elements.indices.first { elements[$0].id == id } }
      // The one that came last is asked for most.
      if let last = elements.indices.last, elements[last].id == id { return last }
      return positions[id].map { $0 + origin }
    }
  }

  /// The element with an identifier. Setting `nil` removes it; setting an element that is not there
  /// appends it.
  public subscript(id id: ID) -> Element? {
    @inlinable get { index(id: id).map { elements[$0] } }
    @inlinable set {
      if let newValue {
        if newValue.id != id { remove(id: id) }
        append(newValue)
      } else {
        remove(id: id)
      }
    }
  }

  /// Adds an element at the end, or puts it in the place of the one with its identifier.
  @inlinable public mutating func append(_ element: consuming Element) {
    if let index = index(id: element.id) {
      elements[index] = element
    } else {
      elements.append(element)
      index(lastOf: elements.count)
    }
  }

  /// Adds elements as ``append(_:)`` does.
  @inlinable public mutating func append(contentsOf newElements: some Sequence<Element>) {
    for element in newElements { append(element) }
  }

  /// Adds an element before a position, or puts it in the place of the one with its identifier.
  ///
  /// A position outside of the array stands for the nearest end.
  @inlinable public mutating func insert(_ element: Element, at index: Int) {
    if let present = self.index(id: element.id) {
      elements[present] = element
    } else {
      let index = Swift.min(Swift.max(index, 0), elements.count)
      elements.insert(element, at: index)
      reindex(around: index, shift: 1)
    }
  }

  /// Changes the element with an identifier, if it is there, in its place; the identifier stays.
  @inlinable mutating func update(id: ID, _ change: (inout Element) -> Void) {
    if let index = index(id: id) { change(&elements[index]) }
  }

  /// Removes the element with an identifier.
  @discardableResult
  @inlinable public mutating func remove(id: ID) -> Element? {
    guard let index = index(id: id) else { return nil }
    return remove(at: index)
  }

  /// Removes the element at a position, which must be one of the array.
  @discardableResult
  @inlinable public mutating func remove(at index: Int) -> Element {
    let element = elements.remove(at: index)
    positions?[element.id] = nil
    reindex(around: index, shift: -1)
    return element
  }

  /// Removes the first elements: all if there are fewer than `count`, none if it is negative.
  @inlinable public mutating func removeFirst(_ count: Int) {
    guard count > 0 else { return }
    let count = Swift.min(count, elements.count)
    for element in elements.prefix(count) { positions?[element.id] = nil }
    elements.removeFirst(count)
    origin -= count
  }

  /// Removes the last elements: all if there are fewer than `count`, none if it is negative.
  @inlinable public mutating func removeLast(_ count: Int) {
    guard count > 0 else { return }
    for _ in 0..<Swift.min(count, elements.count) { remove(at: elements.count - 1) }
  }

  /// Removes the elements that satisfy a predicate; none if that throws.
  @inlinable public mutating func removeAll(
    where shouldBeRemoved: (Element) throws -> Bool
  ) rethrows {
    elements = try elements.filter { try !shouldBeRemoved($0) }
    rebuildPositions()
  }

  /// Changes every element, and keeps the kind of array.
  public func map(_ transform: (Element) throws -> Element) rethrows -> Self {
    Self(try elements.map(transform))
  }

  @inlinable mutating func index(lastOf count: Int) {
    if positions != nil {
      note(count - 1..<count)
    } else if count > Self.largestWithoutPositions {
      rebuildPositions()
    }
  }

  /// Notes positions anew after an element came to one, or left it: those before it or those
  /// behind it, whichever are fewer.
  @inlinable mutating func reindex(around index: Int, shift: Int) {
    guard positions != nil else {
      if elements.count > Self.largestWithoutPositions { rebuildPositions() }
      return
    }
    if index < elements.count / 2 {
      origin += shift
      note(0..<(shift > 0 ? index + 1 : index))
    } else {
      note(index..<elements.count)
    }
  }

  @inlinable mutating func note(_ range: Range<Int>) {
    for index in range {
      let id = elements[index].id
      // One that is not equal to itself would be noted anew each time, and never found.
      if id == id { positions?[id] = index - origin }
    }
  }

  @inlinable mutating func rebuildPositions() {
    guard elements.count > Self.largestWithoutPositions else {
      positions = nil
      return
    }
    origin = 0
    positions = Dictionary(minimumCapacity: elements.count)
    note(0..<elements.count)
  }
}

/// An ``IdentifiedArray`` of elements under their own identifiers.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>

extension IdentifiedArray: RandomAccessCollection {
  /// The position of the first element: zero.
  @inlinable public var startIndex: Int { 0 }
  /// The position after the last element.
  @inlinable public var endIndex: Int { elements.count }

  /// The element at a position, which must be one of the array. An element with another identifier
  /// that is set here takes the place of the one that has this identifier already, if there is one,
  /// and leaves this place.
  public subscript(position: Int) -> Element {
    @inlinable get { elements[position] }
    @inlinable set {
      let old = elements[position].id
      if old == newValue.id {
        elements[position] = newValue
      } else if let present = index(id: newValue.id) {
        elements[present] = newValue
        remove(at: position)
      } else {
        elements[position] = newValue
        positions?[old] = nil
        note(position..<position + 1)
      }
    }
  }
}

extension IdentifiedArray: ExpressibleByArrayLiteral {
  /// Creates an array of the given elements, in their order.
  @inlinable public init(arrayLiteral elements: Element...) {
    self.init(elements)
  }
}

extension IdentifiedArray: Sendable where Element: Sendable, ID: Sendable {}

extension IdentifiedArray: Equatable where Element: Equatable {
  /// Tells whether both have equal elements in the same order.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.elements == rhs.elements }
}

extension IdentifiedArray: Hashable where Element: Hashable {
  /// Feeds the elements.
  public func hash(into hasher: inout Hasher) { hasher.combine(elements) }
}

extension IdentifiedArray: CustomStringConvertible {
  /// The elements, as an array shows them.
  public var description: String { elements.description }
}

extension IdentifiedArray: Encodable where Element: Encodable {
  /// Writes the elements as an array.
  public func encode(to encoder: any Encoder) throws { try elements.encode(to: encoder) }
}

extension IdentifiedArray: Decodable where Element: Decodable {
  /// Reads an array of elements.
  public init(from decoder: any Decoder) throws { self.init(try [Element](from: decoder)) }
}
