public import FoundationEssentials

/// A state that displays the value of another one in another form. The store holds the other state.
public protocol ProjectedState: OperationState
where
  OperationValue == Base.OperationValue, StatusValue == Base.StatusValue, Failure == Base.Failure,
  StoredState == Base
{
  /// The projected state.
  associatedtype Base: OperationState
  /// The projected state.
  var base: Base { get set }
  /// Returns the displayed form of a value.
  func project(_ value: Base.StateValue) -> StateValue
}

extension ProjectedState {
  /// The displayed form of the value.
  public var currentValue: StateValue { project(base.currentValue) }
  /// The displayed form of the value that the state began with.
  public var initialValue: StateValue { project(base.initialValue) }
  /// A Boolean value that indicates whether the projected state began with a value.
  public var hasInitialValue: Bool { base.hasInitialValue }
  /// A Boolean value that indicates whether the projected state has a value.
  public var hasValue: Bool { base.hasValue }
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
  /// The retry that a run in flight waits for.
  public var retry: OperationRetry<Failure>? { base.retry }
  /// The status of the projected state.
  public var status: OperationStatus<StatusValue, Failure> { base.status }
  /// The kind of request that the state belongs to.
  public static var kind: OperationKind { Base.kind }
  /// `false`: a value is stored as it is set.
  public static var preparesValues: Bool { false }

  /// Adds a scheduled task.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>) {
    base.scheduleFetchTask(&task)
  }

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

/// A projection of another state that displays a part of its value.
///
/// The store holds the other state. A part cannot be set.
public struct SelectedState<Base: OperationState, StateValue: Sendable>: ProjectedState {
  /// The projected state.
  public var base: Base
  private let select: @Sendable (Base.StateValue) -> StateValue

  /// Creates a projection of a state.
  ///
  /// - Parameters:
  ///   - base: The projected state.
  ///   - select: Returns the part of a value. It is called on any thread, for each read.
  public init(_ base: Base, select: @escaping @Sendable (Base.StateValue) -> StateValue) {
    self.base = base
    self.select = select
  }

  /// Returns the part of a value.
  public func project(_ value: Base.StateValue) -> StateValue { select(value) }

  /// Stores a failure. A part of a value changes nothing.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) {
    if case .failure(let error) = result { base.update(with: .failure(error), using: context) }
  }
}
