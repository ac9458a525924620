/// An array whose elements are also found by their identifiers, in constant time.
///
/// An element whose identifier is there already takes that element's place, whichever way it comes
/// in, so no identifier stands twice. One whose identifier is not equal to itself, such as
/// `Double.nan`, is found by its position only, and takes nobody's place.
public struct IdentifiedArray<ID: Hashable, Element: Identifiable> where Element.ID == ID {
  /// The elements at the end, of which there is a chunk at most; all, as long as none is before.
  var tail: [Element] = []
  /// The elements before the tail, and the positions of all; none for a few elements, which are found
  /// faster by a look. States, which are copied with each change that is told, have two words of an
  /// array thereby.
  var rest = Boxed<Rest>.none

  /// How many elements are found by a look; they are in the tail.
  static var largestWithoutPositions: Int { 16 }

  /// Creates an empty array.
  public init() {}

  /// Creates an array of the given elements, in their order.
  public init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// The identifiers in the order of the elements.
  public var ids: [ID] { map(\.id) }

  /// The position of the element with an identifier.
  public func index(id: ID) -> Int? {
    if rest.isNone {
      // In place: an element is not copied for a look at its identifier.
      return tail.withUnsafeBufferPointer { elements in
        elements.indices.first { elements[$0].id == id }
      }
    }
    // The one that came last is asked for most.
    if let last = tail.last, last.id == id { return count - 1 }
    return rest.content.positions[id].map { $0 + rest.content.origin }
  }

  /// The element with an identifier. Setting `nil` removes it; setting an element that is not there
  /// appends it.
  public subscript(id id: ID) -> Element? {
    get { index(id: id).map { self[inPlace: $0] } }
    set {
      if let newValue {
        if newValue.id != id { remove(id: id) }
        append(newValue)
      } else {
        remove(id: id)
      }
    }
  }

  /// Adds an element at the end, or puts it in the place of the one with its identifier.
  public mutating func append(_ element: consuming Element) {
    if let index = indexOrEnd(id: element.id) {
      self[inPlace: index] = element
    } else {
      putNoted(element)
    }
  }

  /// Does what ``append(_:)`` does, and gives the element whose place was taken.
  mutating func appendOrReplace(_ element: consuming Element) -> Element? {
    guard let index = indexOrEnd(id: element.id) else {
      putNoted(element)
      return nil
    }
    let old = self[inPlace: index]
    self[inPlace: index] = element
    return old
  }

  /// The position of the element with an identifier. If there is none, the one behind all is noted
  /// as that, for an element that has to come there.
  mutating func indexOrEnd(id: ID) -> Int? {
    if rest.isNone || id != id { return index(id: id) }
    let origin = rest.content.origin
    return rest.content.positions.insert(count - origin, for: id).map { $0 + origin }
  }

  /// Puts an element behind all, whose position has been noted if positions are.
  mutating func putNoted(_ element: consuming Element) {
    putLast(element)
    if rest.isNone, count > Self.largestWithoutPositions { notePositions() }
  }

  /// Adds elements as ``append(_:)`` does.
  public mutating func append(contentsOf newElements: some Sequence<Element>) {
    for element in newElements { append(element) }
  }

  /// Adds an element before a position, or puts it in the place of the one with its identifier.
  ///
  /// A position outside of the array stands for the nearest end.
  public mutating func insert(_ element: Element, at index: Int) {
    if let present = self.index(id: element.id) {
      self[inPlace: present] = element
    } else {
      insertNew(element, at: Swift.min(Swift.max(index, 0), count))
    }
  }

  /// Adds an element whose identifier is not there before a position, which must be one of the array
  /// or its end.
  mutating func insertNew(_ element: Element, at index: Int) {
    put(element, at: index)
    reindex(around: index, shift: 1)
  }

  /// Changes the element with an identifier, if it is there, in its place; the identifier stays.
  mutating func update(id: ID, _ change: (inout Element) -> Void) {
    if let index = index(id: id) { change(&self[inPlace: index]) }
  }

  /// Removes the element with an identifier.
  @discardableResult
  public mutating func remove(id: ID) -> Element? {
    guard let index = index(id: id) else { return nil }
    return remove(at: index)
  }

  /// Removes the element at a position, which must be one of the array.
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    // There are few, as most runs find it, and nothing else is to be seen to.
    if rest.isNone { return tail.remove(at: index) }
    let element = take(at: index)
    rest.content.positions[element.id] = nil
    reindex(around: index, shift: -1)
    shrink()
    return element
  }

  /// Removes the element with an identifier, whose place the last one takes: what an order would cost
  /// grows with the array.
  mutating func removeUnordered(id: ID) -> Element? {
    guard let index = index(id: id) else { return nil }
    if rest.isNone {
      if index < tail.count - 1 { tail.swapAt(index, tail.count - 1) }
      return tail.removeLast()
    }
    if index == count - 1 { return remove(at: index) }
    let last = remove(at: count - 1)
    let element = self[inPlace: index]
    self[inPlace: index] = last
    rest.content.positions[id] = nil
    note(index..<index + 1)
    return element
  }

  /// Removes the first elements: all if there are fewer than `count`, none if it is negative.
  public mutating func removeFirst(_ count: Int) {
    guard count > 0 else { return }
    for _ in 0..<Swift.min(count, self.count) { remove(at: 0) }
  }

  /// Removes the last elements: all if there are fewer than `count`, none if it is negative.
  public mutating func removeLast(_ count: Int) {
    guard count > 0 else { return }
    for _ in 0..<Swift.min(count, self.count) { remove(at: self.count - 1) }
  }

  /// Removes the elements that satisfy a predicate; none if that throws.
  public mutating func removeAll(
    where shouldBeRemoved: (Element) throws -> Bool
  ) rethrows {
    self = Self(try filter { try !shouldBeRemoved($0) })
  }

  /// Changes every element, and keeps the kind of array.
  public func map(_ transform: (Element) throws -> Element) rethrows -> Self {
    Self(try map(transform) as [Element])
  }

  /// Notes positions anew after an element came to one, or left it: those before it or those
  /// behind it, whichever are fewer.
  mutating func reindex(around index: Int, shift: Int) {
    guard !rest.isNone else {
      if count > Self.largestWithoutPositions { notePositions() }
      return
    }
    if index < count / 2 {
      rest.content.origin += shift
      note(0..<(shift > 0 ? index + 1 : index))
    } else {
      note(index..<count)
    }
  }

  mutating func note(_ range: Range<Int>) {
    for index in range {
      let id = read(at: index) { $0.id }
      // One that is not equal to itself would be noted anew each time, and never found.
      if id == id { rest.content.positions[id] = index - rest.content.origin }
    }
  }

  /// Gives back what was made for many more elements than are left.
  mutating func shrink() {
    if isEmpty {
      rest = .none
    } else if rest.content.positions.isSparse {
      rest.content.positions = ChunkedDictionary(minimumCapacity: count)
      rest.content.origin = 0
      note(0..<count)
    }
  }

  /// Begins to keep positions, as there are too many elements for a look.
  mutating func notePositions() {
    rest = .some(Rest(minimumCapacity: count))
    note(0..<count)
  }
}

/// An ``IdentifiedArray`` of elements under their own identifiers.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>

extension IdentifiedArray: RandomAccessCollection {
  /// The position of the first element: zero.
  public var startIndex: Int { 0 }
  /// The position after the last element.
  public var endIndex: Int { frontCount + tail.count }
  /// How many elements there are.
  public var count: Int { frontCount + tail.count }
  /// The last element; mostly it is found without a look at the others.
  public var last: Element? { tail.last ?? (isEmpty ? nil : self[inPlace: count - 1]) }

  /// The element at a position, which must be one of the array. An element with another identifier
  /// that is set here takes the place of the one that has this identifier already, if there is one,
  /// and leaves this place.
  public subscript(position: Int) -> Element {
    get { self[inPlace: position] }
    set {
      let old = self[inPlace: position].id
      if old == newValue.id {
        self[inPlace: position] = newValue
      } else if let present = index(id: newValue.id) {
        self[inPlace: present] = newValue
        remove(at: position)
      } else {
        self[inPlace: position] = newValue
        if !rest.isNone {
          rest.content.positions[old] = nil
          note(position..<position + 1)
        }
      }
    }
  }
}

extension IdentifiedArray: ExpressibleByArrayLiteral {
  /// Creates an array of the given elements, in their order.
  public init(arrayLiteral elements: Element...) {
    self.init(elements)
  }
}

extension IdentifiedArray: Sendable where Element: Sendable, ID: Sendable {}

extension IdentifiedArray: Equatable where Element: Equatable {
  /// Tells whether both have equal elements in the same order.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.hasElements(equalTo: rhs) }
}

extension IdentifiedArray: Hashable where Element: Hashable {
  /// Feeds the elements.
  public func hash(into hasher: inout Hasher) { hasher.combine(Array(self)) }
}

extension IdentifiedArray: CustomStringConvertible {
  /// The elements, as an array shows them.
  public var description: String { Array(self).description }
}

extension IdentifiedArray: Encodable where Element: Encodable {
  /// Writes the elements as an array.
  public func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}

extension IdentifiedArray: Decodable where Element: Decodable {
  /// Reads an array of elements.
  public init(from decoder: any Decoder) throws { self.init(try [Element](from: decoder)) }
}
