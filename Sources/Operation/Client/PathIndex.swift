/// Values by path, found by their exact path or by a prefix of it.
///
/// The exact look-up is one hash of the path. A match costs the length of the prefix and the number
/// of what it finds: beside the table there is a tree of the path's elements, whose branches are
/// pruned as soon as nothing hangs on them.
struct PathIndex<Value: Sendable>: Sendable {
  private struct Node: Sendable {
    var path: OperationPath?
    var children: [OperationPath.Element: Node] = [:]

    var isEmpty: Bool { path == nil && children.isEmpty }
  }

  private var values: [OperationPath: Value] = [:]
  private var root = Node()

  var count: Int { values.count }
  /// How many nodes the tree has below its root.
  var nodeCount: Int { Self.count(root) - 1 }

  /// The value on a path. Setting `nil` removes it.
  subscript(path: OperationPath) -> Value? {
    get { values[path] }
    set {
      if let newValue {
        if values.updateValue(newValue, forKey: path) == nil { Self.insert(path, path[...], &root) }
      } else if values.removeValue(forKey: path) != nil {
        Self.remove(path[...], &root)
      }
    }
  }

  /// Changes the value on a path in its place, if there is one.
  mutating func update(_ path: OperationPath, _ change: (inout Value) -> Void) {
    if let index = values.index(forKey: path) { change(&values.values[index]) }
  }

  /// The values on paths that begin with `prefix`, in no particular order.
  func values(matching prefix: OperationPath) -> [Value] {
    if prefix.isEmpty { return Array(values.values) }
    var node = root
    for element in prefix {
      guard let child = node.children[element] else { return [] }
      node = child
    }
    var found: [Value] = []
    collect(node, into: &found)
    return found
  }

  private func collect(_ node: Node, into found: inout [Value]) {
    if let path = node.path, let value = values[path] { found.append(value) }
    for child in node.children.values { collect(child, into: &found) }
  }

  private static func insert(
    _ path: OperationPath, _ rest: Slice<OperationPath>, _ node: inout Node
  ) {
    guard let element = rest.first else { return node.path = path }
    insert(path, rest.dropFirst(), &node.children[element, default: Node()])
  }

  private static func remove(_ rest: Slice<OperationPath>, _ node: inout Node) {
    guard let element = rest.first else { return node.path = nil }
    guard let index = node.children.index(forKey: element) else { return }
    remove(rest.dropFirst(), &node.children.values[index])
    if node.children.values[index].isEmpty { node.children.remove(at: index) }
  }

  private static func count(_ node: Node) -> Int {
    node.children.values.reduce(1) { $0 + count($1) }
  }
}
