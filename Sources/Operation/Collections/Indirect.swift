/// An optional value on the heap, for what is rarely there: without a value it takes one word.
///
/// A plain optional of the same types puts these benchmarks over their limits: resident bytes per
/// store, read status, write without subscribers.
@propertyWrapper
struct Indirect<Value: Sendable>: Sendable {
  private indirect enum Storage: Sendable {
    case none
    case some(Value)
  }

  private var storage: Storage

  init(wrappedValue: Value?) { storage = wrappedValue.map(Storage.some) ?? .none }

  var wrappedValue: Value? {
    get { if case .some(let value) = storage { value } else { nil } }
    set { self = Indirect(wrappedValue: newValue) }
    // Changes the value in place: what it contains is referenced once meanwhile.
    _modify {
      var value = wrappedValue
      storage = .none
      defer { self = Indirect(wrappedValue: value) }
      yield &value
    }
  }

  /// Whether there is no value; cheaper than a comparison of the value with `nil`.
  var isNil: Bool { if case .none = storage { true } else { false } }
}
