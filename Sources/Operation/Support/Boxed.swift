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

  /// The value, which must be there, in its place.
  @inlinable var content: Value {
    _read { yield storage[0] }
    _modify { yield &storage[0] }
  }

  @inlinable var value: Value? { storage.first }
}
