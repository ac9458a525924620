/// Values by path, found by their exact path or by a prefix of it.
///
/// An exact look-up takes one hash of the path. A match takes time in proportion to the length of the
/// prefix and the number of results: beside the table of values there is a tree of the elements of
/// their paths, with what matches return. A branch without values is removed at once.
///
/// The tree has a greatest depth, because it is searched and released by recursion. A longer path has
/// one element there for all its elements beyond that depth.
struct PathIndex<Value: Sendable, Member: Sendable>: Sendable {
  /// What a match returns for a value: one member, and seldom more.
  typealias Members = (first: Member, others: [Member])

  fileprivate struct Node: Sendable {
    /// The members of the value whose path ends here.
    var members: Members?
    var children: [OperationPath.Element: Node] = [:]

    var isEmpty: Bool { members == nil && children.isEmpty }
  }

  /// What has been removed with values. It contains elements of paths, whose deinitialisers are the
  /// user's, so it is released without the lock that guards the index.
  struct Dropped: Sendable {
    fileprivate var paths: [OperationPath] = []
    fileprivate var elements: [OperationPath.Element] = []
  }

  private static var maxDepth: Int { 64 }

  private var values: [OperationPath: Value] = [:]
  private var root = Node()
  private var dropped = Dropped()
  private let members: @Sendable (Value) -> Members

  /// Creates an index without values.
  ///
  /// - Parameter members: Returns what matches return for a value.
  init(members: @escaping @Sendable (Value) -> Members) { self.members = members }

  /// The number of values.
  var count: Int { values.count }
  /// The number of nodes below the root of the tree.
  var nodeCount: Int { root.descendantCount }

  func contains(_ path: OperationPath) -> Bool { values.index(forKey: path) != nil }

  /// The value at a path. Setting `nil` removes it.
  subscript(path: OperationPath) -> Value? {
    get { values[path] }
    set {
      guard let newValue else {
        remove(path)
        return
      }
      if insert(newValue, at: path) == nil { return }
      change(path) { $0 = newValue }
    }
  }

  /// Changes the value at a path, if there is one.
  mutating func change(_ path: OperationPath, _ change: (inout Value) -> Void) {
    // By its index, which keeps the key in the table: no key is released here.
    guard let index = values.index(forKey: path) else { return }
    change(&values.values[index])
    setMembers(of: values.values[index], at: path)
  }

  /// Adds a value at a path that has none; otherwise changes nothing and returns the present value.
  mutating func insert(_ value: Value, at path: OperationPath) -> Value? {
    if let present = values[path] { return present }
    values[path] = value
    setMembers(of: value, at: path)
    return nil
  }

  /// Changes the value at a path, if there is one, but not what matches return for it.
  mutating func update(_ path: OperationPath, _ change: (inout Value) -> Void) {
    if let index = values.index(forKey: path) { change(&values.values[index]) }
  }

  /// Removes the value at a path, or replaces it by what a function returns for it. Returns the value.
  @discardableResult
  mutating func remove(
    _ path: OperationPath, keeping rest: (Value) -> Value? = { _ in nil }
  ) -> Value? {
    guard let index = values.index(forKey: path) else { return nil }
    let value = values.values[index]
    if let rest = rest(value) {
      values.values[index] = rest
      setMembers(of: rest, at: path)
    } else {
      drop(values.remove(at: index).key)
      root.remove(path.folded(behind: Self.maxDepth).elements[...], dropped: &dropped.elements)
    }
    return value
  }

  /// Keeps a path, which may have no other reference, until ``takeDropped()`` is called.
  mutating func drop(_ path: OperationPath) { dropped.paths.append(path) }

  /// Returns what has been dropped since the last call.
  mutating func takeDropped() -> Dropped {
    if dropped.paths.isEmpty { return Dropped() }
    defer { dropped = Dropped() }
    return dropped
  }

  /// Returns the members of the values at paths that begin with a prefix, in no particular order.
  func members(matching prefix: OperationPath) -> [Member] { members(matching: prefix) { $0 } }

  /// Returns what a function returns for the members of the values at paths that begin with a prefix,
  /// in no particular order, without those for which it returns `nil`.
  func members<Output>(
    matching prefix: OperationPath, as output: (Member) -> Output?
  ) -> [Output] {
    var node = root
    for element in prefix.prefix(Self.maxDepth) {
      guard let child = node.children[element] else { return [] }
      node = child
    }
    var found: [Output] = []
    if prefix.count <= Self.maxDepth {
      node.appendMembers(to: &found, as: output)
    } else {
      let rest = prefix.rest(behind: Self.maxDepth)
      for (element, child) in node.children {
        guard let folded = element.value as? OperationPath, rest.isPrefix(of: folded) else {
          continue
        }
        child.appendMembers(to: &found, as: output)
      }
    }
    return found
  }

  private mutating func setMembers(of value: Value, at path: OperationPath) {
    root.set(members(value), at: path.folded(behind: Self.maxDepth).elements[...])
  }
}

extension PathIndex.Node {
  var descendantCount: Int { children.values.reduce(0) { $0 + 1 + $1.descendantCount } }

  mutating func set(_ members: PathIndex.Members, at path: ArraySlice<OperationPath.Element>) {
    guard let element = path.first else { return self.members = members }
    children[element, default: Self()].set(members, at: path.dropFirst())
  }

  /// Removes the members at a path, and the branches that are empty without them. The elements that
  /// the tree kept for those are added to `dropped`.
  mutating func remove(
    _ path: ArraySlice<OperationPath.Element>, dropped: inout [OperationPath.Element]
  ) {
    guard let element = path.first else { return members = nil }
    guard let index = children.index(forKey: element) else { return }
    children.values[index].remove(path.dropFirst(), dropped: &dropped)
    if children.values[index].isEmpty { dropped.append(children.remove(at: index).key) }
  }

  func appendMembers<Output>(to found: inout [Output], as output: (Member) -> Output?) {
    if let members {
      if let first = output(members.first) { found.append(first) }
      if !members.others.isEmpty { found += members.others.compactMap(output) }
    }
    for child in children.values { child.appendMembers(to: &found, as: output) }
  }
}
