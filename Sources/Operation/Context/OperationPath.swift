/// The place of a request's state in a client: a list of hashable elements, like the path of a folder.
///
/// ```swift
/// let path: OperationPath = ["user-projects", userID]
/// OperationPath(["user-projects"]).isPrefix(of: path)  // true
/// ```
///
/// Elements are equal when their types and values are, so `["a", 1]` and `["a", 1.0]` differ. A
/// path stores its hash. The idea is TanStack Query's query key.
///
/// A path with an element that is not equal to itself, such as `Double.nan`, is equal to no other
/// path. A client reports it, and keeps no store for it. It does not recognise such a value inside an
/// array, which counts as equal to itself: each use of such a path makes another store.
public struct OperationPath: Sendable, Hashable {
  /// The elements, outermost first.
  public private(set) var elements: [Element]
  private var hash: Int

  /// Creates a path of the given elements.
  public init(_ elements: [any Hashable & Sendable] = []) {
    self.init(elements: elements.map(Element.init))
  }

  /// Creates a path of one element.
  ///
  /// An array literal creates a path of its elements instead. To make an array one element, write
  /// `OperationPath([1] as any Hashable & Sendable)`.
  @_disfavoredOverload
  public init(_ element: any Hashable & Sendable) { self.init(elements: [Element(element)]) }

  private init(elements: [Element]) {
    self.elements = elements
    hash = elements.reduce(into: Hasher()) { $0.combine($1) }.finalize()
  }

  /// Returns a Boolean value that indicates whether both have equal elements in the same order.
  public static func == (lhs: OperationPath, rhs: OperationPath) -> Bool {
    lhs.hash == rhs.hash && lhs.elements == rhs.elements
  }

  /// Hashes the stored hash of the elements.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

extension OperationPath {
  /// One element of a path.
  public struct Element: Sendable, Hashable {
    /// The most frequent types have cases of their own.
    private enum Content: Sendable {
      case int(Int)
      case string(String)
      // Indirect, so that an element is as small as a string.
      indirect case other(any Hashable & Sendable)
    }

    private let content: Content

    /// Creates an element from a value. An element of a path stands for its value.
    public init(_ value: any Hashable & Sendable) {
      // By its type first: a cast would open an optional.
      if type(of: value) == Int.self, let int = value as? Int {
        content = .int(int)
      } else if type(of: value) == String.self, let string = value as? String {
        content = .string(string)
      } else if type(of: value) == Element.self, let element = value as? Element {
        self = element
      } else {
        content = .other(value)
      }
    }

    /// The value of the element.
    public var value: any Hashable & Sendable {
      switch content {
      case .int(let int): int
      case .string(let string): string
      case .other(let value): value
      }
    }

    /// Returns the value if it is of exactly this type, and otherwise `nil`.
    public func value<Value: Hashable & Sendable>(as type: Value.Type) -> Value? {
      let value = value
      // A cast alone would open an optional, and find a superclass.
      return Swift.type(of: value) == type ? value as? Value : nil
    }

    /// Returns a Boolean value that indicates whether the element has the type of the pattern and an equal
    /// value. It makes values patterns of a `switch`:
    ///
    /// ```swift
    /// switch path.first {
    /// case "posts"?: …
    /// case 1?: …
    /// default: …
    /// }
    /// ```
    public static func ~= (pattern: some Hashable & Sendable, element: Element) -> Bool {
      Element(pattern) == element
    }

    /// Returns a Boolean value that indicates whether both have the same type and equal values.
    public static func == (lhs: Element, rhs: Element) -> Bool {
      switch (lhs.content, rhs.content) {
      case (.int(let lhs), .int(let rhs)): lhs == rhs
      case (.string(let lhs), .string(let rhs)): lhs == rhs
      case (.other(let lhs), .other(let rhs)): areEqual(lhs, rhs)
      default: false
      }
    }

    /// Hashes the type and the value.
    public func hash(into hasher: inout Hasher) {
      switch content {
      case .int(let int): hasher.combine(int)
      case .string(let string): hasher.combine(string)
      case .other(let value):
        hasher.combine(ObjectIdentifier(type(of: value)))
        value.hash(into: &hasher)
      }
    }
  }

  /// The position of the first element that is not equal to itself; `nil` if there is none.
  var unequalPosition: Int? { elements.firstIndex { $0 != $0 } }

  /// Returns a Boolean value that indicates whether `other` begins with the elements of this path.
  ///
  /// Every path begins with itself and with the empty path.
  public func isPrefix(of other: OperationPath) -> Bool {
    elements.count <= other.elements.count && other.elements.starts(with: elements)
  }

  /// Appends an element.
  public mutating func append(_ element: any Hashable & Sendable) { self = appending(element) }

  /// Appends the elements of another path.
  public mutating func append(_ path: OperationPath) { self = appending(path) }

  /// Returns the path of the first elements, as many as `length` or fewer.
  func prefix(ofLength length: Int) -> OperationPath {
    length >= elements.count ? self : OperationPath(elements: Array(elements.prefix(length)))
  }

  /// Returns the path without its first elements.
  func rest(behind depth: Int) -> OperationPath {
    OperationPath(elements: Array(elements.dropFirst(depth)))
  }

  /// Returns the path with one more element.
  public func appending(_ element: any Hashable & Sendable) -> OperationPath {
    OperationPath(elements: elements + [Element(element)])
  }

  /// Returns the path followed by the elements of another one.
  public func appending(_ path: OperationPath) -> OperationPath {
    OperationPath(elements: elements + path.elements)
  }
}

extension OperationPath: ExpressibleByArrayLiteral {
  /// Creates a path of elements of any hashable types.
  public init(arrayLiteral elements: any Hashable & Sendable...) { self.init(elements) }
}

extension OperationPath: RandomAccessCollection {
  /// The position of the first element: zero.
  public var startIndex: Int { 0 }
  /// The position after the last element.
  public var endIndex: Int { elements.count }

  /// The element at a position, which must be one of the path.
  public subscript(position: Int) -> Element { elements[position] }
}

extension OperationPath: CustomStringConvertible, CustomDebugStringConvertible {
  /// The elements in brackets, like an array literal.
  public var description: String { "[\(elements.map(\.description).joined(separator: ", "))]" }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension OperationPath.Element: CustomStringConvertible, CustomDebugStringConvertible {
  /// The value, like a literal.
  public var description: String { describe(value) }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
