import Testing

@testable import Operation

@Suite struct ChunkedDictionaryTests {
  @Test("It holds what a dictionary would, in buckets that stay small", arguments: 0..<10)
  func sameAsDictionary(seed: Int) {
    var random = SplitMix(seed: UInt64(seed))
    var entries = ChunkedDictionary<Int, Int>(minimumCapacity: 0)
    var plain: [Int: Int] = [:]
    for step in 0..<5_000 {
      let key = Int.random(in: 0..<2_000, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        entries[key] = nil
        plain[key] = nil
      case 1:
        entries[key] = step
        plain[key] = step
      default:
        #expect(entries.insert(step, for: key) == plain[key])
        if plain[key] == nil { plain[key] = step }
      }
      #expect(entries[key] == plain[key])
      #expect(entries.count == plain.count)
    }
    #expect(plain.allSatisfy { entries[$0.key] == $0.value })
    #expect(entries.buckets.reduce(0) { $0 + $1.count } == plain.count)
    let bucketSize = ChunkedDictionary<Int, Int>.bucketSize
    #expect(entries.buckets.count >= plain.count / bucketSize)
    #expect(entries.buckets.allSatisfy { $0.count < 3 * bucketSize })
  }

  @Test("An entry that comes by itself makes room as one that is set does")
  func growth() {
    var inserted = ChunkedDictionary<Int, Int>(minimumCapacity: 0)
    var set = inserted
    for key in 0..<10_000 {
      #expect(inserted.insert(key, for: key) == nil)
      set[key] = key
    }
    #expect(inserted.buckets.count == set.buckets.count)
  }

  @Test("Identifiers of tasks fall into all buckets alike")
  func taskIDs() {
    var entries = ChunkedDictionary<OperationTaskID, Int>(minimumCapacity: 0)
    for step in 0..<20_000 { _ = entries.insert(step, for: OperationTaskID.next()) }
    // Those that were split in this round have half as many as those that were not.
    let largest = entries.buckets.map(\.count).max() ?? 0
    let bucketSize = ChunkedDictionary<OperationTaskID, Int>.bucketSize
    #expect(largest < 3 * bucketSize)
  }
}
