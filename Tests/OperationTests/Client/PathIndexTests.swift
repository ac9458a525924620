import Testing

@testable import Operation

@Suite struct PathIndexTests {
  @Test(
    "An index agrees with a list of paths after any sequence of insertions and removals",
    arguments: 0..<20)
  func agreesWithList(seed: UInt64) {
    var generator = SplitMix(seed: seed)
    var index = PathIndex<Int>()
    var list: [(path: OperationPath, value: Int)] = []
    // Near the greatest depth of the tree.
    let trunk = [0, 61, 62, 63, 64, 90][Int(seed % 6)]
    // Many children of a node, or few.
    let width = seed.isMultiple(of: 5) ? 40 : 2
    for step in 0..<300 {
      let path = randomPath(&generator, trunk: trunk, width: width)
      if Bool.random(using: &generator) {
        index[path] = step
        list.removeAll { $0.path == path }
        list.append((path, step))
      } else {
        index[path] = nil
        list.removeAll { $0.path == path }
      }
      let prefix = randomPath(&generator, trunk: trunk, width: width)
      let expected = list.filter { prefix.isPrefix(of: $0.path) }.map(\.value).sorted()
      let found = index.tree(matching: prefix).values.sorted()
      #expect(found == expected, "seed \(seed), step \(step)")
      #expect(index[prefix] == list.first { $0.path == prefix }?.value)
      #expect(index.count == list.count)
    }
    for entry in list { index[entry.path] = nil }
    #expect(index.count == 0)
    #expect(index.nodeCount == 0)
  }

  @Test("A match costs as much as its results, whatever else is in the index")
  func matchCost() {
    let small = Self.index(of: 1_000)
    let large = Self.index(of: 100_000)
    #expect(large.tree(matching: ["group", 3]).values.count == 100)
    let ratio =
      Self.median { Self.time { large.tree(matching: ["group", 3]).values.count } }
      / Self.median { Self.time { small.tree(matching: ["group", 3]).values.count } }
    #expect(ratio < 8)
  }

  private func randomPath(_ generator: inout SplitMix, trunk: Int, width: Int) -> OperationPath {
    let length = Int.random(in: 0...3, using: &generator)
    let tail = (0..<length).map { _ in Int.random(in: 0...width, using: &generator) }
    let isCut = Int.random(in: 0..<8, using: &generator) == 0
    let trunk = isCut ? Int.random(in: 0...trunk, using: &generator) : trunk
    return OperationPath(Array(repeating: 0, count: trunk) + tail)
  }

  private static func index(of count: Int) -> PathIndex<Int> {
    var index = PathIndex<Int>()
    for value in 0..<count { index[["group", value / 100, value]] = value }
    return index
  }

  private static func time(_ work: () -> Int) -> Double {
    let clock = ContinuousClock()
    let duration = clock.measure { for _ in 0..<50 { _ = work() } }
    return Double(duration.components.attoseconds) + Double(duration.components.seconds) * 1e18
  }

  private static func median(_ sample: () -> Double) -> Double {
    (0..<7).map { _ in sample() }.sorted()[3]
  }
}
