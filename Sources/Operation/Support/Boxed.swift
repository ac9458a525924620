/// A value that is rarely there: where it is not, it costs one word and not its size.
@usableFromInline indirect enum Boxed<Value: Sendable>: Sendable {
  case none
  case some(Value)

  @inlinable var isNone: Bool { if case .none = self { true } else { false } }

  @inlinable var value: Value? {
    get { if case .some(let value) = self { value } else { nil } }
    _modify {
      // Taken out, so that it is changed in its place.
      var taken = value
      self = .none
      defer { self = taken.map(Boxed.some) ?? .none }
      yield &taken
    }
  }
}
