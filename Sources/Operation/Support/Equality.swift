/// Compares values whose type is known to be `Equatable` only when the program runs.
@usableFromInline package enum Equality<Value: Sendable> {
  /// A comparison of two values, or `nil` where the type has none.
  @usableFromInline package static var comparison: (@Sendable (Value, Value) -> Bool)? {
    guard Value.self is any Equatable.Type else { return nil }
    return { areEqual($0, $1) }
  }
}

/// Tells whether both have one type and are equal; values that cannot be compared never are.
func areEqual(_ lhs: any Sendable, _ rhs: any Sendable) -> Bool {
  func compare<Concrete: Equatable>(_ lhs: Concrete) -> Bool {
    guard let rhs = rhs as? Concrete else { return false }
    return lhs == rhs
  }
  guard type(of: lhs) == type(of: rhs), let lhs = lhs as? any Equatable else { return false }
  return compare(lhs)
}

/// Tells whether both are one object.
func areSameObject(_ lhs: any Sendable, _ rhs: any Sendable) -> Bool {
  guard type(of: lhs) is AnyClass, type(of: rhs) is AnyClass else { return false }
  return lhs as AnyObject === rhs as AnyObject
}
