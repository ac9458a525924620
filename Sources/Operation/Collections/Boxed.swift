/// A value that is rarely there: where it is not, it costs one word and not its size.
///
/// An array of one is the box, as it is changed in its place, and copied when it is shared. Where
/// there is none, there is no array: an empty one is an object, which copies would have to look at.
struct Boxed<Value> {
  var storage: [Value]?

  init(storage: [Value]?) {
    self.storage = storage
  }

  init(_ value: Value?) {
    self = if let value { .some(value) } else { .none }
  }

  static var none: Boxed { Boxed(storage: nil) }
  static func some(_ value: consuming Value) -> Boxed { Boxed(storage: [value]) }

  var isNone: Bool { storage == nil }

  /// The value, which must be there, in its place.
  var content: Value {
    _read { yield storage![0] }
    _modify { yield &storage![0] }
  }

  var value: Value? { storage?[0] }
}

extension Boxed: Sendable where Value: Sendable {}
