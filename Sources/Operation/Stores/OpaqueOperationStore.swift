import FoundationEssentials
public import ReactiveStreams
import Synchronization

/// A store whose state's type is not known: what a client finds under a path.
public struct OpaqueOperationStore: Sendable {
  /// The store itself; cast it to the ``OperationStore`` that it is.
  public var base: any Sendable & AnyObject { store }
  private let store: any ErasedOperationStore

  init<State>(_ store: OperationStore<State>) {
    self.store = store
  }

  /// Where a client keeps the store.
  public var path: OperationPath { store.path }
  /// The state of the store.
  public var state: any OperationState { store.erasedState }
  /// The value that the state shows.
  public var currentValue: any Sendable { store.erasedValue }
  /// Where the state is.
  public var status: OperationStatus<any Sendable, any Error> { store.erasedStatus }
  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { store.isLoading }
  /// What went wrong last; `nil` once a value has come.
  public var error: (any Error)? { store.erasedState.error }
  /// Whether a run is due.
  public var isStale: Bool { store.isStale }
  /// The context that runs begin with.
  public var context: OperationContext { store.context }
  /// How many handlers and stream iterators listen.
  public var subscriberCount: Int { store.subscriberCount }
  /// How many callers and subscribers hold a run of this store.
  public var leaseCount: Int { store.leaseCount }

  /// Runs the request, as `OperationStore.run` does.
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil
  ) async throws -> any Sendable {
    try await store.erasedRun(using: context)
  }

  /// Runs the request, as `OperationStore.fetch` does.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil
  ) async throws -> any Sendable {
    try await store.erasedRun(using: context)
  }

  /// Takes in a value or a failure as if a run had given it.
  ///
  /// - Throws: ``OperationTypeMismatch`` for a value or a failure of another type than the store's.
  public func setResult(
    to result: Result<any Sendable, any Error>, using context: OperationContext? = nil
  ) throws(OperationTypeMismatch) {
    try store.setErasedResult(to: result, using: context)
  }

  /// Goes back to the initial state, and cancels all runs.
  public func resetState(using context: OperationContext? = nil) {
    store.resetState(using: context)
  }

  /// Goes back to the initial state, as ``resetState(using:)`` does.
  public func reset(using context: OperationContext? = nil) { resetState(using: context) }

  /// Marks the value as out of date, and runs the request if somebody observes the store.
  public func invalidate() { store.invalidate() }

  /// When the store was used last.
  var lastUse: StoreUse.Moment {
    get { store.lastUse }
    nonmutating set { store.lastUse = newValue }
  }
  /// What its use has been at.
  var useMark: StoreUse.Mark { store.useMark }
  /// How long the client keeps the store.
  var retention: OperationRetention {
    get { store.retention }
    nonmutating set { store.retention = newValue }
  }
  /// When the client asks the store whether it may leave.
  var deadline: Date {
    get { store.deadline }
    nonmutating set { store.deadline = newValue }
  }
  var requestType: RequestType { store.erasedRequestType }

  /// Tells whether the store is for requests of a type. Then it has been used, and the longest
  /// retention wins.
  func ask(
    for type: RequestType, _ retention: OperationRetention?, at moment: StoreUse.Moment
  ) -> Bool {
    store.ask(for: type, retention, at: moment)
  }

  /// Has the client told of each use that begins or ends.
  func watchUse() { store.watchUse() }
  /// Whether the client has to keep the store.
  var isUsed: Bool { store.isUsed }

  var kind: OperationKind { store.kind }
  nonisolated(nonsending) func ensure() async throws { try await store.ensure() }
  func snapshot(at date: Date) -> OperationClientSnapshot.Store { store.snapshot(at: date) }

  func attachControllers() { store.attachControllers() }

  /// The store has left its client.
  func stopCounting() { store.stopCounting() }

  @discardableResult
  func perform(_ step: InvalidationStep) -> TaskDependency? { store.performInvalidation(step) }

  /// Has something done at the end of the exclusive access that the calling thread has; `false`
  /// if it has none.
  func atEndOfAccess(_ action: @escaping @Sendable () -> Void) -> Bool {
    store.atEndOfAccess(action)
  }

  /// Cancels all runs of the store for everybody.
  public func cancel() { store.cancel() }

  /// Calls `handler` with the present state, and with each later one.
  public func subscribe(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription {
    store.subscribeErased(handler)
  }
}

/// What was given to a store is of another type than what it keeps.
public struct OperationTypeMismatch: Error, CustomStringConvertible {
  /// Where the store is.
  public let path: OperationPath
  /// The type that the store keeps.
  public let expected: any Any.Type
  /// The type that was given.
  public let given: any Any.Type

  /// A line that names the path and both types.
  public var description: String {
    "The store at \(path) keeps \(expected), and was given \(given)."
  }
}

/// What an opaque store needs of the store behind it.
private protocol ErasedOperationStore: AnyObject, Sendable {
  var path: OperationPath { get }
  var erasedState: any OperationState { get }
  var erasedValue: any Sendable { get }
  var erasedStatus: OperationStatus<any Sendable, any Error> { get }
  var isLoading: Bool { get }
  var isStale: Bool { get }
  var context: OperationContext { get }
  var subscriberCount: Int { get }
  var leaseCount: Int { get }
  var lastUse: StoreUse.Moment { get set }
  var useMark: StoreUse.Mark { get }
  var retention: OperationRetention { get set }
  var deadline: Date { get set }
  var erasedRequestType: RequestType { get }
  func ask(
    for type: RequestType, _ retention: OperationRetention?, at moment: StoreUse.Moment
  ) -> Bool
  func watchUse()
  var kind: OperationKind { get }
  var isUsed: Bool { get }

  nonisolated(nonsending) func erasedRun(using: OperationContext?) async throws -> any Sendable
  nonisolated(nonsending) func ensure() async throws
  func setErasedResult(
    to: Result<any Sendable, any Error>, using: OperationContext?
  ) throws(OperationTypeMismatch)
  func resetState(using: OperationContext?)
  func invalidate()
  func stopCounting()
  func attachControllers()
  func snapshot(at date: Date) -> OperationClientSnapshot.Store
  func performInvalidation(_ step: InvalidationStep) -> TaskDependency?
  func atEndOfAccess(_ action: @escaping @Sendable () -> Void) -> Bool
  func cancel()
  func subscribeErased(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription
}

extension OperationStore: ErasedOperationStore {
  var lastUse: StoreUse.Moment {
    get { use.lastUse }
    set { use.lastUse = newValue }
  }
  var useMark: StoreUse.Mark { use.latest }
  fileprivate var retention: OperationRetention {
    get { use.retention }
    set { use.retention = newValue }
  }
  fileprivate var deadline: Date {
    get { use.deadline }
    set { use.deadline = newValue }
  }
  fileprivate var erasedRequestType: RequestType {
    RequestType(request: requestType, state: State.self)
  }

  fileprivate func ask(
    for type: RequestType, _ retention: OperationRetention?, at moment: StoreUse.Moment
  ) -> Bool {
    guard type == erasedRequestType else { return false }
    if let retention, retention.isLonger(than: use.retention) { use.retention = retention }
    use.lastUse = moment
    return true
  }

  fileprivate func watchUse() { use.isWatched = true }
  var isUsed: Bool { read { $0.isUsed } }
  /// Does not wait for who has the store to himself: nobody sees the difference.
  func stopCounting() {
    let phases = machine.withLock { machine in
      machine.isCounted = false
      return machine.phaseChange()
    }
    if let (old, new) = phases { hub.activity.move(State.kind, from: old, to: new) }
  }

  fileprivate var kind: OperationKind { State.kind }

  fileprivate func performInvalidation(_ step: InvalidationStep) -> TaskDependency? {
    perform(step)
  }

  fileprivate func atEndOfAccess(_ action: @escaping @Sendable () -> Void) -> Bool {
    machine.withLock { machine in
      guard !machine.exclusive.isNone, machine.exclusive.content.owner == .current else {
        return false
      }
      machine.exclusive.content.keep { $0.actions.append(action) }
      return true
    }
  }

  fileprivate func snapshot(at date: Date) -> OperationClientSnapshot.Store {
    let (state, runs) = read { ($0.visibleState(to: .current), $0.snapshotRuns) }
    return OperationClientSnapshot.Store(
      path: path.map { String(describing: $0.value) }, kind: State.kind,
      status: state.status.snapshot,
      age: state.valueLastUpdatedAt.map { date.duration(since: $0).inSeconds }, isStale: isStale,
      subscribers: subscriberCount, leases: leaseCount,
      lastError: state.error.map { String(describing: $0) }, runs: runs)
  }
  fileprivate var erasedState: any OperationState { state }
  fileprivate var erasedValue: any Sendable { currentValue }

  fileprivate var erasedStatus: OperationStatus<any Sendable, any Error> {
    switch status {
    case .idle: .idle
    case .loading: .loading
    case .paused: .paused
    case .result(let result): .result(result.map { $0 }.mapError { $0 })
    }
  }

  nonisolated(nonsending) fileprivate func erasedRun(
    using context: OperationContext?
  ) async throws -> any Sendable {
    try await run(using: context)
  }

  fileprivate func setErasedResult(
    to result: Result<any Sendable, any Error>, using context: OperationContext?
  ) throws(OperationTypeMismatch) {
    switch result {
    case .success(let given):
      guard let value = given as? State.StateValue else {
        throw mismatch(expected: State.StateValue.self, given: type(of: given))
      }
      setResult(to: .success(value), using: context)
    case .failure(let given):
      guard let error = given as? State.Failure else {
        throw mismatch(expected: State.Failure.self, given: type(of: given))
      }
      setResult(to: .failure(error), using: context)
    }
  }

  private func mismatch(
    expected: any Any.Type, given: any Any.Type
  ) -> OperationTypeMismatch {
    OperationTypeMismatch(path: path, expected: expected, given: given)
  }

  fileprivate func subscribeErased(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription {
    subscribe { event in
      if case .stateChanged(let state) = event { handler(state) }
    }
  }
}

extension OperationStatus {
  fileprivate var snapshot: OperationClientSnapshot.Status {
    switch self {
    case .idle: .idle
    case .loading: .loading
    case .paused: .paused
    case .result(.success): .success
    case .result(.failure): .failure
    }
  }
}
