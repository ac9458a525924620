/// An optional value on the heap, for what is rarely there: without a value it takes one word.
///
/// A plain optional of the same types puts these benchmarks over their limits: resident bytes per
/// store, read status, write without subscribers.
@propertyWrapper
indirect enum Indirect<Value> {
  case none
  case some(Value)

  init(wrappedValue: Value?) { self = wrappedValue.map(Indirect.some) ?? .none }

  var wrappedValue: Value? {
    get { if case .some(let value) = self { value } else { nil } }
    set { self = Indirect(wrappedValue: newValue) }
    // Changes the value in place: what it contains is referenced once meanwhile.
    _modify {
      var value = wrappedValue
      self = .none
      defer { self = Indirect(wrappedValue: value) }
      yield &value
    }
  }

  /// Whether there is no value; cheaper than a comparison of the value with `nil`.
  var isNil: Bool { if case .none = self { true } else { false } }

  /// Returns a part of the value. An optional chain would make an optional of the whole value first, which
  /// puts the same benchmarks over their limits.
  func map<Part>(_ part: (Value) -> Part) -> Part? {
    if case .some(let value) = self { part(value) } else { nil }
  }
}

extension Indirect: Sendable where Value: Sendable {}
