public import FoundationEssentials

/// A state whose value can be missing, so that a default can stand in for it.
public protocol DefaultableState: ValueInitializedState {
  /// The value with the default in the place of a missing one.
  associatedtype DefaultedValue: Sendable
  /// The value, or `fallback` where it is missing.
  static func value(_ value: StateValue, default fallback: DefaultedValue) -> DefaultedValue
  /// The value of a state that shows `value` and not its default.
  static func stateValue(_ value: DefaultedValue) -> StateValue
}

extension QueryState: DefaultableState {
  /// The value, or `fallback` where there is none.
  public static func value(_ value: Value?, default fallback: Value) -> Value { value ?? fallback }
  /// The value itself.
  public static func stateValue(_ value: Value) -> Value? { value }
}

/// A look at another state in which a default stands in for a missing value.
///
/// It is a projection, and nothing of its own: the store behind it keeps the other state.
public struct DefaultState<Base: DefaultableState>: OperationState {
  /// The value with the default in the place of a missing one.
  public typealias StateValue = Base.DefaultedValue
  /// The value that one run gives.
  public typealias OperationValue = Base.OperationValue
  /// The value in the status.
  public typealias StatusValue = Base.StatusValue
  /// What a run fails with.
  public typealias Failure = Base.Failure
  /// The state of the store.
  public typealias StoredState = Base

  /// The state that is looked at.
  public private(set) var base: Base
  /// What stands in for a missing value.
  public let defaultValue: StateValue

  /// Creates a look at a state.
  public init(_ base: Base, default defaultValue: StateValue) {
    self.base = base
    self.defaultValue = defaultValue
  }

  /// The value that is shown, or the default.
  public var currentValue: StateValue { Base.value(base.currentValue, default: defaultValue) }
  /// The value that the state began with, or the default.
  public var initialValue: StateValue { Base.value(base.initialValue, default: defaultValue) }
  /// How often a value came since the beginning or the last reset.
  public var valueUpdateCount: Int { base.valueUpdateCount }
  /// When the last value came.
  public var valueLastUpdatedAt: Date? { base.valueLastUpdatedAt }
  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { base.isLoading }
  /// What went wrong last; `nil` once a value has come.
  public var error: Failure? { base.error }
  /// How often something went wrong since the beginning or the last reset.
  public var errorUpdateCount: Int { base.errorUpdateCount }
  /// When something went wrong last.
  public var errorLastUpdatedAt: Date? { base.errorLastUpdatedAt }
  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool { base.isPaused }
  /// Where the state is.
  public var status: OperationStatus<StatusValue, Failure> { base.status }
  /// What kind of request the state belongs to.
  public static var kind: OperationKind { Base.kind }
  /// Values stay as they are set.
  public static var preparesValues: Bool { false }

  /// Takes in a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>) {
    base.scheduleFetchTask(&task)
  }

  /// Takes in a result that somebody set.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) {
    base.update(with: result.map(Base.stateValue), using: context)
  }

  /// Takes in a result that a run gave.
  public mutating func update(
    with result: Result<OperationValue, Failure>, for task: OperationTask<OperationValue, Failure>
  ) {
    base.update(with: result, for: task)
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    base.finishFetchTask(task)
  }

  /// Goes back to the initial value.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    base.reset(using: context)
  }
}
