public import FoundationEssentials

/// The state of a request: plain data that a store changes and that all other code reads.
///
/// ``QueryState``, ``PaginatedState`` and ``MutationState`` are the states of the library. A kind
/// of request with rules of its own can have another one. These are the rules for a state:
///
/// - It has value semantics, holds no lock and starts nothing. A store copies its state: for
///   readers, and to restore what a cancelled run has replaced.
/// - A store calls the members below while it holds its lock, unless their documentation states
///   otherwise. They must return quickly and must not block, because all other readers and writers
///   of the store wait. They must not use a store or a client: the call would never return.
/// - Of a task that it is given, a state can read and change the configuration, and it can call
///   `schedule(after:)` and `cancel()`. The store performs a cancellation after it has unlocked.
/// - Every date comes from the ``OperationContext/operationClock`` of the context, or of the task's
///   context, that a member is given.
///
/// A run goes through a state in this order: ``scheduleFetchTask(_:)``, ``startFetchTask(_:)``,
/// ``update(with:for:)`` for each yield and for the final result, and ``finishFetchTask(_:)``. A run
/// that is cancelled ends with ``giveUpFetchTask(_:)`` instead of the last two.
///
/// A store assumes that each value of a run replaces the one before as a whole, unless the ``kind`` is `pages`.
/// A state that adds values to what it has is correct as long as one run at a time yields, and as long as no
/// run ends during an optimistic edit. Otherwise it can keep what a cancelled run has yielded, and lose an edit.
public protocol OperationState<StateValue, OperationValue, Failure>: Sendable {
  /// The type of the value that the state displays.
  associatedtype StateValue: Sendable
  /// The type of the value that one run of the request returns.
  associatedtype OperationValue: Sendable
  /// The type of the value in the ``OperationStatus`` of the state.
  associatedtype StatusValue: Sendable
  /// The type of the error that a run throws.
  associatedtype Failure: Error = any Error
  /// The state that a store holds: this type, except for a projection such as ``DefaultState``.
  associatedtype StoredState: OperationState = Self

  /// The displayed value.
  var currentValue: StateValue { get }
  /// The value that the state began with, and that ``reset(using:)`` restores.
  var initialValue: StateValue { get }
  /// The number of values that were stored since the creation or the last reset.
  var valueUpdateCount: Int { get }
  /// The date of the current value; `nil` before the first one.
  ///
  /// The age of the value, and so its staleness, is measured from this date.
  var valueLastUpdatedAt: Date? { get }
  /// A Boolean value that indicates whether a run is scheduled or running.
  var isLoading: Bool { get }
  /// The last failure; `nil` once a value has followed it.
  var error: Failure? { get }
  /// The number of failures that were stored since the creation or the last reset.
  var errorUpdateCount: Int { get }
  /// The date of the last failure; `nil` before the first one.
  var errorLastUpdatedAt: Date? { get }
  /// The kind of request that the state belongs to. The default is a query.
  static var kind: OperationKind { get }
  /// A Boolean value that indicates whether there is a value, which may be an empty one. The default is
  /// `false` if ``currentValue`` is `nil`, and otherwise `true`.
  var hasValue: Bool { get }
  /// A Boolean value that indicates whether the state was created with a value, which is as fresh as one
  /// that was fetched then. The default is `false`.
  var hasInitialValue: Bool { get }
  /// The status. The default derives it from the other members.
  var status: OperationStatus<StatusValue, Failure> { get }

  /// Returns the identifier of the active run that a run in `context` has to join, or `nil` to
  /// leave that to the deduplication of the request.
  ///
  /// A store calls this for each run that is requested, before it looks for a run to join. The
  /// state may write into the context what the run means for it. The default returns `nil`.
  func taskToJoin(in context: inout OperationContext) -> OperationTaskID?
  /// Writes what a run needs of the state into its context.
  ///
  /// A store calls this directly before each run calls the request. The default does nothing.
  func willRun(in context: inout OperationContext)
  /// A Boolean value that indicates whether ``prepare(_:in:)`` does anything. The default is
  /// `true`.
  ///
  /// With `false` a store writes a value without reading its context first.
  static var preparesValues: Bool { get }
  /// Completes a value that a user sets.
  ///
  /// A store calls this on the thread of the writer, with no lock held, before
  /// ``update(with:using:)``. The default leaves the value unchanged.
  static func prepare(_ value: inout StateValue, in context: OperationContext)
  /// Completes the initial value.
  ///
  /// A store calls this once, when it is created, with no lock held. The default leaves the value
  /// unchanged.
  mutating func prepareInitialValue(in context: OperationContext)
  /// Adds a task that was scheduled.
  ///
  /// The state may change the task's configuration, and make it wait for other tasks.
  mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>)
  /// Notes that a scheduled task starts, or waits for its turn from now on.
  ///
  /// A store calls this only for a state whose ``kind`` is `mutation`, and for one whose kind is `pages` when
  /// a run begins again, or for the initial page because there is no page any more. The default does nothing.
  mutating func startFetchTask(_ task: OperationTask<OperationValue, Failure>)
  /// Stores a result that a user set, with the date of the context's clock.
  mutating func update(with result: Result<StateValue, Failure>, using context: OperationContext)
  /// Stores a result that a run yielded or ended with, with the date of the task's clock.
  ///
  /// A store calls this only for tasks that it has scheduled and that have not ended, and never
  /// with a cancellation. There is one exception: when a run of a query is cancelled, the failure of
  /// another one, which may have ended, is stored again in the state from before the cancelled run's yields.
  mutating func update(
    with result: Result<OperationValue, Failure>,
    for task: OperationTask<OperationValue, Failure>
  )
  /// Removes a task that has ended. After a reset it is called for tasks that are removed already.
  mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>)
  /// Removes a task that was cancelled, or given up before it was started, and what the state has
  /// recorded of it. The default calls ``finishFetchTask(_:)``.
  mutating func giveUpFetchTask(_ task: OperationTask<OperationValue, Failure>)
  /// Returns, and no longer holds, the values that earlier changes have replaced or removed.
  ///
  /// A store calls this after each change, and releases the result after it has unlocked: the
  /// deinitialiser of a value can use the store. The store does the same for ``currentValue`` and
  /// ``error``, except for the current value of a state whose ``kind`` is `pages`. So only a state
  /// that holds other values has to return them. The default returns an empty array.
  mutating func takeReleased() -> [any Sendable]
  /// A Boolean value that indicates whether there are active runs and all wait for a connection.
  /// The default is `false`.
  var isPaused: Bool { get }
  /// Records whether a run waits for a connection. The default does nothing.
  mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID)
  /// The retry that a run in flight waits for; `nil` if none does. The default is `nil`.
  var retry: OperationRetry<Failure>? { get }
  /// Records the retry that a run waits for, or `nil` when the attempt begins. The default does nothing.
  mutating func setRetry(_ retry: OperationRetry<Failure>?, _ id: OperationTaskID)
  /// Restores the initial value, and returns an effect that cancels the active tasks.
  ///
  /// The store performs the effect after it has unlocked. It also cancels every run of its own, and
  /// drops their results.
  mutating func reset(using context: OperationContext) -> ResetEffect
}

extension OperationState {
  /// A query.
  public static var kind: OperationKind { .query }
  /// `false` if the current value is `nil`, and otherwise `true`.
  public var hasValue: Bool {
    (currentValue as? any OptionalValue).map { $0.content != nil } ?? true
  }
  /// `false`.
  public var hasInitialValue: Bool { false }

  /// `false`.
  public var isPaused: Bool { false }
  /// Does nothing.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {}
  /// `nil`.
  public var retry: OperationRetry<Failure>? { nil }
  /// Does nothing.
  public mutating func setRetry(_ retry: OperationRetry<Failure>?, _ id: OperationTaskID) {}
  /// Returns `nil`.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? { nil }
  /// Does nothing.
  public func willRun(in context: inout OperationContext) {}
  /// `true`.
  public static var preparesValues: Bool { true }
  /// Leaves the value unchanged.
  public static func prepare(_ value: inout StateValue, in context: OperationContext) {}
  /// Leaves the value unchanged.
  public mutating func prepareInitialValue(in context: OperationContext) {}
  /// Does nothing.
  public mutating func startFetchTask(_ task: OperationTask<OperationValue, Failure>) {}
  /// Returns an empty array.
  public mutating func takeReleased() -> [any Sendable] { [] }
  /// Calls ``finishFetchTask(_:)``.
  public mutating func giveUpFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    finishFetchTask(task)
  }

  /// The status that the other members imply: paused or loading while runs are active, and
  /// otherwise the last result.
  public var status: OperationStatus<StatusValue, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error { return .result(.failure(error)) }
    guard valueLastUpdatedAt != nil, hasValue, let value = currentValue as? StatusValue else {
      return .idle
    }
    return .result(.success(value))
  }
}

/// A state that can be created from a value, and whose value has an empty form.
///
/// A store that is created without an initial state, by `client.store(for:)` or by a wrapper,
/// begins with the empty value.
public protocol ValueInitializedState: OperationState where StoredState == Self {
  /// The value of a state that has received none.
  static var emptyValue: StateValue { get }
  /// Creates a state with an initial value.
  init(initialValue: StateValue)
}

/// A state whose value can be edited before the server has confirmed the edit, as
/// `OperationStore.optimistically(_:while:)` does.
public protocol EditableState: OperationState {
  /// Replaces the displayed value, and adds `updates`, which can be negative, to
  /// ``OperationState/valueUpdateCount``. Dates and everything else stay unchanged.
  mutating func show(_ value: StateValue, updates: Int)
}

/// The cancellations that a store performs after its state has been reset.
public struct ResetEffect: Sendable {
  let cancellations: [@Sendable () -> Void]

  /// Creates an effect that cancels tasks.
  public init<Value, Failure>(tasksToCancel: some Sequence<OperationTask<Value, Failure>>) {
    cancellations = tasksToCancel.map { task in { task.cancel() } }
  }

  /// Creates an effect that cancels nothing.
  public init() { cancellations = [] }
}
