import Testing

@testable import Operation

@Suite struct PersistentArrayTests {
  /// The elements by their slots.
  private typealias Model = [Int: Int]

  private func check(
    _ array: PersistentArray<Int>, _ model: Model, _ comment: Comment,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let slots = model.keys.sorted()
    let bounds = slots.isEmpty ? 0..<0 : slots[0]..<slots[slots.count - 1] + 1
    #expect(array.count == model.count, comment, sourceLocation: sourceLocation)
    #expect(array.slots == bounds, comment, sourceLocation: sourceLocation)
    for (index, slot) in slots.enumerated() {
      guard array.slot(at: index) == slot, array.index(of: slot) == index,
        array[slot] == model[slot]
      else {
        Issue.record("\(comment), slot \(slot)", sourceLocation: sourceLocation)
        return
      }
    }
  }

  /// An empty slot near the elements or far from them, or the one after the last element.
  private func emptySlot(
    _ array: PersistentArray<Int>, _ model: Model, _ random: inout SplitMix
  ) -> Int {
    let distance = [1, 3, 40, 20_000][Int.random(in: 0..<4, using: &random)]
    let range = array.slots.lowerBound - distance..<array.slots.upperBound + distance
    let slot = Int.random(in: range, using: &random)
    return model[slot] == nil ? slot : array.slots.upperBound
  }

  @Test(
    "Elements keep their slots and their order, and copies do not change",
    arguments: 0..<20)
  func randomChanges(seed: Int) {
    var random = SplitMix(seed: UInt64(seed))
    var array = PersistentArray<Int>()
    var model: Model = [:]
    var copies: [(PersistentArray<Int>, Model)] = []
    // The array grows to several hundred elements, and becomes empty again.
    for step in 0..<1_200 {
      let isGrowing = step < 600
      let isInserted = Int.random(in: 0..<4, using: &random) == 0 ? !isGrowing : isGrowing
      if let slot = model.keys.min(), !isInserted {
        let last = array.slots.upperBound - 1
        let other = array.slot(at: Int.random(in: 0..<array.count, using: &random))
        let removed = [slot, last, other][Int.random(in: 0..<3, using: &random)]
        #expect(array.remove(at: removed) == model.removeValue(forKey: removed))
      } else if Int.random(in: 0..<8, using: &random) == 0 {
        let slot = emptySlot(array, model, &random)
        array.insert(step, at: slot)
        model[slot] = step
      } else {
        model[array.slots.upperBound] = step
        array.append(step)
      }
      if let slot = model.keys.randomElement(using: &random) {
        array.update(at: slot) { $0 += 1 }
        model[slot]? += 1
      }
      if step.isMultiple(of: 100) { copies.append((array, model)) }
      if step.isMultiple(of: 20) { check(array, model, "step \(step)") }
    }
    for slot in model.keys { _ = array.remove(at: slot) }
    check(array, [:], "empty")
    #expect(array == PersistentArray())
    for (copy, model) in copies { check(copy, model, "copy") }
  }

  @Test("Arrays with equal elements in the same order are equal, with any slots")
  func equality() {
    var array = PersistentArray<Int>()
    for element in 0..<1_000 { array.append(element) }
    var other = array
    other.update(at: 500) { $0 = -1 }
    #expect(other != array)
    other.update(at: 500) { $0 = 500 }
    #expect(other == array)
    other.append(1_000)
    #expect(other != array)
    _ = other.remove(at: 1_000)
    #expect(other == array, "the nodes of the last element are removed")
    var backwards = PersistentArray<Int>()
    for element in (0..<1_000).reversed() {
      backwards.insert(element, at: backwards.slots.lowerBound - 2)
    }
    #expect(backwards == array)
    backwards.update(at: backwards.slot(at: 3)) { $0 = 0 }
    #expect(backwards != array)
  }

  @Test("Elements can be added at one end and removed at the other without a limit")
  func movingOn() {
    var array = PersistentArray<Int>()
    for element in 0..<10 { array.append(element) }
    for element in 10..<40_000 {
      array.append(element)
      #expect(array.remove(at: array.slots.lowerBound) == element - 10)
    }
    #expect(array.slots == 39_990..<40_000 && !array.isSparse)
    for element in 0..<60_000 {
      array.insert(-element, at: array.slots.lowerBound - 1)
      _ = array.remove(at: array.slots.upperBound - 1)
    }
    #expect(array.count == 10 && array[array.slots.lowerBound] == -59_999)
  }

  @Test("An array with few elements between many empty slots is sparse")
  func sparseness() {
    var array = PersistentArray<Int>()
    for element in 0..<1_000 { array.append(element) }
    for slot in 1..<700 { _ = array.remove(at: slot) }
    #expect(!array.isSparse)
    for slot in 700..<900 { _ = array.remove(at: slot) }
    #expect(array.isSparse)
    _ = array.remove(at: 0)
    #expect(!array.isSparse && array.slots == 900..<1_000)
  }

  @Test("A change does not move elements in memory unless a copy exists")
  func inPlace() {
    var array = PersistentArray<Int>()
    array.append(0)
    func address(_ array: inout PersistentArray<Int>) -> UnsafeRawPointer {
      array.update(at: 0) { element in withUnsafePointer(to: &element) { UnsafeRawPointer($0) } }
    }
    let first = address(&array)
    for element in 1..<100 { array.append(element) }
    #expect(address(&array) == first)
    let copy = array
    #expect(address(&array) != first)
    #expect(copy == array)
  }
}
