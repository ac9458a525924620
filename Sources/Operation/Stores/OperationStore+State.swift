import FoundationEssentials
import ReactiveStreams
import Synchronization

extension OperationStore {
  /// The state of the store.
  public var state: State {
    machine.withLock { $0.isPlain ? $0.state : $0.visibleState }
  }

  /// The value that the state shows. Setting it is ``setResult(to:using:)`` with a success.
  public var currentValue: State.StateValue {
    get {
      machine.withLock { $0.isPlain ? $0.state.currentValue : $0.visibleState.currentValue }
    }
    set { setResult(to: .success(newValue)) }
  }

  /// Where the state is.
  public var status: OperationStatus<State.StatusValue, State.Failure> {
    machine.withLock { $0.isPlain ? $0.state.status : $0.visibleState.status }
  }

  /// Whether a run is scheduled or under way.
  public var isLoading: Bool {
    machine.withLock { $0.isPlain ? $0.state.isLoading : $0.visibleState.isLoading }
  }

  /// What went wrong last; `nil` once a value has come.
  public var error: State.Failure? {
    machine.withLock { $0.isPlain ? $0.state.error : $0.visibleState.error }
  }

  /// A member of the state.
  public subscript<Member>(dynamicMember keyPath: KeyPath<State, Member>) -> Member {
    state[keyPath: keyPath]
  }

  /// The context that runs begin with, and that contexts passed to a run lie over.
  public var context: OperationContext {
    get { machine.withLock { $0.context } }
    set {
      let new = newValue.leavingRun()
      commit { $0.replaceContext(with: new) }
    }
  }

  /// Whether there is no value yet, or the one that is there was invalidated or is out of date by
  /// the request's rule.
  public var isStale: Bool { read { $0.isStale } ?? isStaleByRule }

  /// What a rule says that asks the clock or the user.
  var isStaleByRule: Bool {
    let (date, context) = read { ($0.visibleDate, $0.context) }
    if case .when(let isStale) = context.settings.values.staleness {
      if let isStale = isStale(state, context) { return isStale }
      reportStateMismatch(of: "The staleness rule", so: "the value counts as stale")
      return true
    }
    guard case .after(let duration) = context.settings.values.staleness, let date else {
      return true
    }
    // A date that lies ahead says nothing of the age: the clock was set back.
    let age = context.now().duration(since: date)
    return age >= duration || age < .zero
  }

  /// Whether the value was invalidated and has not been fetched since.
  var isInvalidated: Bool { read { $0.isVisiblyInvalidated } }

  func reportStateMismatch(of what: String, so consequence: String) {
    OperationIssue(
      kind: .stateMismatch,
      message: """
        \(what) of \(path) is for another state than \(State.self), so \(consequence); put it \
        behind the modifier that changes the state.
        """
    ).report()
  }
}

extension OperationStore {
  /// Takes in a result as if a run had given it; a push from a server, for example.
  ///
  /// - Parameters:
  ///   - result: The value, or what went wrong.
  ///   - context: Where the date comes from; it lies over the context of the store.
  public func setResult(
    to result: Result<State.StateValue, State.Failure>, using context: OperationContext? = nil
  ) {
    if !State.preparesValues { return commit { $0.write(result, context) } }
    let context = read { context?.over($0.context) ?? $0.context }
    let prepared = result.map { value in
      var value = value
      State.prepare(&value, in: context)
      return value
    }
    commit { $0.write(prepared, context) }
  }

  /// Goes back to the initial state, and cancels all runs; starts none.
  ///
  /// - Parameter context: What the state is given; it lies over the context of the store.
  public func resetState(using context: OperationContext? = nil) {
    commitCancelling { machine in
      let (effect, cores) = machine.reset(context?.over(machine.context) ?? machine.context)
      return cores.map { core in { core.cancelRun() } } + effect.cancellations
    }
  }

  /// Goes back to the initial state, as ``resetState(using:)`` does.
  public func reset(using context: OperationContext? = nil) {
    resetState(using: context)
  }

  /// Has the store to oneself: other threads' writes wait until `body` returns, and their reads
  /// see what was there before; subscribers are told once, at the end.
  ///
  /// `body` must not block, and must not write another store that somebody else may have to himself
  /// while he writes this one: both would wait for ever. `OperationClient.withStores` takes several in
  /// one order. What it has written stays if it throws.
  public func withExclusiveAccess<Output>(_ body: () throws -> Output) rethrows -> Output
  {
    beginExclusiveAccess()
    defer { endExclusiveAccess() }
    return try body()
  }

  func beginExclusiveAccess() { commit { $0.beginExclusiveAccess(.current) } }

  /// Has the store to oneself: other threads' writes wait until `body` returns, and their reads
  /// see what was there before; subscribers are told once, at the end.
  ///
  /// `body` must not block, and must not write another store that somebody else may have to himself
  /// while he writes this one: both would wait for ever. `OperationClient.withStores` takes several in
  /// one order. What it has written stays if it throws.
  public func withExclusiveAccess<Output>(
    _ body: (OperationStore<State>) throws -> Output
  ) rethrows -> Output {
    try withExclusiveAccess { try body(self) }
  }
}
