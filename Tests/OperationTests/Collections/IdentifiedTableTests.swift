import Testing

@testable import Operation

@Suite struct IdentifiedTableTests {
  private typealias Table = IdentifiedTable<Int, Item>

  private func check(
    _ table: Table, _ ids: [Int], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(table.allElements.map(\.id) == ids, sourceLocation: sourceLocation)
    let areFound = ids.enumerated().allSatisfy { index, id in
      table.slot(of: id).map { table.elements.index(of: $0) } == index
    }
    #expect(areFound, sourceLocation: sourceLocation)
  }

  @Test("Elements are inserted again and again at any index", arguments: [0, 1, 20, 39, 40])
  func insertion(index: Int) {
    var ids = Array(0..<40)
    var table = Table(ids.map { Item(id: $0) })
    let copy = table
    for id in 40..<140 {
      // Alternately before and after the last one.
      let index = index + (id / 2 - 20) % 3
      ids.insert(id, at: min(index, ids.count))
      table.insert(Item(id: id), at: min(index, table.count))
    }
    check(table, ids)
    check(copy, Array(0..<40))
  }

  @Test("An insertion moves only the elements of the shorter side")
  func distance() {
    var table = Table((0..<1_000).map { Item(id: $0) })
    table.insert(Item(id: -1), at: 998)
    table.insert(Item(id: -2), at: 2)
    #expect((2..<998).allSatisfy { table.slot(of: $0) == $0 })
    check(table, [0, 1, -2] + Array(2..<998) + [-1, 998, 999])
  }

  @Test("A removal moves no other element, unless few remain between empty slots")
  func removal() {
    let all = Array(0..<2_000)
    var table = Table(all.map { Item(id: $0) })
    for id in 1..<1_000 { #expect(table.remove(at: id).id == id) }
    #expect((1_000..<2_000).allSatisfy { table.slot(of: $0) == $0 })
    for id in 1_000..<1_990 { table.slot(of: id).map { _ = table.remove(at: $0) } }
    #expect(!table.elements.isSparse)
    check(table, [0] + Array(1_990..<2_000))
  }

  @Test("A replacement moves no other element, even where a removal would")
  func replacementAmongEmptySlots() {
    var table = Table((0..<1_000).map { Item(id: $0) })
    // With one element less, most slots would be empty.
    for id in 1..<767 { table.slot(of: id).map { _ = table.remove(at: $0) } }
    #expect(table.count == 234 && table.slot(of: 999) == 999)
    for _ in 0..<2 {
      table.replace(at: 800, with: Item(id: -1))
      #expect(table.slot(of: -1) == 800)
    }
    check(table, [0] + Array(767..<800) + [-1] + Array(801..<1_000))
    table.replace(at: 0, with: Item(id: -2))
    table.replace(at: 999, with: Item(id: -3))
    check(table, [-2] + Array(767..<800) + [-1] + Array(801..<999) + [-3])
    table.slot(of: -1).map { _ = table.remove(at: $0) }
    check(table, [-2] + Array(767..<800) + Array(801..<999) + [-3])
  }

  @Test("After a replacement, only the new identifier is found")
  func replacement() {
    var table = Table((0..<20).map { Item(id: $0) })
    table.replace(at: 3, with: Item(id: 100))
    check(table, [0, 1, 2, 100] + Array(4..<20))
    #expect(table.slot(of: 3) == nil)
    #expect(table.slot(of: 100) == 3)
  }
}
