import Testing

@testable import ReactiveStreams

@Suite("SlotList") struct SlotListTests {
  @Test("Elements are in the order of their identifiers, in whichever order they are inserted")
  func order() {
    var list = SlotList<Int, String>()
    for id in [3, 1, 4, 2, 5, 0] { list.insert("\(id)", for: id) }
    #expect(list.slots.map(\.id) == [0, 1, 2, 3, 4, 5])
    #expect(list.remove(4) == "4")
    #expect(list.remove(4) == nil)
    #expect(list.remove(6) == nil)
    #expect(list.slots.compactMap(\.element) == ["0", "1", "2", "3", "5"])
    #expect(list.count == 5)
  }

  @Test("The list agrees with a dictionary after any sequence of changes", arguments: 0..<20)
  func agreesWithDictionary(seed: UInt64) {
    var generator = SplitMix(seed: seed)
    var list = SlotList<Int, Int>()
    var plain: [Int: Int] = [:]
    for id in 0..<500 {
      // Some identifiers are inserted late.
      let id = Bool.random(using: &generator) ? id * 4 : max(0, id * 4 - 7)
      if plain[id] == nil, !list.slots.contains(where: { $0.id == id }) {
        list.insert(id, for: id)
        plain[id] = id
      }
      let other = Int.random(in: 0...(id + 4), using: &generator)
      #expect(list.remove(other) == plain.removeValue(forKey: other), "seed \(seed)")
      #expect(list.count == plain.count, "seed \(seed)")
    }
    #expect(list.slots.compactMap(\.element) == plain.values.sorted(), "seed \(seed)")
    #expect(list.slots.count <= max(16, 2 * list.count), "seed \(seed)")
  }
}
