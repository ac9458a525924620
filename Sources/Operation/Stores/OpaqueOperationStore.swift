import FoundationEssentials
public import ReactiveStreams

/// A store whose state type is not known, as a client finds it on a path.
public struct OpaqueOperationStore: Sendable {
  /// The store itself. Cast it to the ``OperationStore`` that it is.
  public var base: any Sendable & AnyObject { store }
  /// What the client uses, beyond the public members below.
  let store: any ErasedOperationStore

  init(_ store: any ErasedOperationStore) { self.store = store }

  var id: ObjectIdentifier { ObjectIdentifier(store) }

  /// Calls a function with the use of the store.
  func withUse<Output>(_ body: (borrowing StoreUse) -> Output) -> Output { body(store.use) }

  /// The path of the store in its client.
  public var path: OperationPath { store.path }
  /// The state of the store.
  public var state: any OperationState { store.erasedState }
  /// The value that the state displays.
  public var currentValue: any Sendable { store.erasedState.currentValue }
  /// The status of the state.
  public var status: OperationStatus<any Sendable, any Error> { store.erasedStatus }
  /// A Boolean value that indicates whether a run is scheduled or in flight.
  public var isLoading: Bool { store.isLoading }
  /// The latest failure; `nil` once a value has come.
  public var error: (any Error)? { store.erasedState.error }
  /// A Boolean value that indicates whether the value is missing, invalidated, or out of date by
  /// the request's rule.
  public var isStale: Bool { store.isStale }
  /// The context that runs begin with.
  public var context: OperationContext { store.context }
  /// The number of subscribed handlers and stream iterators.
  public var subscriberCount: Int { store.subscriberCount }
  /// The number of callers and subscribers that hold a run of this store.
  public var leaseCount: Int { store.leaseCount }

  /// Runs the request, as `OperationStore.run` does.
  ///
  /// - Throws: The failure of the run, or ``MutationError/noArguments`` for a mutation that was never
  ///   called.
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil
  ) async throws -> any Sendable { try await store.erasedRun(using: context) }

  /// Runs the request, as ``run(using:)`` does.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil
  ) async throws -> any Sendable { try await store.erasedRun(using: context) }

  /// Sets a result, as `OperationStore.setResult` does.
  ///
  /// - Throws: ``OperationTypeMismatch`` for a value or a failure of another type than the store's.
  public func setResult(
    to result: Result<any Sendable, any Error>, using context: OperationContext? = nil
  ) throws(OperationTypeMismatch) { try store.setErasedResult(to: result, using: context) }

  /// Resets the state to its initial value, and cancels all runs.
  public func resetState(using context: OperationContext? = nil) {
    store.resetState(using: context)
  }

  /// Resets the state, as ``resetState(using:)`` does.
  public func reset(using context: OperationContext? = nil) { resetState(using: context) }

  /// Invalidates the value, and runs the request if the store is observed.
  public func invalidate() { store.invalidate() }

  /// Cancels all runs of the store for all callers.
  public func cancel() { store.cancel() }

  /// Calls `handler` with the current state, and with each later one.
  ///
  /// - Parameter handler: Called in the order of the states, on a thread that changes the store,
  ///   with no lock held.
  /// - Returns: The subscription, which retains the store.
  public func subscribe(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription { store.subscribeErased(handler) }
}

/// An error that a value or a failure is of another type than that of the store.
public struct OperationTypeMismatch: Error, CustomStringConvertible {
  /// The path of the store.
  public let path: OperationPath
  /// The type that the store accepts.
  public let expected: any Any.Type
  /// The type that was passed.
  public let given: any Any.Type

  /// A line that names the path and both types.
  public var description: String {
    "The store at \(path) keeps \(expected), and was given \(given)."
  }
}

/// What a client and an opaque store use of a store whose state type they do not know.
protocol ErasedOperationStore: AnyObject, Sendable {
  var path: OperationPath { get }
  var kind: OperationKind { get }
  var erasedRequestType: RequestType { get }
  var use: StoreUse { get }
  var isLoading: Bool { get }
  var isStale: Bool { get }
  var context: OperationContext { get }
  var subscriberCount: Int { get }
  var leaseCount: Int { get }
  var erasedState: any OperationState { get }
  var erasedStatus: OperationStatus<any Sendable, any Error> { get }

  nonisolated(nonsending) func erasedRun(using: OperationContext?) async throws -> any Sendable
  nonisolated(nonsending) func ensure() async throws
  /// Whether the store may run after an invalidation.
  var allowsRun: Bool { get }
  /// The number of final results, writes and resets.
  var resultCount: Int { get }
  /// Runs the request, unless there was another result since the result count was `results`.
  nonisolated(nonsending) func refetch(unlessNewerThan results: Int) async throws
  func setErasedResult(
    to: Result<any Sendable, any Error>, using: OperationContext?
  ) throws(OperationTypeMismatch)
  func resetState(using: OperationContext?)
  /// Resets the state, removes all runs, and returns what cancels these. See ``removeRuns()``.
  func beginReset(using: OperationContext?) -> [@Sendable () -> Void]
  func invalidate()
  func cancel()
  /// Removes all runs, and returns what cancels them.
  ///
  /// If several stores are cancelled, the runs of all are removed first. A run that is still in its store would
  /// call its request when one that it waits for is cancelled.
  func removeRuns() -> [@Sendable () -> Void]
  func subscribeErased(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription

  /// Saves nothing from now on.
  ///
  /// - Parameter isForgotten: Whether what was saved is removed.
  func endSaving(forgetting isForgotten: Bool)
  /// The run of another request is about to read the value.
  func noteRead()
  func snapshot(at date: Date) -> OperationClientSnapshot.Store
  /// The runs in flight.
  var startedRuns: [TaskNode] { get }
  func performInvalidation(_ step: InvalidationStep) -> InvalidationOutcome
  /// Has an action performed at the end of the exclusive access of the calling thread. Returns `false`
  /// if it has none.
  func atEndOfAccess(_ action: @escaping @Sendable () -> Void) -> Bool
}

extension ErasedOperationStore {
  var isRetained: Bool { use.isRetained }
}

extension OperationStore: ErasedOperationStore {
  var kind: OperationKind { State.kind }
  var erasedRequestType: RequestType { RequestType(request: types.plain, state: State.self) }
  var erasedState: any OperationState { state }

  var erasedStatus: OperationStatus<any Sendable, any Error> {
    switch status {
    case .idle: .idle
    case .loading: .loading
    case .paused: .paused
    case .result(let result): .result(result.map { $0 }.mapError { $0 })
    }
  }

  nonisolated(nonsending) func erasedRun(
    using context: OperationContext?
  ) async throws -> any Sendable {
    try await run(box(context), input: latestInput())
  }

  var resultCount: Int { read { $0.visibleResultCount } }

  nonisolated(nonsending) func refetch(unlessNewerThan results: Int) async throws {
    _ = try await run(unlessNewerThan: results)
  }

  func setErasedResult(
    to result: Result<any Sendable, any Error>, using context: OperationContext?
  ) throws(OperationTypeMismatch) {
    switch result {
    case .success(let value): setResult(to: .success(try cast(value)), using: context)
    case .failure(let error): setResult(to: .failure(try cast(error)), using: context)
    }
  }

  private func cast<Expected>(_ given: Any) throws(OperationTypeMismatch) -> Expected {
    // An optional without content could be cast to any other optional.
    let isNil = (given as? any OptionalValue).map { $0.content == nil } ?? false
    let types: [Any.Type?] = [Expected.self, (Expected.self as? any OptionalValue.Type)?.wrapped]
    if !isNil || types.contains(where: { $0 == type(of: given) }), let value = given as? Expected {
      return value
    }
    throw OperationTypeMismatch(path: path, expected: Expected.self, given: type(of: given))
  }

  func subscribeErased(
    _ handler: @escaping @Sendable (any OperationState) -> Void
  ) -> OperationSubscription {
    subscribe { event in if case .stateChanged(let state) = event { handler(state) } }
  }

  func performInvalidation(_ step: InvalidationStep) -> InvalidationOutcome {
    invalidationStep(self, step)
  }

  func endSaving(forgetting isForgotten: Bool) { persistence?.end(forgetting: isForgotten) }

  var startedRuns: [TaskNode] {
    read { machine in machine.runs.records.filter { $0.isStarted }.map { $0.core.node } }
  }

  func atEndOfAccess(_ action: @escaping @Sendable () -> Void) -> Bool {
    commit(as: .note) { $0.atEndOfAccess(of: .current, [action]) }
  }

  func snapshot(at date: Date) -> OperationClientSnapshot.Store {
    let (state, runs) = read { machine in
      let runs = machine.runs.records.map {
        OperationClientSnapshot.Run(
          id: $0.id.rawValue, cause: $0.core.node.cause, isStarted: $0.isStarted)
      }
      return (machine.visibleState(to: .current), runs)
    }
    return OperationClientSnapshot.Store(
      path: path.map { String(describing: $0.value) }, kind: State.kind,
      status: OperationClientSnapshot.Status(rawValue: state.status.name) ?? .idle,
      age: state.valueLastUpdatedAt.map { date.duration(since: $0).inSeconds }, isStale: isStale,
      subscribers: subscriberCount, leases: leaseCount,
      lastError: state.error.map { String(describing: $0) }, runs: runs)
  }
}
