@testable import Operation

extension PathIndex {
  /// The number of nodes below the root of the tree.
  var nodeCount: Int { tree(matching: []).descendantCount }
}

extension PathIndex.Tree {
  fileprivate var descendantCount: Int {
    children.values.reduce(0) { $0 + 1 + $1.descendantCount }
  }
}
