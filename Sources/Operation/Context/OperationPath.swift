/// Where a client keeps the state of a request: a list of hashable elements, like a folder's path.
///
/// ```swift
/// let path: OperationPath = ["user-projects", userID]
/// ["user-projects"].isPrefix(of: path)  // true
/// ```
///
/// Elements are equal when their types and values are, so `["a", 1]` and `["a", 1.0]` differ. A
/// path keeps its hash. The idea is TanStack Query's query key.
///
/// A path with an element that is not equal to itself, such as `Double.nan`, is equal to no other
/// that is made of the same values: a client reports it and keeps no store for it.
public struct OperationPath: Sendable, Hashable {
  /// The elements, outermost first.
  public private(set) var elements: [Element]
  private var hash: Int

  /// Creates a path of the given elements.
  public init(_ elements: [any Hashable & Sendable] = []) {
    self.init(elements: elements.map(Element.init))
  }

  /// Creates a path of one element. A list is that of the elements, unless it is an element by its
  /// type: `OperationPath([1] as any Hashable & Sendable)`.
  @_disfavoredOverload
  public init(_ element: any Hashable & Sendable) {
    self.init(elements: [Element(element)])
  }

  private init(elements: [Element]) {
    self.elements = elements
    hash = elements.reduce(into: Hasher()) { $0.combine($1) }.finalize()
  }

  /// Tells whether both have equal elements in the same order.
  public static func == (lhs: OperationPath, rhs: OperationPath) -> Bool {
    lhs.hash == rhs.hash && lhs.elements == rhs.elements
  }

  /// Feeds the hash that the path keeps.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(hash)
  }

  /// A path as the key of a table that is looked at with each use of a store.
  struct Key: Sendable, Hashable {
    let path: OperationPath

    init(_ path: OperationPath) {
      self.path = path
    }

    /// The hash that the path keeps, made another one for each table in the way in which the standard
    /// library does that for an integer. A hasher would take three times as long for it.
    func _rawHashValue(seed: Int) -> Int { path.hash._rawHashValue(seed: seed) }
  }
}

extension OperationPath {
  /// One element of a path.
  public struct Element: Sendable, Hashable {
    /// What paths are mostly made of is compared without a look at its type.
    private enum Content: Sendable {
      case int(Int)
      case string(String)
      case other(Other)
    }

    /// In a box, so that an element is as small as a string.
    private final class Other: Sendable {
      let value: any Hashable & Sendable

      init(_ value: any Hashable & Sendable) {
        self.value = value
      }
    }

    private let content: Content

    init(_ value: any Hashable & Sendable) {
      // By its type first: a cast would open an optional.
      if type(of: value) == Int.self, let int = value as? Int {
        content = .int(int)
      } else if type(of: value) == String.self, let string = value as? String {
        content = .string(string)
      } else {
        content = .other(Other(value))
      }
    }

    /// The value that the path was made of.
    public var value: any Hashable & Sendable {
      switch content {
      case .int(let int): int
      case .string(let string): string
      case .other(let other): other.value
      }
    }

    /// Tells whether both have the same type and equal values.
    public static func == (lhs: Element, rhs: Element) -> Bool {
      switch (lhs.content, rhs.content) {
      case (.int(let lhs), .int(let rhs)): lhs == rhs
      case (.string(let lhs), .string(let rhs)): lhs == rhs
      case (.other(let lhs), .other(let rhs)): areEqual(lhs.value, rhs.value)
      default: false
      }
    }

    var isEqualToItself: Bool {
      func isEqualToItself<Value: Hashable>(_ value: Value) -> Bool { value == value }
      guard case .other(let other) = content else { return true }
      return isEqualToItself(other.value)
    }

    /// Feeds the type and the value.
    public func hash(into hasher: inout Hasher) {
      switch content {
      case .int(let int):
        hasher.combine(0)
        hasher.combine(int)
      case .string(let string):
        hasher.combine(1)
        hasher.combine(string)
      case .other(let other):
        hasher.combine(ObjectIdentifier(type(of: other.value)))
        other.value.hash(into: &hasher)
      }
    }
  }

  /// The position of the first element that is not equal to itself.
  var unequalPosition: Int? { elements.firstIndex { !$0.isEqualToItself } }

  /// Tells whether `other` begins with the elements of this path; every path begins with itself and
  /// with the empty one.
  public func isPrefix(of other: OperationPath) -> Bool {
    elements.count <= other.elements.count && other.elements.starts(with: elements)
  }

  /// Adds an element at the end.
  public mutating func append(_ element: any Hashable & Sendable) {
    self = appending(element)
  }

  /// Adds the elements of another path at the end.
  public mutating func append(_ path: OperationPath) {
    self = appending(path)
  }

  /// The elements behind so many.
  func rest(behind depth: Int) -> OperationPath {
    OperationPath(elements: Array(elements.dropFirst(depth)))
  }

  /// The path with one element in the place of all those behind so many.
  func folded(behind depth: Int) -> OperationPath {
    guard count > depth else { return self }
    return OperationPath(elements: elements.prefix(depth) + [Element(rest(behind: depth))])
  }

  /// The path with one more element at the end.
  public func appending(_ element: any Hashable & Sendable) -> OperationPath {
    OperationPath(elements: elements + [Element(element)])
  }

  /// The path with the elements of another one at the end.
  public func appending(_ path: OperationPath) -> OperationPath {
    OperationPath(elements: elements + path.elements)
  }
}

extension OperationPath: ExpressibleByArrayLiteral {
  /// Creates a path of elements of any hashable types.
  public init(arrayLiteral elements: any Hashable & Sendable...) {
    self.init(elements)
  }
}

extension OperationPath: RandomAccessCollection {
  /// The position of the first element: zero.
  public var startIndex: Int { 0 }
  /// The position after the last element.
  public var endIndex: Int { elements.count }

  /// The element at a position, which must be one of the path.
  public subscript(position: Int) -> Element { elements[position] }
}

extension OperationPath: CustomStringConvertible {
  /// The elements in brackets, as an array literal shows them.
  public var description: String {
    "[" + elements.map { String(reflecting: $0.value) }.joined(separator: ", ") + "]"
  }
}
