/// Values by path, found by their exact path or by a prefix of it.
///
/// An exact look-up takes one hash of the path. A match takes time in proportion to the length of the
/// prefix and the number of results: beside the table of values there is a tree of the elements of
/// their paths. A branch without values is removed at once.
///
/// The tree has a greatest depth, because it is searched and released by recursion. A longer path has
/// one element there for all its elements beyond that depth.
struct PathIndex<Value: Sendable>: Sendable {
  /// The values below a path. A copy is not affected by later changes of the index.
  struct Tree: Sendable {
    /// The value whose path ends here.
    fileprivate var value: Value?
    fileprivate(set) var children: [OperationPath.Element: Tree] = [:]

    fileprivate var isEmpty: Bool { value == nil && children.isEmpty }

    /// The values, in no particular order.
    var values: [Value] {
      var values: [Value] = []
      forEach { values.append($0) }
      return values
    }

    /// Calls a function with the values, in no particular order.
    func forEach(_ body: (Value) -> Void) {
      if let value { body(value) }
      // Most nodes are leaves. With an iterator over none, the benchmark stores(matching:) is further over its
      // limit.
      if children.isEmpty { return }
      for child in children.values { child.forEach(body) }
    }

    /// The element of a path in the nodes at a depth; `nil` if the path ends there.
    private static func element(of path: OperationPath, at depth: Int) -> OperationPath.Element? {
      if depth >= path.count || depth > PathIndex.maxDepth { return nil }
      return depth < PathIndex.maxDepth ? path[depth] : .init(path.rest(behind: depth))
    }

    fileprivate mutating func set(_ value: Value, at path: OperationPath, depth: Int = 0) {
      guard let element = Self.element(of: path, at: depth) else { return self.value = value }
      children[element, default: Self()].set(value, at: path, depth: depth + 1)
    }

    /// Removes the value at a path, and the branches that are empty without it. The elements that the tree
    /// kept for those are added to `dropped`.
    fileprivate mutating func remove(
      _ path: OperationPath, depth: Int = 0, dropped: inout [OperationPath.Element]
    ) {
      guard let element = Self.element(of: path, at: depth) else { return value = nil }
      guard let index = children.index(forKey: element) else { return }
      children.values[index].remove(path, depth: depth + 1, dropped: &dropped)
      if children.values[index].isEmpty { dropped.append(children.remove(at: index).key) }
    }
  }

  fileprivate static var maxDepth: Int { 64 }

  private var values: [OperationPath: Value] = [:]
  private var root = Tree()
  /// What has been removed with values. It contains elements of paths, whose deinitialisers are the
  /// user's, so it is released without the lock that guards the index.
  private var dropped: (paths: [OperationPath], elements: [OperationPath.Element]) = ([], [])

  /// The number of values.
  var count: Int { values.count }

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
      // The key in the table is kept: none is released here.
      values[path]? = newValue
      root.set(newValue, at: path)
    }
  }

  /// Adds a value at a path that has none; otherwise changes nothing and returns the present value.
  mutating func insert(_ value: Value, at path: OperationPath) -> Value? {
    func fill(_ place: inout Value?) -> Value? {
      if let present = place { return present }
      place = value
      return nil
    }
    if let present = fill(&values[path]) { return present }
    root.set(value, at: path)
    return nil
  }

  /// Calls a function with the value at a path, if there is one, in place.
  mutating func read<Output>(_ path: OperationPath, _ body: (inout Value) -> Output) -> Output? {
    values.index(forKey: path).map { body(&values.values[$0]) }
  }

  /// Removes the value at a path, and returns it.
  @discardableResult
  mutating func remove(_ path: OperationPath) -> Value? {
    guard let index = values.index(forKey: path) else { return nil }
    let (key, value) = values.remove(at: index)
    drop(key)
    root.remove(path, dropped: &dropped.elements)
    return value
  }

  /// Keeps a path, which may have no other reference, until ``takeDropped()`` is called.
  mutating func drop(_ path: OperationPath) { dropped.paths.append(path) }

  /// Returns what has been dropped since the last call.
  mutating func takeDropped() -> some Sendable { exchange(&dropped, with: ([], [])) }

  /// Returns the values at paths that begin with a prefix.
  func tree(matching prefix: OperationPath) -> Tree {
    var tree = root
    for element in prefix.prefix(Self.maxDepth) {
      guard let child = tree.children[element] else { return Tree() }
      tree = child
    }
    if prefix.count > Self.maxDepth {
      let rest = prefix.rest(behind: Self.maxDepth)
      tree.value = nil
      tree.children = tree.children.filter { element, _ in
        (element.value as? OperationPath).map(rest.isPrefix) ?? false
      }
    }
    return tree
  }
}
