import Testing

@testable import ReactiveStreams

@Suite("SlotList, slots and memory")
struct SlotListTests {
  private var list = SlotList<Int, Int>()

  @Test("A removal returns the element that was inserted, once")
  mutating func removal() {
    for id in 0..<5 { list.insert(id * 10, for: id) }
    for id in 0..<5 {
      #expect(list.remove(id) == id * 10)
      #expect(list.remove(id) == nil)
    }
    #expect(list.count == 0)
    #expect(list.slots.isEmpty)
  }

  @Test("An unknown identifier removes nothing")
  mutating func unknown() {
    #expect(list.remove(0) == nil)
    list.insert(1, for: 0)
    #expect(list.remove(1) == nil)
    #expect(list.remove(.max) == nil)
    #expect(list.count == 1)
  }

  @Test("Empty slots are removed when they are half of the list")
  mutating func emptySlots() {
    for id in 0..<32 { list.insert(id, for: id) }
    for id in 0..<15 { _ = list.remove(id) }
    #expect(list.slots.count == 32)
    _ = list.remove(15)
    #expect(list.slots.count == 16)
    #expect(list.slots.allSatisfy { $0.element != nil })
    #expect(list.count == 16)
  }

  @Test("A short list keeps empty slots until it has no element")
  mutating func shortList() {
    for id in 0..<15 { list.insert(id, for: id) }
    for id in 0..<14 { _ = list.remove(id) }
    #expect(list.slots.count == 15)
    #expect(list.count == 1)
    _ = list.remove(14)
    #expect(list.slots.isEmpty)
  }

  @Test("It agrees with an array after many insertions and removals", arguments: [2, 5, 8])
  mutating func mixture(insertions: Int) {
    var generator = SeededGenerator(seed: UInt64(insertions))
    var model: [Int] = []
    for id in 0..<2_000 {
      if Int.random(in: 0..<10, using: &generator) < insertions {
        list.insert(id, for: id)
        model.append(id)
      } else if let index = model.indices.randomElement(using: &generator) {
        let id = model.remove(at: index)
        #expect(list.remove(id) == id)
      }
      #expect(list.count == model.count)
      #expect(list.elements == model)
    }
  }

  @Test("A removed element is released by the caller, whether or not slots are removed")
  func release() {
    let live = LiveCount()
    var list = SlotList<Int, Counted>()
    for id in 0..<40 { list.insert(Counted(id, in: live), for: id) }
    for id in 0..<40 {
      var removed = list.remove(id)
      #expect(live.now == 40 - id)
      #expect(removed != nil)
      removed = nil
      #expect(live.now == 39 - id)
    }
  }
}
