import Testing

@testable import Operation

@Suite struct PersistentDictionaryTests {
  /// A key of which several have the same hash.
  private struct Key: Hashable {
    let number: Int
    let hashCount: Int

    func hash(into hasher: inout Hasher) { hasher.combine(number % hashCount) }
  }

  @Test(
    "The entries are those of a plain dictionary, also with equal hashes, and copies do not change",
    arguments: [1, 7, 2_000, 2_000, 2_000])
  func randomChanges(hashCount: Int) {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SplitMix(seed: seed)
    var entries = PersistentDictionary<Key, Int>()
    var plain: [Key: Int] = [:]
    var copies: [(PersistentDictionary<Key, Int>, [Key: Int])] = []
    let keyCount = hashCount == 1 ? 100 : 2_000
    for step in 0..<5_000 {
      let key = Key(number: Int.random(in: 0..<keyCount, using: &random), hashCount: hashCount)
      // First more insertions, then more removals.
      if Int.random(in: 0..<5_000, using: &random) > step {
        entries[key] = step
        plain[key] = step
      } else {
        entries[key] = nil
        plain[key] = nil
      }
      #expect(entries[key] == plain[key], "seed \(seed)")
      #expect(entries.count == plain.count, "seed \(seed)")
      if step.isMultiple(of: 1_000) { copies.append((entries, plain)) }
    }
    for (copy, plain) in copies + [(entries, plain)] {
      let isSame = (0..<keyCount).allSatisfy { number in
        let key = Key(number: number, hashCount: hashCount)
        return copy[key] == plain[key]
      }
      #expect(isSame && copy.count == plain.count, "seed \(seed)")
    }
  }

  private func bucketSizes<Key>(_ entries: PersistentDictionary<Key, Int>) -> [Int] {
    entries.buckets.slots.map { entries.buckets[$0].count }
  }

  @Test("The number of buckets grows and shrinks by one, and the buckets stay small")
  func buckets() {
    var entries = PersistentDictionary<Int, Int>()
    let size = PersistentDictionary<Int, Int>.bucketSize
    func check(change: Int, _ body: () -> Void) {
      let old = entries.buckets.count
      body()
      #expect(entries.buckets.count == old || entries.buckets.count == old + change)
    }
    for key in 0..<20_000 { check(change: 1) { entries[key] = -key } }
    #expect(entries.buckets.count == (20_000 + size - 1) / size)
    #expect(bucketSizes(entries).reduce(0, +) == 20_000)
    #expect(bucketSizes(entries).allSatisfy { $0 < 5 * size })
    for key in 0..<19_990 { check(change: -1) { entries[key] = nil } }
    #expect(entries.buckets.count <= 4 && entries.count == 10)
    #expect((19_990..<20_000).allSatisfy { entries[$0] == -$0 })
  }

  @Test("Identifiers of tasks are distributed over all buckets")
  func taskIDs() {
    var entries = PersistentDictionary<OperationTaskID, Int>()
    for step in 0..<20_000 { entries[OperationTaskID.next()] = step }
    #expect((bucketSizes(entries).max() ?? 0) < 5 * PersistentDictionary<Int, Int>.bucketSize)
  }
}
