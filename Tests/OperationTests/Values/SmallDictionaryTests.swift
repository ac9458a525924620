import Testing

@testable import Operation

@Suite struct SmallDictionaryTests {
  @Test(
    "It agrees with a dictionary after any sequence of changes, with few keys and with many",
    arguments: 0..<20)
  func agreesWithDictionary(seed: UInt64) {
    var generator = SplitMix(seed: seed)
    var small = SmallDictionary<Int, Int>()
    var plain: [Int: Int] = [:]
    let keys = 0..<[3, SmallDictionary<Int, Int>.mostInList + 1, 40][Int(seed % 3)]
    for step in 0..<1_000 {
      let key = Int.random(in: keys, using: &generator)
      switch Int.random(in: 0..<6, using: &generator) {
      case 0:
        small.set(step, for: key)
        plain[key] = step
      case 1:
        small.update(key, default: step) { $0 += 1 }
        plain[key, default: step] += 1
      case 2:
        let old = plain[key]
        let found = small.update(key) { value in
          defer { value *= 2 }
          return value
        }
        #expect(found == old, "seed \(seed), step \(step)")
        plain[key] = old.map { $0 * 2 }
      case 3:
        // Now and then all of them go, so that it is small again.
        for key in step.isMultiple(of: 50) ? Array(keys) : [key] {
          #expect(small.remove(key)?.value == plain.removeValue(forKey: key))
        }
      default:
        #expect(small[key] == plain[key], "seed \(seed), step \(step)")
        #expect(small.contains(key) == (plain[key] != nil), "seed \(seed), step \(step)")
      }
      #expect(small.count == plain.count && small.isEmpty == plain.isEmpty)
    }
    var seen: [Int: Int] = [:]
    small.forEach { seen[$0] = $1 }
    var values = [-1]
    small.appendValues(to: &values)
    #expect(seen == plain)
    #expect(values.first == -1 && values.dropFirst().sorted() == plain.values.sorted())
  }

  @Test("A set agrees with one of Swift, and has no order", arguments: [3, 17, 40])
  func set(count: Int) {
    var small = SmallSet<Int>()
    var backwards = SmallSet<Int>()
    for element in 0..<count {
      small.insert(element)
      small.insert(element)
      backwards.insert(count - 1 - element)
    }
    #expect(small.count == count && small.contains(count - 1) && !small.contains(count))
    #expect(small == backwards)
    backwards.remove(0)
    #expect(small != backwards && !backwards.contains(0))
    backwards.insert(count)
    #expect(small != backwards, "as many others")
    small.formUnion(backwards)
    var elements: [Int] = []
    small.forEach { elements.append($0) }
    #expect(elements.sorted() == Array(0...count))
    for element in elements { small.remove(element) }
    #expect(small.isEmpty && small == SmallSet())
  }

  @Test("A value of a key that is there is not made anew")
  func defaults() {
    var small = SmallDictionary<String, Int>()
    var made = 0
    func new() -> Int {
      made += 1
      return made
    }
    for _ in 0..<3 { small.update("key", default: new()) { $0 += 10 } }
    #expect(made == 1)
    #expect(small["key"] == 31)
  }
}
