/// A value that is rarely there: where it is not, it costs one word and not its size.
///
/// An array of one is the box, as it is changed in its place, and copied when it is shared.
@usableFromInline struct Boxed<Value: Sendable>: Sendable {
  @usableFromInline var storage: [Value]

  @inlinable init(_ value: Value?) {
    storage = value.map { [$0] } ?? []
  }

  @inlinable static var none: Boxed { Boxed(nil) }
  @inlinable static func some(_ value: Value) -> Boxed { Boxed(value) }

  @inlinable var isNone: Bool { storage.isEmpty }

  @inlinable var value: Value? {
    get { storage.first }
    _modify {
      // Taken out, so that it is changed in its place.
      var taken = storage.popLast()
      defer {
        if let taken { storage.append(taken) } else { storage = [] }
      }
      yield &taken
    }
  }
}
