import Operation

/// A step of a schedule of requests that read each other by number. A request reads only lower
/// numbers.
enum DependencyStep: Sendable {
  /// Sets the requests that a request reads.
  case edges(Int, [Int])
  /// Increments the value that a request returns.
  case change(Int)
  /// Makes a request fail, or succeed again.
  case fail(Int)
  case fetch(Int)
  case ensure(Int)
  case subscribe(Int)
  case unsubscribe(Int)
  case invalidate(Int)
  case clear(Int)
}

/// A plain model of a client with such requests. It holds the value of each request, whether the value
/// is out of date, and the reads of its last successful run and of the failed runs since.
struct DependencyModel: Sendable {
  struct Node: Sendable {
    /// The reads of the next run.
    var edges: [Int] = []
    var base = 1
    var fails = false

    var value: Int?
    var isInvalidated = false
    var isObserved = false
    var lastReads: Set<Int> = []
    /// Whether the store is removed while other requests have read it.
    var isRemoved = false
  }

  private(set) var nodes: [Node]
  /// The runs that a step starts, in a possible order.
  private(set) var began: [Int] = []
  /// Whether a request fails. Then several readers may run it, in an order that the model does not
  /// define.
  var hasFailing: Bool { nodes.contains(where: \.fails) }

  init(count: Int) { nodes = Array(repeating: Node(), count: count) }

  /// Returns the requests that an invalidation of a request passes.
  private func readers(of start: Int) -> [Int] {
    var found: Set<Int> = [start]
    for (id, node) in nodes.enumerated() where !node.lastReads.isDisjoint(with: found) {
      found.insert(id)
    }
    return found.sorted()
  }

  /// Performs a step. Returns the value of a fetch, or nil if the fetch fails.
  mutating func perform(_ step: DependencyStep) -> Int? {
    began = []
    defer { forgetRemoved() }
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
      nodes[id].isRemoved = true
    }
    return nil
  }

  private func isMissing(_ id: Int) -> Bool { nodes[id].isRemoved }

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
    nodes[id].isRemoved = false
    // The value of an earlier run remains, and so do the reads of that run.
    if sum == nil { nodes[id].lastReads.formUnion(reads) }
    if let sum {
      nodes[id].lastReads = reads
      nodes[id].value = sum
      nodes[id].isInvalidated = false
    }
    return sum
  }

  /// Drops the reads of requests that are removed and have no readers.
  private mutating func forgetRemoved() {
    while let id = nodes.indices.first(where: { id in
      nodes[id].isRemoved && !nodes[id].lastReads.isEmpty
        && !nodes.contains { $0.lastReads.contains(id) }
    }) {
      nodes[id].lastReads = []
    }
  }
}
