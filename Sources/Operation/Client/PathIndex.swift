/// Values by path, found by their exact path or by a prefix of it.
///
/// The exact look-up is one hash of the path. A match costs the length of the prefix and the number
/// of what it finds: beside the table there is a tree of the path's elements, which holds what a
/// match is asked for, and whose branches are pruned as soon as nothing hangs on them. The tree has
/// a greatest depth, because it is walked, and goes away, by recursion: what a longer path has beyond
/// is one element there.
struct PathIndex<Value: Sendable, Member: Sendable>: Sendable {
  private struct Node: Sendable {
    var first: Member?
    var others: [Member] = []
    /// What stands one element further down, alone on its path, with nothing below it.
    var leaves = SmallDictionary<OperationPath.Element, Member>()
    var children = SmallDictionary<OperationPath.Element, Node>()

    var isEmpty: Bool { first == nil && leaves.isEmpty && children.isEmpty }

    func child(at element: OperationPath.Element) -> Node? {
      if let child = children[element] { return child }
      return leaves[element].map { Node(first: $0) }
    }
  }

  /// What a match finds of a value: one, and seldom more.
  typealias Members = (first: Member, others: [Member])

  /// What was taken out with the keys of values. Their elements are the user's, so it is released
  /// without the lock.
  struct Dropped: Sendable {
    var paths: [OperationPath] = []
    fileprivate var elements: [OperationPath.Element] = []
  }

  private static var depth: Int { 64 }

  private var values: [OperationPath.Key: Value] = [:]
  private var root = Node()
  private var dropped = Dropped()
  private let members: @Sendable (Value) -> Members

  /// Creates an index without values.
  ///
  /// - Parameter members: What a match finds of a value; ``update(_:_:)`` must leave it as it is.
  init(members: @escaping @Sendable (Value) -> Members) {
    self.members = members
  }

  var count: Int { values.count }
  /// How many nodes the tree has below its root.
  var nodeCount: Int { Self.count(root) - 1 }

  func contains(_ path: OperationPath) -> Bool {
    values.index(forKey: OperationPath.Key(path)) != nil
  }

  /// The value on a path. Setting `nil` removes it.
  subscript(path: OperationPath) -> Value? {
    get { values[OperationPath.Key(path)] }
    set {
      let key = OperationPath.Key(path)
      guard let index = values.index(forKey: key) else {
        if let newValue { _ = insert(newValue, at: path) }
        return
      }
      if let newValue {
        // At its index: to set what is under a key replaces the key, too.
        values.values[index] = newValue
        hang(members(newValue), on: path)
      } else {
        drop(values.remove(at: index).key.path)
        Self.remove(path.folded(behind: Self.depth)[...], &root, &dropped.elements)
      }
    }
  }

  /// Keeps a path that nobody else may hold until what was dropped is taken.
  mutating func drop(_ path: OperationPath) { dropped.paths.append(path) }

  mutating func takeDropped() -> Dropped {
    if dropped.paths.isEmpty { return Dropped() }
    defer { dropped = Dropped() }
    return dropped
  }

  /// Puts a value on a path where there is none; gives the one that is there otherwise.
  mutating func insert(_ value: Value, at path: OperationPath) -> Value? {
    let key = OperationPath.Key(path)
    if let index = values.index(forKey: key) { return values.values[index] }
    values[key] = value
    hang(members(value), on: path)
    return nil
  }

  /// Changes the value on a path in its place, if there is one.
  mutating func update(_ path: OperationPath, _ change: (inout Value) -> Void) {
    if let index = values.index(forKey: OperationPath.Key(path)) { change(&values.values[index]) }
  }

  /// The members of the values on paths that begin with `prefix`, in no particular order.
  func members(matching prefix: OperationPath) -> [Member] {
    var node = root
    for element in prefix.prefix(Self.depth) {
      guard let child = node.child(at: element) else { return [] }
      node = child
    }
    var found: [Member] = []
    if prefix.count > Self.depth {
      let rest = prefix.rest(behind: Self.depth)
      func isBelow(_ element: OperationPath.Element) -> Bool {
        (element.value as? OperationPath).map(rest.isPrefix) == true
      }
      node.leaves.forEach { element, leaf in
        if isBelow(element) { found.append(leaf) }
      }
      node.children.forEach { element, child in
        if isBelow(element) { Self.collect(child, into: &found) }
      }
      return found
    }
    Self.collect(node, into: &found)
    return found
  }

  private static func collect(_ node: Node, into found: inout [Member]) {
    if let first = node.first { found.append(first) }
    if !node.others.isEmpty { found.append(contentsOf: node.others) }
    node.leaves.appendValues(to: &found)
    node.children.forEach { collect($1, into: &found) }
  }

  private mutating func hang(_ members: Members, on path: OperationPath) {
    Self.put(members, at: path.folded(behind: Self.depth).elements[...], &root)
  }

  private static func put(
    _ members: Members, at rest: ArraySlice<OperationPath.Element>, _ node: inout Node
  ) {
    guard let element = rest.first else {
      (node.first, node.others) = (members.first, members.others)
      return
    }
    let below = rest.dropFirst()
    if below.isEmpty, members.others.isEmpty, node.children[element] == nil {
      node.leaves.set(members.first, for: element)
    } else {
      let leaf = node.leaves.isEmpty ? nil : node.leaves.remove(element)?.value
      node.children.update(element, default: Node(first: leaf)) { put(members, at: below, &$0) }
    }
  }

  private static func remove(
    _ rest: Slice<OperationPath>, _ node: inout Node, _ dropped: inout [OperationPath.Element]
  ) {
    guard let element = rest.first else {
      (node.first, node.others) = (nil, [])
      return
    }
    let below = rest.dropFirst()
    if below.isEmpty, let leaf = node.leaves.remove(element) { return dropped.append(leaf.key) }
    let isGone = node.children.update(element) { child in
      remove(below, &child, &dropped)
      return child.isEmpty
    }
    if isGone == true, let child = node.children.remove(element) { dropped.append(child.key) }
  }

  private static func count(_ node: Node) -> Int {
    var sum = 1 + node.leaves.count
    node.children.forEach { sum += count($1) }
    return sum
  }
}
