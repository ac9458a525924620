public import FoundationEssentials

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
public struct DefaultState<Base: DefaultableState>: OperationState {
  /// The value with the default.
  public typealias StateValue = Base.DefaultedValue
  /// The type of the value that one run returns.
  public typealias OperationValue = Base.OperationValue
  /// The type of the value in the status.
  public typealias StatusValue = Base.StatusValue
  /// The type of the error that a run throws.
  public typealias Failure = Base.Failure
  /// The state of the store.
  public typealias StoredState = Base

  /// The projected state.
  public private(set) var base: Base
  /// The value that replaces a missing one.
  public let defaultValue: StateValue

  /// Creates a projection of a state.
  public init(_ base: Base, default defaultValue: StateValue) {
    self.base = base
    self.defaultValue = defaultValue
  }

  /// The displayed value, or the default.
  public var currentValue: StateValue { Base.value(base.currentValue, default: defaultValue) }
  /// The value that the state began with, or the default.
  public var initialValue: StateValue { Base.value(base.initialValue, default: defaultValue) }
  /// The number of values since the creation or the last reset.
  public var valueUpdateCount: Int { base.valueUpdateCount }
  /// The date of the current value.
  public var valueLastUpdatedAt: Date? { base.valueLastUpdatedAt }
  /// A Boolean value that indicates whether a run is scheduled or running.
  public var isLoading: Bool { base.isLoading }
  /// The last failure; `nil` once a value has followed it.
  public var error: Failure? { base.error }
  /// The number of failures since the creation or the last reset.
  public var errorUpdateCount: Int { base.errorUpdateCount }
  /// The date of the last failure.
  public var errorLastUpdatedAt: Date? { base.errorLastUpdatedAt }
  /// A Boolean value that indicates whether there are active runs and all wait for a connection.
  public var isPaused: Bool { base.isPaused }
  /// The status of the projected state, without the default.
  public var status: OperationStatus<StatusValue, Failure> { base.status }
  /// The kind of request that the state belongs to.
  public static var kind: OperationKind { Base.kind }
  /// `false`: a value is stored as it is set.
  public static var preparesValues: Bool { false }

  /// Adds a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>) {
    base.scheduleFetchTask(&task)
  }

  /// Stores a result that was set.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) { base.update(with: result.map(Base.stateValue), using: context) }

  /// Stores a result of a run.
  public mutating func update(
    with result: Result<OperationValue, Failure>, for task: OperationTask<OperationValue, Failure>
  ) { base.update(with: result, for: task) }

  /// Removes a task that has ended.
  public mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    base.finishFetchTask(task)
  }

  /// Restores the initial value, and returns an effect that cancels the active tasks.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    base.reset(using: context)
  }
}
