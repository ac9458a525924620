/// A dictionary that looks at its keys one after the other while they are few, which costs less than
/// their hashes, and less memory.
///
/// Its entries have no order.
struct SmallDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let key: Key
    var value: Value
  }

  /// All entries while they are few; none once they were more.
  private var few: [Entry] = []
  private var many: [Key: Value] = [:]

  static var mostInList: Int { 16 }

  var isEmpty: Bool { few.isEmpty && many.isEmpty }
  var count: Int { few.count + many.count }

  subscript(key: Key) -> Value? {
    if few.isEmpty { return many.isEmpty ? nil : many[key] }
    return position(of: key).map { few[$0].value }
  }

  func contains(_ key: Key) -> Bool {
    if few.isEmpty { return !many.isEmpty && many.index(forKey: key) != nil }
    return position(of: key) != nil
  }

  mutating func set(_ value: Value, for key: Key) {
    update(key, default: value) { $0 = value }
  }

  /// Changes the value of a key in its place, or a new one, if there is none.
  mutating func update(
    _ key: Key, default value: @autoclosure () -> Value, _ change: (inout Value) -> Void
  ) {
    if !many.isEmpty { return change(&many[key, default: value()]) }
    if let position = position(of: key) { return change(&few[position].value) }
    few.append(Entry(key: key, value: value()))
    change(&few[few.count - 1].value)
    if few.count > Self.mostInList { spread() }
  }

  /// Changes the value of a key in its place, if it is there.
  mutating func update<Output>(_ key: Key, _ change: (inout Value) -> Output) -> Output? {
    if !many.isEmpty { return many.index(forKey: key).map { change(&many.values[$0]) } }
    return position(of: key).map { change(&few[$0].value) }
  }

  /// Takes an entry out, with the key that it was put in with.
  @discardableResult
  mutating func remove(_ key: Key) -> (key: Key, value: Value)? {
    if !many.isEmpty { return many.index(forKey: key).map { many.remove(at: $0) } }
    guard let position = position(of: key) else { return nil }
    few.swapAt(position, few.count - 1)
    let entry = few.removeLast()
    return (entry.key, entry.value)
  }

  func appendValues(to array: inout [Value]) {
    array.append(contentsOf: few.lazy.map { $0.value })
    if !many.isEmpty { array.append(contentsOf: many.values) }
  }

  func forEach(_ body: (Key, Value) -> Void) {
    for entry in few { body(entry.key, entry.value) }
    for (key, value) in many { body(key, value) }
  }

  private mutating func spread() {
    for entry in few { many[entry.key] = entry.value }
    few = []
  }

  /// In place: an entry is not copied for a look at its key.
  private func position(of key: Key) -> Int? {
    few.withUnsafeBufferPointer { few in few.indices.first { few[$0].key == key } }
  }
}

/// A set that looks at its elements one after the other while they are few.
struct SmallSet<Element: Hashable & Sendable>: Sendable, Equatable {
  private var elements = SmallDictionary<Element, Void>()

  var isEmpty: Bool { elements.isEmpty }
  var count: Int { elements.count }

  func contains(_ element: Element) -> Bool { elements.contains(element) }
  func forEach(_ body: (Element) -> Void) { elements.forEach { element, _ in body(element) } }

  mutating func insert(_ element: Element) { elements.set((), for: element) }
  mutating func remove(_ element: Element) { elements.remove(element) }

  mutating func formUnion(_ other: SmallSet) {
    other.forEach { insert($0) }
  }

  /// Tells whether both have the same elements.
  static func == (lhs: SmallSet, rhs: SmallSet) -> Bool {
    guard lhs.count == rhs.count else { return false }
    var areEqual = true
    lhs.forEach { areEqual = areEqual && rhs.contains($0) }
    return areEqual
  }
}
