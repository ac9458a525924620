import Operation

/// What happens to requests that read each other by their numbers; each reads lower ones only.
enum DependencyStep: Sendable {
  /// From now on a request reads these.
  case edges(Int, [Int])
  /// From now on a request gives one more.
  case change(Int)
  /// From now on a request fails, or succeeds again.
  case fail(Int)
  case fetch(Int)
  case ensure(Int)
  case subscribe(Int)
  case unsubscribe(Int)
  case invalidate(Int)
  case clear(Int)
}

/// What a client with such requests does, in the plainest words: for each its value, whether that is
/// out of date, and what its last run has read, and those that have failed since.
struct DependencyModel: Sendable {
  struct Node: Sendable {
    /// What the request does when it runs.
    var edges: [Int] = []
    var base = 1
    var fails = false

    var value: Int?
    var isInvalidated = false
    var isObserved = false
    var lastReads: Set<Int> = []
    /// Whether its store has left while others have read it.
    var hasLeft = false
  }

  private(set) var nodes: [Node]
  /// The runs that a step brings about, in an order in which they may come.
  private(set) var began: [Int] = []
  /// The order is not said where several readers find that one fails.
  var hasFailing: Bool { nodes.contains(where: \.fails) }

  init(count: Int) { nodes = Array(repeating: Node(), count: count) }

  /// What an invalidation of a request is one of, too.
  private func readers(of start: Int) -> [Int] {
    var found: Set<Int> = [start]
    for (id, node) in nodes.enumerated() where !node.lastReads.isDisjoint(with: found) {
      found.insert(id)
    }
    return found.sorted()
  }

  /// Performs a step; gives the value of a fetch, or nil where it fails.
  mutating func perform(_ step: DependencyStep) -> Int? {
    began = []
    defer { forgetLeft() }
    switch step {
    case .edges(let id, let others): nodes[id].edges = others
    case .change(let id): nodes[id].base += 1
    case .fail(let id): nodes[id].fails.toggle()
    case .fetch(let id): return run(id)
    case .ensure(let id): return ensure(id)
    case .subscribe(let id):
      nodes[id].isObserved = true
      _ = ensure(id)
    case .unsubscribe(let id): nodes[id].isObserved = false
    case .invalidate(let id):
      let passed = readers(of: id)
      for id in passed { nodes[id].isInvalidated = nodes[id].value != nil || !isMissing(id) }
      for id in passed where nodes[id].isObserved && !began.contains(id) { _ = run(id) }
    case .clear(let id):
      nodes[id].value = nil
      nodes[id].isInvalidated = false
      nodes[id].hasLeft = true
    }
    return nil
  }

  private func isMissing(_ id: Int) -> Bool { nodes[id].hasLeft }

  private mutating func ensure(_ id: Int) -> Int? {
    if let value = nodes[id].value, !nodes[id].isInvalidated { return value }
    return run(id)
  }

  private mutating func run(_ id: Int) -> Int? {
    began.append(id)
    var sum: Int? = nodes[id].fails ? nil : nodes[id].base
    var reads: Set<Int> = []
    for other in nodes[id].edges {
      guard let before = sum else { break }
      reads.insert(other)
      sum = ensure(other).map { before + $0 }
    }
    nodes[id].hasLeft = false
    // The value stays that was made of what other runs have read.
    if sum == nil { nodes[id].lastReads.formUnion(reads) }
    if let sum {
      nodes[id].lastReads = reads
      nodes[id].value = sum
      nodes[id].isInvalidated = false
    }
    return sum
  }

  /// What has left and is not read by anybody counts no more.
  private mutating func forgetLeft() {
    while let id = nodes.indices.first(where: { id in
      nodes[id].hasLeft && !nodes[id].lastReads.isEmpty
        && !nodes.contains { $0.lastReads.contains(id) }
    }) {
      nodes[id].lastReads = []
    }
  }
}
