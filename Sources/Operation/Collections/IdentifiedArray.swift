/// An ordered collection whose elements are also found by their identifiers, in constant time.
///
/// An element replaces the one with the same identifier, however it is added. So each identifier
/// occurs once. An element whose identifier is not equal to itself, such as `Double.nan`, is found by
/// its position only, and replaces no other.
///
/// Copies share their elements. A change at one of the ends, a replacement and a removal take time
/// that does not grow with the number of elements, also where other copies exist. An insertion
/// elsewhere takes time in proportion to the distance from the nearer end.
///
/// One exception: when most of the elements were removed, a removal renews the array, which takes time in
/// proportion to their number. An array that is changed further pays that rarely, but each of many
/// copies of an array just before that point pays it for its own removal.
public struct IdentifiedArray<ID: Hashable, Element: Identifiable> where Element.ID == ID {
  /// The elements. They take one word in a state, which is copied with each change: with two, the benchmark
  /// write per subscriber is over its limit.
  fileprivate enum Storage {
    /// Elements that are found by comparing their identifiers one by one.
    case short([Element])
    indirect case long(IdentifiedTable<ID, Element>)
  }

  private var storage = Storage.short([])

  private var isShort: Bool { if case .short = storage { true } else { false } }

  /// The elements of a short array; none of a long one.
  private var short: [Element] {
    get { if case .short(let elements) = storage { elements } else { [] } }
    // Changes them in place: they are referenced once meanwhile.
    _modify {
      var elements = short
      storage = .short([])
      defer { storage = .short(elements) }
      yield &elements
    }
  }

  /// The elements of a long array.
  var table: IdentifiedTable<ID, Element>? {
    if case .long(let table) = storage { table } else { nil }
  }

  /// The number of elements above which an array becomes a long one. It becomes a short one again
  /// with half as many.
  static var largestShortCount: Int { 16 }

  /// Creates an empty array.
  public init() {}

  /// Creates an array of the given elements, in their order.
  public init(_ elements: some Sequence<Element>) { append(contentsOf: elements) }

  /// The identifiers in the order of the elements.
  public var ids: [ID] { map { $0.id } }

  /// Returns the position of the element with an identifier, or `nil` if there is none.
  public func index(id: ID) -> Int? {
    if let table { return table.slot(of: id).map { table.elements.index(of: $0) } }
    return short.firstIndex { $0.id == id }
  }

  /// The element with an identifier. Setting `nil` removes it; setting a new element appends that.
  public subscript(id id: ID) -> Element? {
    get {
      if let table { return table.slot(of: id).map { table.elements[$0] } }
      return short.first { $0.id == id }
    }
    set {
      if newValue?.id != id { remove(id: id) }
      if let newValue { append(newValue) }
    }
  }

  /// Adds an element at the end, or replaces the one with its identifier.
  public mutating func append(_ element: consuming Element) { insert(element, at: count) }

  /// Adds elements as ``append(_:)`` does.
  public mutating func append(contentsOf newElements: some Sequence<Element>) {
    for element in newElements { append(element) }
  }

  /// Adds an element before a position, or replaces the one with its identifier.
  ///
  /// A position outside of the array stands for the nearest end.
  public mutating func insert(_ element: Element, at index: Int) {
    if let present = self.index(id: element.id) { return update(at: present) { $0 = element } }
    let index = Swift.min(Swift.max(index, 0), count)
    if !isShort { return updateTable { $0.insert(element, at: index) } }
    if index == short.count { short.append(element) } else { short.insert(element, at: index) }
    if short.count > Self.largestShortCount { storage = .long(IdentifiedTable(short)) }
  }

  /// Changes the element at a position of the array, but not its identifier.
  mutating func update<Output>(at index: Int, _ change: (inout Element) -> Output) -> Output {
    if isShort { return change(&short[index]) }
    return updateTable { $0.update(at: $0.elements.slot(at: index), change) }
  }

  /// Changes the element with an identifier, if there is one, but not its identifier.
  @discardableResult
  mutating func update<Output>(id: ID, _ change: (inout Element) -> Output) -> Output? {
    index(id: id).map { update(at: $0, change) }
  }

  /// Removes the element with an identifier, and returns it; `nil` if there is none.
  @discardableResult
  public mutating func remove(id: ID) -> Element? { index(id: id).map { remove(at: $0) } }

  /// Removes the element at a position of the array, and returns it.
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    if isShort { return short.remove(at: index) }
    return updateTable { $0.remove(at: $0.elements.slot(at: index)) }
  }

  /// Removes the first elements: all if there are fewer than `count`, none if it is negative.
  public mutating func removeFirst(_ count: Int) {
    for _ in 0..<Swift.min(Swift.max(count, 0), self.count) { remove(at: 0) }
  }

  /// Removes the last elements: all if there are fewer than `count`, none if it is negative.
  public mutating func removeLast(_ count: Int) {
    for _ in 0..<Swift.min(Swift.max(count, 0), self.count) { remove(at: self.count - 1) }
  }

  /// Removes the elements that satisfy a predicate; none if that throws.
  ///
  /// It costs the number of elements.
  ///
  /// - Parameter shouldBeRemoved: Called once for each element, in their order.
  /// - Throws: The error of `shouldBeRemoved`.
  public mutating func removeAll(where shouldBeRemoved: (Element) throws -> Bool) rethrows {
    self = Self(try filter { try !shouldBeRemoved($0) })
  }

  /// Returns an identified array of the results of a closure for each element.
  ///
  /// It costs the number of elements. Of results with equal identifiers, the last one counts.
  ///
  /// - Parameter transform: Called once for each element, in their order.
  /// - Throws: The error of `transform`.
  public func map(_ transform: (Element) throws -> Element) rethrows -> Self {
    Self(try map(transform) as [Element])
  }

  /// Changes the elements of a long array. Nothing else references the table meanwhile, so what other
  /// arrays do not share is changed in its place.
  @discardableResult
  private mutating func updateTable<Output>(
    _ change: (inout IdentifiedTable<ID, Element>) -> Output
  ) -> Output {
    guard case .long(var table) = storage else {
      preconditionFailure("A short array has no table")
    }
    storage = .short([])
    defer {
      let isLong = table.count > Self.largestShortCount / 2
      storage = isLong ? .long(table) : .short(table.allElements)
    }
    return change(&table)
  }
}

/// An ``IdentifiedArray`` of elements under their own identifiers.
public typealias IdentifiedArrayOf<Element: Identifiable> = IdentifiedArray<Element.ID, Element>

extension IdentifiedArray: RandomAccessCollection {
  /// The position of the first element: zero.
  public var startIndex: Int { 0 }
  /// The position after the last element.
  public var endIndex: Int { count }
  /// The number of elements.
  public var count: Int { table?.count ?? short.count }

  /// The element at a position of the array.
  ///
  /// A new element whose identifier is elsewhere in the array replaces the element there, and the one
  /// at this position is removed.
  public subscript(position: Int) -> Element {
    get { table?[position] ?? short[position] }
    set {
      if self[position].id == newValue.id {
        update(at: position) { $0 = newValue }
      } else if let present = index(id: newValue.id) {
        update(at: present) { $0 = newValue }
        remove(at: position)
      } else if isShort {
        short[position] = newValue
      } else {
        updateTable { $0.replace(at: $0.elements.slot(at: position), with: newValue) }
      }
    }
  }
}

extension IdentifiedArray: ExpressibleByArrayLiteral {
  /// Creates an array of the given elements, in their order.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension IdentifiedArray: Sendable where Element: Sendable, ID: Sendable {}
extension IdentifiedArray.Storage: Sendable where Element: Sendable, ID: Sendable {}

extension IdentifiedArray: Equatable where Element: Equatable {
  /// Returns a Boolean value that indicates whether both have equal elements in the same order.
  public static func == (lhs: Self, rhs: Self) -> Bool {
    if let table = lhs.table, let other = rhs.table { return table.elements == other.elements }
    return lhs.elementsEqual(rhs)
  }
}

extension IdentifiedArray: Hashable where Element: Hashable {
  /// Feeds the elements into a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(Array(self)) }
}

extension IdentifiedArray: CustomStringConvertible, CustomDebugStringConvertible {
  /// The description of an array of the elements.
  public var description: String { "[\(map { describe($0) }.joined(separator: ", "))]" }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension IdentifiedArray: Encodable where Element: Encodable {
  /// Encodes the elements as an array.
  ///
  /// - Throws: The error of an element or of the encoder.
  public func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}

extension IdentifiedArray: Decodable where Element: Decodable {
  /// Decodes an array of elements, of which the last one with an identifier counts.
  ///
  /// - Throws: The error of an element or of the decoder.
  public init(from decoder: any Decoder) throws { self.init(try [Element](from: decoder)) }
}

extension Collection {
  /// The collection; `nil` if it is empty.
  package var nonEmpty: Self? { isEmpty ? nil : self }
}
