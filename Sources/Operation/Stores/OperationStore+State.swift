import ReactiveStreams
public import Synchronization

extension OperationStore {
  /// The state of the store.
  public var state: State { readState { copy $0 } }

  /// The value that the state displays. Setting it is ``setResult(to:using:)`` with a success.
  public var currentValue: State.StateValue {
    get { readState { $0.currentValue } }
    set { setResult(to: .success(newValue)) }
  }

  /// The status of the state.
  public var status: OperationStatus<State.StatusValue, State.Failure> { readState { $0.status } }

  /// A Boolean value that indicates whether a run is scheduled or in flight.
  public var isLoading: Bool { readState { $0.isLoading } }

  /// The latest failure; `nil` once a value has come.
  public var error: State.Failure? { readState { $0.error } }

  /// A member of the state.
  public subscript<Member>(dynamicMember keyPath: KeyPath<State, Member>) -> Member {
    state[keyPath: keyPath]
  }

  /// Reads the state that the calling thread may read, in place if every thread reads the same.
  private func readState<Output: Sendable>(_ body: (borrowing State) -> Output) -> Output {
    read { $0.isPlain ? body($0.committed.state) : body($0.visibleState(to: .current)) }
  }

  /// Whether the store is still at a version, so that a value that was read at this version is its value.
  // Without the annotation the benchmark read through @SharedQuery is over its limit.
  @inlinable package func isAt(version: Int) -> Bool {
    self.version.load(ordering: .acquiring) == version
  }

  /// The number of transitions, also while not every thread reads the same state.
  package var transitionCount: Int { read { $0.edits.transitionCount } }

  /// The state, its version, and its newest optimistic edit.
  package var versionedState: (state: State, version: Int?, edit: OperationTaskID?) {
    read { ($0.visibleState(to: .current), $0.version, $0.edits.layers?.layers.last?.id) }
  }

  /// Whether the calling thread has exclusive access, and reads there what may never be delivered.
  package var isChangedByCaller: Bool {
    isAt(version: -1) && read { $0.access.map { $0.owner == .current && $0.mayDiffer } ?? false }
  }

  /// Whether a thread calls subscribers.
  package var isDelivering: Bool { read { $0.deliveries.isDraining } }

  /// The context that runs begin with. A context that is passed to a run overrides it.
  public var context: OperationContext {
    get { read { $0.context } }
    set {
      let new = newValue.leavingRun().inStore(of: context)
      commit { $0.replaceContext(with: new) }
    }
  }

  /// A Boolean value that indicates whether the value is missing, invalidated, or out of date by the
  /// request's rule, or whether its last run failed.
  ///
  /// An initial value is as old as the store. A failure does not count under `neverStale()`.
  public var isStale: Bool { isStale(by: nil) }

  package func isStale(by rules: RequestRules<State>?) -> Bool {
    let rule = setting(by: rules) { $0.staleness }
    return read { $0.isStale(by: rule) } ?? isOutOfDate(by: rules)
  }

  /// Whether the value serves a caller that asks for no new one.
  func isUsable(by rules: RequestRules<State>?) -> Bool {
    let rule = setting(by: rules) { $0.staleness }
    return read { $0.isUsable(by: rule) } ?? !isOutOfDate(by: rules)
  }

  /// Whether the value is out of date by rules that read the clock or call the user's predicate.
  func isOutOfDate(by rules: RequestRules<State>?) -> Bool {
    let (date, context) = read { ($0.visibleDate, $0.contexts.context(by: rules)) }
    switch setting(by: rules, { $0.staleness }) {
    case .when(let isStale):
      if let isStale = isStale(state, context) { return isStale }
      reportStateMismatch(of: "The staleness rule", so: "the value counts as stale")
      return true
    case .after(let duration):
      guard let date else { return true }
      // A date in the future says nothing about the age: the clock was set back.
      let age = context.now().duration(since: date)
      return age >= duration || age < .zero
    case .always, .never: return true
    }
  }

  /// Whether the value was invalidated and has not been fetched since.
  var isInvalidated: Bool { read { $0.isVisiblyInvalidated } }

  func reportStateMismatch(of what: String, so consequence: String) {
    OperationIssue.report(
      .stateMismatch,
      """
      \(what) of \(path) is for another state than \(State.self), so \(consequence); put it \
      behind the modifier that changes the state.
      """)
  }
}

extension OperationStore {
  /// Sets a result, as if a run had returned it; for example, what a server has pushed.
  ///
  /// - Parameters:
  ///   - result: A value or a failure. A `CancellationError` changes nothing.
  ///   - context: Overrides the context of the store; the date comes from its clock.
  public func setResult(
    to result: Result<State.StateValue, State.Failure>, using context: OperationContext? = nil
  ) {
    if State.preparesValues, case .success(var value) = result {
      State.prepare(&value, in: read { context?.over($0.context) ?? $0.context })
      commit { $0.write(.success(value), context) }
    } else {
      commit { $0.write(result, context) }
    }
    // A value that is set replaces what was computed from others, so their versions do not count any more.
    if case .success = result, hub.hasReaders, case .when = settings.values.staleness {
      hub.forgetVersions(readBy: path)
    }
  }

  /// Resets the state to its initial value, and cancels all runs. It starts no run.
  ///
  /// - Parameter context: Passed to the state; it overrides the context of the store.
  public func resetState(using context: OperationContext? = nil) {
    beginReset(using: context).forEach { $0() }
  }

  func beginReset(using context: OperationContext?) -> [@Sendable () -> Void] {
    commitCancelling { machine in
      let (effect, cores) = machine.reset(context?.over(machine.context) ?? machine.context)
      return cores.map { core in { core.cancelRun() } } + effect.cancellations
    }
  }

  /// Resets the state, as ``resetState(using:)`` does.
  public func reset(using context: OperationContext? = nil) { resetState(using: context) }

  /// Calls `body` with exclusive access to the store, as one transaction.
  ///
  /// Writes of other threads wait until `body` returns, and their reads return the state from before.
  /// Subscribers are notified once, at the end. What `body` has written remains if it throws.
  ///
  /// `body` must not block. If two threads each have access to one store and write to the other's, both wait
  /// forever. `OperationClient.withStores` takes several stores in one order.
  ///
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws.
  public func withExclusiveAccess<Output>(_ body: () throws -> Output) rethrows -> Output {
    beginExclusiveAccess()
    defer { endAccess().finish() }
    return try body()
  }

  /// Calls `body` with the store and exclusive access to it, as `withExclusiveAccess(_:)` without a
  /// parameter does.
  public func withExclusiveAccess<Output>(
    _ body: (OperationStore<State>) throws -> Output
  ) rethrows -> Output { try withExclusiveAccess { try body(self) } }
}
