/// A value that is rarely there: where it is not, it costs one word and not its size.
indirect enum Boxed<Value: Sendable>: Sendable {
  case none
  case some(Value)

  var value: Value? {
    get { if case .some(let value) = self { value } else { nil } }
    set { self = newValue.map(Boxed.some) ?? .none }
  }
}
