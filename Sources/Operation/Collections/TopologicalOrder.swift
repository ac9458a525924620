/// An order of the nodes of a graph in which each comes after those that it depends on. The nodes are
/// numbers.
///
/// An edge that agrees with the order costs a comparison. For one against it, only what lies between
/// its ends is searched, as in "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs" by
/// Pearce and Kelly (2006), and moves. The order is a list with labels, as in "Two Algorithms for
/// Maintaining Order in a List" by Dietz and Sleator (1987), so that a new node is inserted beside any
/// other one in logarithmic time, amortised.
struct TopologicalOrder: Sendable {
  private struct Link: Sendable {
    var label: Int128
    var previous: Int?
    var next: Int?
  }

  /// The distance of labels at both ends of the list, which no process uses up.
  private static var stride: Int128 { 1 << 64 }

  private var links: [Int: Link] = [:]
  private var last: Int?

  var isEmpty: Bool { links.isEmpty }

  /// Moves or inserts two nodes so that one comes after the other. Returns the nodes from `other` to
  /// `node` along dependencies, and changes nothing, if `other` depends on `node` already.
  ///
  /// - Parameters:
  ///   - isPartial: Whether there are dependencies that the order does not agree with, because they
  ///     form a cycle. All dependencies of `other` are searched then.
  ///   - dependencies: Returns what a node depends on.
  mutating func place(
    _ node: Int, after other: Int, isPartial: Bool, dependencies: (Int) -> [Int]
  ) -> [Int]? {
    if links[node] == nil { insert(node, before: nil) }
    if links[other] == nil { insert(other, before: node) }
    let bound = label(node)
    if !isPartial, label(other) < bound { return nil }
    var origins: [Int: Int] = [:]
    var open = [other]
    while let found = open.popLast() {
      if found == node {
        let route = sequence(first: found) { $0 == other ? nil : origins[$0] }
        return route.reversed()
      }
      for next in dependencies(found)
      where next != other && (isPartial || label(next) >= bound) && origins[next] == nil {
        origins[next] = found
        open.append(next)
      }
    }
    let moved = ([other] + origins.keys).filter { label($0) > bound }
    for next in moved.sorted(by: { label($0) < label($1) }) {
      remove(next)
      insert(next, before: node)
    }
    return nil
  }

  mutating func remove(_ node: Int) {
    guard let link = links.removeValue(forKey: node) else { return }
    connect(link.previous, to: link.next)
  }
}

extension TopologicalOrder {
  private func label(_ node: Int) -> Int128 { links[node]?.label ?? .min }

  private mutating func connect(_ earlier: Int?, to later: Int?) {
    if let earlier { links[earlier]?.next = later }
    if let later { links[later]?.previous = earlier } else { last = earlier }
  }

  /// Inserts a node before another one, or at the end.
  private mutating func insert(_ node: Int, before later: Int?) {
    let earlier = later.map { links[$0]?.previous } ?? last
    if let earlier, let later, label(later) - label(earlier) < 2 { makeRoom(after: earlier) }
    // Halfway between its neighbours. At an end of the list, the missing one counts as two strides away.
    let low = earlier.map(label) ?? (later.map(label) ?? 0) - 2 * Self.stride
    let high = later.map(label) ?? low + 2 * Self.stride
    links[node] = Link(label: low + (high - low) / 2)
    connect(earlier, to: node)
    connect(node, to: later)
  }

  /// Spreads the labels behind a node over as many nodes as have enough room together.
  private mutating func makeRoom(after node: Int) {
    let start = label(node)
    var crowded: [Int] = []
    var next = links[node]?.next
    var count: Int128 = 1
    while let node = next, label(node) - start <= count * count {
      crowded.append(node)
      next = links[node]?.next
      count += 1
    }
    let step = next.map { (label($0) - start) / count } ?? Self.stride
    var end = start
    for node in crowded {
      end += step
      links[node]?.label = end
    }
  }
}
