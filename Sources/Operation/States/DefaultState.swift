/// A state whose value can be missing, so that a default can replace it.
public protocol DefaultableState: ValueInitializedState {
  /// The type of the value with a default.
  associatedtype DefaultedValue: Sendable
  /// Returns the value, or `fallback` if it is missing.
  static func value(_ value: StateValue, default fallback: DefaultedValue) -> DefaultedValue
  /// Returns the value of a state that displays `value` and not the default.
  static func stateValue(_ value: DefaultedValue) -> StateValue
}

extension QueryState: DefaultableState {
  /// Returns the value, or `fallback` if it is `nil`.
  public static func value(_ value: Value?, default fallback: Value) -> Value { value ?? fallback }
  /// Returns the value itself.
  public static func stateValue(_ value: Value) -> Value? { value }
}

/// A projection of another state in which a default replaces a missing value.
///
/// The store holds the other state, with and without the default.
public struct DefaultState<Base: DefaultableState>: ProjectedState {
  /// The value with the default.
  public typealias StateValue = Base.DefaultedValue

  /// The projected state.
  public var base: Base
  /// The value that replaces a missing one.
  public let defaultValue: StateValue

  /// Creates a projection of a state.
  public init(_ base: Base, default defaultValue: StateValue) {
    self.base = base
    self.defaultValue = defaultValue
  }

  /// Returns the value, or the default.
  public func project(_ value: Base.StateValue) -> StateValue {
    Base.value(value, default: defaultValue)
  }

  /// Stores a result that was set.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) { base.update(with: result.map(Base.stateValue), using: context) }
}
