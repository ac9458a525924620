public import FoundationEssentials

/// The state of a request: plain data that a store changes and everyone else reads.
///
/// A state holds no lock, calls nobody and starts nothing. Its mutating members are called while
/// other writers of the store wait, so they must not block. Every date comes from the clock of the
/// context or the task that they are given.
public protocol OperationState<StateValue, OperationValue, Failure>: Sendable {
  /// The value that the state shows.
  associatedtype StateValue: Sendable
  /// The value that one run of the request gives.
  associatedtype OperationValue: Sendable
  /// The value in the ``OperationStatus`` of the state.
  associatedtype StatusValue: Sendable
  /// What a run fails with.
  associatedtype Failure: Error = any Error
  /// The state that a store keeps; another one only for a projection such as ``DefaultState``.
  associatedtype StoredState: OperationState = Self

  /// The value that the state shows.
  var currentValue: StateValue { get }
  /// The value that the state began with and that a reset goes back to.
  var initialValue: StateValue { get }
  /// How often a value came since the beginning or the last reset.
  var valueUpdateCount: Int { get }
  /// When the last value came; `nil` where there is none.
  var valueLastUpdatedAt: Date? { get }
  /// Whether a run is scheduled or under way.
  var isLoading: Bool { get }
  /// What went wrong last; `nil` once a value has come.
  var error: Failure? { get }
  /// How often something went wrong since the beginning or the last reset.
  var errorUpdateCount: Int { get }
  /// When something went wrong last.
  var errorLastUpdatedAt: Date? { get }
  /// What kind of request the state belongs to; a query unless said otherwise.
  static var kind: OperationKind { get }
  /// Where the state is. The default derives it from the other members.
  var status: OperationStatus<StatusValue, Failure> { get }

  /// Gives the run that one in `context` is the same as, whatever the deduplication says, and may
  /// say in the context what a run means for this state. The default gives none.
  func taskToJoin(in context: inout OperationContext) -> OperationTaskID?
  /// Writes what a run that begins now needs of the state into its context. The default writes
  /// nothing.
  func willRun(in context: inout OperationContext)
  /// Whether ``prepare(_:in:)`` does anything; `true` unless said otherwise. Where it is `false`, a
  /// value is set with one lock less.
  static var preparesValues: Bool { get }
  /// Completes a value that somebody sets, before the store is locked. The default leaves it.
  static func prepare(_ value: inout StateValue, in context: OperationContext)
  /// Completes the value that the state begins with, when its store is made. The default leaves it.
  mutating func prepareInitialValue(in context: OperationContext)
  /// Takes in a task that is scheduled; may change it, and make it wait for others.
  mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>)
  /// Takes in a result that somebody set.
  mutating func update(with result: Result<StateValue, Failure>, using context: OperationContext)
  /// Takes in a result that a run yielded or ended with.
  mutating func update(
    with result: Result<OperationValue, Failure>,
    for task: OperationTask<OperationValue, Failure>
  )
  /// Takes out a task that has ended, was cancelled, or was given up.
  mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>)
  /// Takes out a task that was cancelled, or given up before it was started, with what the state
  /// remembers of it. The default is ``finishFetchTask(_:)``.
  mutating func giveUpFetchTask(_ task: OperationTask<OperationValue, Failure>)
  /// Gives what the last changes have driven out, so that the store releases it without its lock;
  /// a value's deinitialiser is the user's. The store keeps ``currentValue`` and ``error``, except
  /// for pages, so the default gives nothing.
  mutating func takeReleased() -> [any Sendable]
  /// Gives the state for those who are told of a change, which has just been written. The default
  /// gives it as it is. One that is copied field by field need not wait until the cache has what was
  /// written: a copy at one go reads several fields at once.
  func copied() -> Self
  /// Whether every run that is under way waits for a connection. The default says no.
  var isPaused: Bool { get }
  /// Takes in that a run begins to wait for a connection, or goes on. The default takes no notice.
  mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID)
  /// Goes back to the beginning, and says which tasks are to be cancelled.
  ///
  /// The store cancels these and all other runs; their results are dropped.
  mutating func reset(using context: OperationContext) -> ResetEffect
}

extension OperationState {
  /// A request that reads.
  public static var kind: OperationKind { .query }

  /// Says no.
  public var isPaused: Bool { false }
  /// Takes no notice.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {}
  /// Gives none.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? { nil }
  /// Writes nothing.
  public func willRun(in context: inout OperationContext) {}
  /// Values may be completed.
  public static var preparesValues: Bool { true }
  /// Leaves the value as it is.
  public static func prepare(_ value: inout StateValue, in context: OperationContext) {}
  /// Leaves the value as it is.
  public mutating func prepareInitialValue(in context: OperationContext) {}
  /// Gives nothing.
  public mutating func takeReleased() -> [any Sendable] { [] }
  /// Gives the state as it is.
  public func copied() -> Self { self }
  /// Takes out the task.
  public mutating func giveUpFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    finishFetchTask(task)
  }

  /// The status that the other members imply.
  public var status: OperationStatus<StatusValue, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error { return .result(.failure(error)) }
    guard valueLastUpdatedAt != nil, let value = currentValue as? StatusValue else { return .idle }
    return .result(.success(value))
  }
}

/// A state that can be made from a value, and whose value has an empty form.
///
/// What is made without a state of its own, by `client.store(for:)` or a wrapper with nothing
/// behind it, begins with the empty value.
public protocol ValueInitializedState: OperationState where StoredState == Self {
  /// The value of a state that nothing has come into.
  static var emptyValue: StateValue { get }
  /// Creates a state that begins with a value.
  init(initialValue: StateValue)
}

/// A state whose value can be edited before the server has confirmed the edit, as
/// `OperationStore.optimistically(_:while:)` does.
public protocol EditableState: OperationState {
  /// Shows another value, and counts it as so many updates, which may be negative; dates and
  /// everything else stay.
  mutating func show(_ value: StateValue, updates: Int)
}
