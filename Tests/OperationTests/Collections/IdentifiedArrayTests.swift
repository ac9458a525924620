import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

struct Item: Identifiable, Hashable, Codable, Sendable {
  var id: Int
  var text = ""
}

@Suite("IdentifiedArray") struct IdentifiedArrayTests {
  private func items(_ ids: Int...) -> IdentifiedArrayOf<Item> {
    IdentifiedArray(ids.map { Item(id: $0) })
  }

  @Test("Elements are in the order in which they were added")
  func order() {
    var array = items(3, 1, 2)
    array.append(Item(id: 0))
    array.append(contentsOf: [Item(id: 9), Item(id: 8)])
    #expect(array.ids == [3, 1, 2, 0, 9, 8])
    #expect(array.map(\.id) == [3, 1, 2, 0, 9, 8])
    #expect(array[1] == Item(id: 1))
    #expect(array.first?.id == 3)
    #expect(array.last?.id == 8)
    #expect(array.index(id: 2) == 2)
    #expect(array.index(id: 7) == nil)
    #expect(IdentifiedArrayOf<Item>().isEmpty)
  }

  @Test("A removal whose predicate throws removes nothing")
  func throwingRemoval() {
    let old = IdentifiedArrayOf<Item>((0..<20).map { Item(id: $0) })
    var array = old
    #expect(throws: Failed.self) {
      try array.removeAll { item in
        if item.id == 10 { throw Failed() }
        return item.id == 0
      }
    }
    #expect(array == old)
    #expect((0..<20).allSatisfy { array[id: $0]?.id == $0 })
    array.removeAll { $0.id < 10 }
    #expect(array.ids == Array(10..<20))
    #expect((0..<20).allSatisfy { array[id: $0]?.id == ($0 < 10 ? nil : $0) })
  }

  @Test(
    "An element replaces the one with its identifier, in any kind of addition",
    arguments: [3, 40])
  func replacing(count: Int) {
    let new = Item(id: 1, text: "new")
    let old = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    let ways: [(String, (inout IdentifiedArrayOf<Item>) -> Void)] = [
      ("append", { $0.append(new) }),
      ("append(contentsOf:)", { $0.append(contentsOf: [new]) }),
      ("insert", { $0.insert(new, at: 0) }),
      ("subscript(id:)", { $0[id: 1] = new }),
      ("subscript(index)", { $0[1] = new }),
      ("subscript(index), member", { $0[1].text = "new" }),
      ("init", { $0 = IdentifiedArray(Array($0) + [new]) }),
      ("map", { $0 = $0.map { $0.id == 1 ? new : $0 } }),
    ]
    for (name, change) in ways {
      var array = old
      change(&array)
      #expect(array.ids == Array(0..<count), "\(name)")
      #expect(array[id: 1]?.text == "new", "\(name)")
      #expect(array.count == count, "\(name)")
    }
    let literal: IdentifiedArrayOf<Item> = [Item(id: 1), Item(id: 2), new]
    #expect(literal.ids == [1, 2])
    #expect(literal[0].text == "new")
  }

  @Test("An element set at a position replaces the one with its identifier")
  func settingAtAPosition() {
    var array = items(0, 1, 2, 3)
    array[3] = Item(id: 1, text: "new")
    #expect(array.ids == [0, 1, 2])
    #expect(array[1].text == "new")
    array[0] = Item(id: 9)
    #expect(array.ids == [9, 1, 2])
    #expect(array[id: 0] == nil)
    #expect(array[id: 9] == Item(id: 9))
  }

  @Test("Setting by identifier appends, replaces and removes")
  func settingByIdentifier() {
    var array = items(1, 2)
    array[id: 3] = Item(id: 3)
    array[id: 1] = nil
    array[id: 7] = nil
    #expect(array.ids == [2, 3])
    array[id: 2]?.text = "new"
    #expect(array[0].text == "new")
  }

  @Test(
    "Elements are inserted and removed in the middle, and are found afterwards",
    arguments: [4, 60])
  func middle(count: Int) {
    var array = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    array.insert(Item(id: -1), at: 2)
    #expect(array.ids == [0, 1, -1] + Array(2..<count))
    #expect(array.remove(id: 1) == Item(id: 1))
    #expect(array.remove(id: 1) == nil)
    #expect(array.remove(at: 1) == Item(id: -1))
    #expect(array.ids == [0] + Array(2..<count))
    for (position, id) in array.ids.enumerated() { #expect(array.index(id: id) == position) }
  }

  @Test("For a position outside of the array, the nearest end is used")
  func insertOutside() {
    var array = items(1, 2)
    array.insert(Item(id: 3), at: 100)
    array.insert(Item(id: 0), at: -5)
    #expect(array.ids == [0, 1, 2, 3])
  }

  @Test(
    "Several elements are removed from the front, from the end, or by a predicate",
    arguments: [5, 50])
  func removingSeveral(count: Int) {
    let all = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    var array = all
    array.removeFirst(2)
    array.removeLast(1)
    #expect(array.ids == Array(2..<count - 1))
    #expect(array.index(id: 2) == 0)
    array.removeAll { $0.id % 2 == 0 }
    #expect(array.ids == Array(2..<count - 1).filter { $0 % 2 == 1 })
    #expect(array.index(id: 3) == 0)
    array.removeFirst(1_000)
    #expect(array.isEmpty)
    array.removeLast(-1)
    #expect(array.isEmpty)
    array = all
    array.removeLast(1_000)
    #expect(array.isEmpty)
    #expect(array[id: 0] == nil)
  }

  @Test(
    "A position outside of a long array ends the program", arguments: [-1, 39, Int.max, Int.min])
  func outside(position: Int) async {
    await #expect(processExitsWith: .failure) { [position] in
      var array = IdentifiedArrayOf<Item>((0..<40).map { Item(id: $0) })
      array.remove(id: 20)
      _ = array[position]
    }
  }

  @Test("An array that becomes short has no table")
  func shortAgain() {
    let all = IdentifiedArrayOf<Item>((0..<200).map { Item(id: $0) })
    var array = all
    while array.count > 9 { array.remove(at: array.count / 2) }
    #expect(array.table != nil)
    array.remove(at: 4)
    #expect(array.table == nil && array.count == 8)
    array.append(contentsOf: all)
    #expect(array.table != nil && array.count == 200 && Set(array) == Set(all))
  }

  @Test("A map to identified elements returns an identified array, and other maps an array")
  func mapping() {
    let array = items(1, 2)
    let mapped: IdentifiedArrayOf<Item> = array.map { Item(id: $0.id, text: "x") }
    #expect(mapped.ids == [1, 2])
    #expect(mapped[id: 2]?.text == "x")
    let texts: [String] = mapped.map(\.text)
    #expect(texts == ["x", "x"])
    #expect(array.map { _ in Item(id: 5) }.ids == [5])
  }

  @Test("Arrays are equal when they have equal elements in the same order")
  func equality() {
    #expect(items(1, 2) == items(1, 2))
    #expect(items(1, 2) != items(2, 1))
    #expect(items(1, 2) != items(1))
    #expect(items(1, 2) != [Item(id: 1), Item(id: 2, text: "x")])
    var grown = IdentifiedArrayOf<Item>((0..<50).map { Item(id: $0) })
    grown.removeLast(48)
    #expect(grown == items(0, 1))
    #expect(grown.hashValue == items(0, 1).hashValue)
    let many = IdentifiedArrayOf<Item>((0..<200).map { Item(id: $0) })
    for index in [0, 100, 199] {
      var other = many
      other[index].text = "x"
      #expect(other != many)
      other[index].text = ""
      #expect(other == many)
    }
    var backwards = IdentifiedArrayOf<Item>()
    for id in (0..<200).reversed() { backwards.insert(Item(id: id), at: 0) }
    #expect(backwards == many && backwards.hashValue == many.hashValue)
    #expect(items(1).description == [Item(id: 1)].description)
  }

  @Test("An array is encoded as an array, and decoded with each identifier once")
  func coding() throws {
    let array = items(2, 1)
    let data = try JSONEncoder().encode(array)
    #expect(try JSONDecoder().decode([Item].self, from: data) == Array(array))
    #expect(try JSONDecoder().decode(IdentifiedArrayOf<Item>.self, from: data) == array)
    let twice = try JSONEncoder().encode([Item(id: 1), Item(id: 2), Item(id: 1, text: "new")])
    let read = try JSONDecoder().decode(IdentifiedArrayOf<Item>.self, from: twice)
    #expect(read.ids == [1, 2])
    #expect(read[0].text == "new")
  }
}

@Suite("IdentifiedArray at length") struct IdentifiedArrayScaleTests {
  /// The best of several times.
  private func fastest(_ body: () -> Void) -> Duration {
    (0..<5).map { _ in processorTime(of: body) }.min() ?? .zero
  }

  /// Expects that a change of ten thousand elements takes no longer than one of a hundred.
  private func expectFlat(
    _ time: (Int) -> Duration, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let (small, large) = (time(100), time(10_000))
    #expect(
      large < small * 12, "100: \(small), 10,000: \(large)", sourceLocation: sourceLocation)
  }

  /// The time of some look-ups and replacements in an array of this length.
  private func time(count: Int) -> Duration {
    var array = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    return fastest {
      var found = 0
      for step in 0..<500 {
        let id = step &* 7_919 % count
        found &+= array[id: id]?.id ?? 0
        array.append(Item(id: id))
      }
      precondition(found > 0)
    }
  }

  @Test("Look-ups and replacements among ten thousand take no longer than among a hundred")
  func constantLookup() {
    expectFlat(time(count:))
  }

  /// The time of some additions and removals at both ends of an array of this length, of which
  /// another copy exists before each of them.
  private func timeShared(count: Int) -> Duration {
    var array = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    return fastest {
      var copy = array
      for step in 0..<100 {
        array.append(Item(id: count + step))
        copy = array
        array.insert(Item(id: -1 - step), at: 0)
        copy = array
        array.removeLast(1)
        copy = array
        array.removeFirst(1)
        copy = array
      }
      precondition(copy.count == count)
    }
  }

  @Test("Changes at the ends of ten thousand with a copy take no longer than of a hundred")
  func sharedEnds() {
    expectFlat(timeShared(count:))
  }

  /// The time of some insertions beside the first and the last element.
  private func timeInsertions(count: Int) -> Duration {
    let array = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    return fastest {
      var array = array
      for step in 0..<200 {
        array.insert(Item(id: count + step), at: 1)
        array.insert(Item(id: -1 - step), at: array.count - 1)
      }
      precondition(array.count == count + 400)
    }
  }

  @Test("Insertions near the ends of ten thousand take no longer than of a hundred")
  func insertions() {
    expectFlat(timeInsertions(count:))
  }

  /// The time of some removals from anywhere, each with an addition.
  private func timeRemovals(count: Int) -> Duration {
    var array = IdentifiedArrayOf<Item>((0..<count).map { Item(id: $0) })
    return fastest {
      for step in 0..<500 {
        let item = array.remove(id: step &* 7_919 % count)
        if let item { array.append(item) }
      }
      precondition(array.count == count)
    }
  }

  @Test("Removals from anywhere in ten thousand take no longer than in a hundred")
  func removals() {
    expectFlat(timeRemovals(count:))
  }

  @Test(
    "Random changes have the same results as in a plain array, and copies do not change",
    arguments: Array(repeating: 60, count: 10) + Array(repeating: 500, count: 2))
  func randomModel(largest: Int) {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SplitMix(seed: seed)
    var model = (0..<largest).map { Item(id: $0) }.shuffled(using: &random)
    model.removeLast(largest > 60 ? 100 : 60)
    var array = IdentifiedArrayOf<Item>(model)
    var copies: [(IdentifiedArrayOf<Item>, [Item])] = []
    for step in 0..<(largest > 60 ? 1_000 : 400) {
      let item = Item(id: Int.random(in: 0..<largest, using: &random), text: "\(step)")
      let present = model.firstIndex { $0.id == item.id }
      switch Int.random(in: 0..<9, using: &random) {
      case 0, 1:
        array.append(item)
        if let present { model[present] = item } else { model.append(item) }
      case 2, 3:
        let isAtFront = Bool.random(using: &random)
        let position = isAtFront ? 0 : Int.random(in: 0...model.count, using: &random)
        array.insert(item, at: position)
        if let present { model[present] = item } else { model.insert(item, at: position) }
      case 4 where step.isMultiple(of: 2):
        #expect(array.remove(id: item.id) == present.map { model[$0] }, "seed \(seed)")
        if let present { model.remove(at: present) }
      case 4:
        array.remove(id: item.id)
        if let present { model.remove(at: present) }
      case 5 where !model.isEmpty:
        let position = Int.random(in: 0..<model.count, using: &random)
        array[position] = item
        if let present {
          model[present] = item
          if present != position { model.remove(at: position) }
        } else {
          model[position] = item
        }
      case 6 where step.isMultiple(of: 10):
        copies.append((array, model))
      case 7:
        let count = Int.random(in: 0...2, using: &random)
        array.removeFirst(count)
        model.removeFirst(min(count, model.count))
      default:
        let count = Int.random(in: 0...1, using: &random)
        array.removeLast(count)
        model.removeLast(min(count, model.count))
      }
      guard array.elementsEqual(model) else {
        Issue.record("seed \(seed), step \(step)")
        return
      }
      guard largest == 60 || step.isMultiple(of: 20) else { continue }
      let isFound = model.enumerated().allSatisfy { array.index(id: $1.id) == $0 }
      #expect(isFound, "seed \(seed), step \(step)")
      let ids = Set(model.map { $0.id })
      let areRemoved = (0..<largest).allSatisfy { (array[id: $0] != nil) == ids.contains($0) }
      #expect(areRemoved, "seed \(seed), step \(step)")
      #expect(array == IdentifiedArray(model), "seed \(seed), step \(step)")
    }
    copies.append((array, model))
    while let item = model.popLast() {
      #expect(array.index(id: item.id) == model.count && array.last == item, "seed \(seed)")
      array.removeLast(1)
      guard let item = model.first else { break }
      #expect(array.index(id: item.id) == 0 && array.remove(at: 0) == item, "seed \(seed)")
      model.removeFirst()
    }
    #expect(array.isEmpty)
    for (copy, model) in copies {
      #expect(Array(copy) == model, "seed \(seed)")
      let isFound = model.enumerated().allSatisfy { copy.index(id: $1.id) == $0 }
      #expect(isFound, "seed \(seed)")
    }
  }
}

/// S. Vigna's SplitMix64: random numbers that a seed reproduces.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
