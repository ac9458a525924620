/// Compares values whose type is known to be `Equatable` at run time only.
package enum Equality<Value: Sendable> {
  /// A comparison of two values; `nil` if their type is not `Equatable`.
  package static var comparison: (@Sendable (Value, Value) -> Bool)? {
    guard Value.self is any Equatable.Type else { return nil }
    return { areEqual($0, $1) }
  }
}

/// Returns a Boolean value that indicates whether both have the same type and are equal. Values that
/// are not `Equatable` never are. Those whose conformance is isolated to an actor are equal on that actor
/// only.
// The values are cast, and not their generic type: optimised code performs a cast of a known type in advance,
// and then calls the `==` of an isolated conformance on any thread. The package `Tests/Consumer` checks that.
func areEqual(_ lhs: any Sendable, _ rhs: any Sendable) -> Bool {
  func compare<Concrete: Equatable>(_ lhs: Concrete) -> Bool { lhs == rhs as? Concrete }
  guard type(of: lhs) == type(of: rhs), let lhs = lhs as? any Equatable else { return false }
  return compare(lhs)
}

/// Returns a Boolean value that indicates whether both are known to differ. Values of one type that cannot
/// be compared are not.
func areDifferent(_ lhs: any Sendable, _ rhs: any Sendable) -> Bool {
  let isComparable = lhs is any Equatable || type(of: lhs) is AnyClass
  return type(of: lhs) != type(of: rhs) || isComparable && !areSame(lhs, rhs)
}

/// Returns a Boolean value that indicates whether both are equal, or the same object.
func areSame(_ lhs: any Sendable, _ rhs: any Sendable) -> Bool {
  areEqual(lhs, rhs) || areSameObject(lhs, rhs)
}

/// Returns a Boolean value that indicates whether both are the same object, or optionals of the same
/// type with the same object or none.
private func areSameObject(_ lhs: Any, _ rhs: Any) -> Bool {
  guard type(of: lhs) == type(of: rhs) else { return false }
  if let lhs = lhs as? any OptionalValue, let rhs = rhs as? any OptionalValue {
    guard let lhs = lhs.content, let rhs = rhs.content else {
      return lhs.content == nil && rhs.content == nil
    }
    return areSameObject(lhs, rhs)
  }
  return type(of: lhs) is AnyClass && lhs as AnyObject === rhs as AnyObject
}

/// Returns what identifies a value without `==`: the object that it is, or `place`, the object that stores it.
/// `nil` for an optional without a value.
func identity(of value: Any, in place: AnyObject) -> ObjectIdentifier? {
  if let optional = value as? any OptionalValue {
    return optional.content.flatMap { identity(of: $0, in: place) }
  }
  return ObjectIdentifier(type(of: value) is AnyClass ? value as AnyObject : place)
}

/// An optional whose type is not known.
protocol OptionalValue {
  static var wrapped: any Any.Type { get }
  var content: Any? { get }
}

extension Optional: OptionalValue {
  static var wrapped: any Any.Type { Wrapped.self }
  var content: Any? { self }
}
