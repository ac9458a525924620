public import Operation

extension SharedQuery {
  /// The store that the wrapper is bound to, or `nil` if it has none.
  public var store: OperationStore<State.StoredState>? {
    core.access(.binding, hasChanged: { _ in false })
    return core.binding.store
  }

  /// A Boolean value that indicates whether the wrapper has a store.
  public var isBacked: Bool {
    core.access(.backing, hasChanged: { _ in false })
    return core.binding.store != nil
  }

  /// A Boolean value that indicates whether the value of the store displays an edit whose work is in flight.
  ///
  /// It is that of the bound store, also while ``isPrevious`` is `true`. Its observers are notified of each change of
  /// the state.
  public var isOptimistic: Bool {
    core.access(.state, hasChanged: { _ in true })
    return core.binding.store?.isOptimistic ?? false
  }

  /// The value of the store without pending edits: what the server returned, with the edits that it has confirmed.
  ///
  /// It is that of the bound store, also while ``isPrevious`` is `true`. Its observers are notified of each change of
  /// the state.
  public var confirmedValue: State.StateValue {
    core.access(.state, hasChanged: { _ in true })
    return core.projection.value(core.binding.store?.confirmedValue ?? core.binding.currentValue)
  }

  /// Binds the wrapper to the store for another request, in the client of the wrapper.
  ///
  /// Observers of members that differ are notified on this thread, with no lock held. The
  /// subscription to the earlier store ends, and the wrapper releases it. For a request with the same store
  /// and equal modifiers the subscription stays: what is called through the wrapper uses the closures of that
  /// request from then on, while automatic runs, polls and conditions keep those that they began with.
  ///
  /// - Parameters:
  ///   - request: The request; with `nil` the wrapper is unbacked.
  ///   - keepingPrevious: Whether the present value is displayed until the new store has one; `false` by
  ///     default. See ``isPrevious``.
  public func bind<Request: StatefulOperationRequest>(
    to request: Request?, keepingPrevious: Bool = false
  ) where Request.State == State.StoredState, Request.State: ValueInitializedState {
    core.bind(to: core.binding(to: request, keepingPrevious: keepingPrevious))
  }

  /// Binds the wrapper to no store: it displays the empty value, and its runs throw
  /// ``SharedQueryError/unbacked``.
  public func bind(to nothing: Never?) where State.StoredState: ValueInitializedState {
    core.bind(to: .empty)
  }

  /// Binds the wrapper to the store for another request after a delay, if no other call of `bind` follows
  /// meanwhile. So a request that changes while a user types is bound when the user pauses.
  ///
  /// - Parameters:
  ///   - request: The request; with `nil` the wrapper is unbacked after the delay.
  ///   - delay: The time, by the clock of the client. With zero or less the wrapper is bound at once.
  ///   - keepingPrevious: Whether the value at the end of the delay stays displayed until the new store has
  ///     one; `false` by default. See ``isPrevious``.
  public func bind<Request: StatefulOperationRequest>(
    to request: Request?, debouncedBy delay: Duration, keepingPrevious: Bool = false
  ) where Request.State == State.StoredState, Request.State: ValueInitializedState {
    if delay <= .zero { return bind(to: request, keepingPrevious: keepingPrevious) }
    core.bind(after: delay) { $0.binding(to: request, keepingPrevious: keepingPrevious) }
  }

  /// A Boolean value that indicates whether the value is that of the request before, which is displayed
  /// until the new one has a value: see ``bind(to:keepingPrevious:)``.
  public var isPrevious: Bool {
    core.access(.origin, hasChanged: { $0.from.isPrevious != $0.to.isPrevious })
    return core.binding.boxed.isPrevious
  }

  /// Returns the value of the query, or waits for the first one.
  ///
  /// It joins a run in flight, and starts one if there is none. A value that is out of date is returned.
  ///
  /// - Throws: The failure of the run, `CancellationError`, or ``SharedQueryError/unbacked``.
  nonisolated(nonsending) public func value<Value, Failure>() async throws -> Value
  where State.StoredState == QueryState<Value, Failure> {
    let (store, rules) = try backedRules()
    return try await store.firstValue(by: rules, present: { $0 }, fetched: { $0 })
  }

  /// Returns the pages of the request, or waits for the first one, as `value()` does for a query.
  ///
  /// - Throws: The failure of the run, `CancellationError`, or ``SharedQueryError/unbacked``.
  nonisolated(nonsending) public func value<PageID, PageValue, Failure>() async throws
    -> PaginatedPages<PageID, PageValue>
  where State.StoredState == PaginatedState<PageID, PageValue, Failure> {
    let (store, rules) = try backedRules()
    return try await store.firstValue(
      by: rules, present: \.nonEmpty, fetched: { store.currentValue.nonEmpty ?? $0.pages })
  }

  /// A Boolean value that indicates whether the value is missing, invalidated, or out of date by the
  /// rule of the request, or whether the last run failed.
  ///
  /// Observers are notified when a value or a failure arrives and when another store is bound. They are not
  /// notified when time passes or when the value is invalidated.
  public var isStale: Bool {
    core.access(.staleness, hasChanged: \.hasNewResult)
    let binding = core.binding
    return binding.store?.isStale(by: binding.rules) ?? true
  }

  /// Returns the store, and the rules of the request that it is bound to.
  func backedRules() throws -> (
    OperationStore<State.StoredState>, RequestRules<State.StoredState>?
  ) {
    let binding = core.binding
    guard let store = binding.store else { throw SharedQueryError.unbacked }
    return (store, binding.rules)
  }

  /// Runs the request, as `OperationStore.run` does.
  ///
  /// - Throws: The failure of the run, `MutationError.noArguments` for a mutation that was never called,
  ///   or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    let (store, rules) = try backedRules()
    return try await store.run(
      store.box(context), by: rules, input: store.latestInput(), handler: handler)
  }

  /// Runs the request, as `OperationStore.fetch` does.
  ///
  /// - Throws: The failure of the run, `MutationError.noArguments` for a mutation that was never called,
  ///   or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    try await run(using: context, handler: handler)
  }

  /// Runs the request with a task name, a priority and a context.
  ///
  /// - Throws: The failure of the run, `MutationError.noArguments` for a mutation that was never called,
  ///   or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using configuration: OperationTaskConfiguration,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    let (store, rules) = try backedRules()
    return try await store.run(
      .init(configuration), by: rules, input: store.latestInput(), handler: handler)
  }

  /// Joins a run in flight that is the same, also one from before an invalidation, cancels its request, and calls
  /// the request again for all callers of the run, as `OperationStore.fetch(restarting:)` does. Without such a run, it starts one.
  ///
  /// - Parameters:
  ///   - isRestarting: Whether a request that is being called is called again. With `false`, this is
  ///     `fetch(using:handler:)`.
  ///   - context: Overrides the context of the store for a new run.
  /// - Throws: The failure of the run, `MutationError.noArguments` for a mutation that was never called,
  ///   or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    restarting isRestarting: Bool, using context: OperationContext? = nil
  ) async throws -> State.StoredState.OperationValue {
    let (store, rules) = try backedRules()
    return try await store.run(
      store.box(context), by: rules, input: store.latestInput(), isRestarting: isRestarting)
  }

  /// Returns a scheduled run that has not started.
  ///
  /// - Throws: `MutationError.noArguments` for a mutation that was never called, or
  ///   ``SharedQueryError/unbacked``.
  public func runTask(
    using context: OperationContext? = nil
  ) throws -> OperationTask<State.StoredState.OperationValue, State.StoredState.Failure> {
    let (store, rules) = try backedRules()
    return try store.runTask(store.box(context), by: rules, input: store.latestInput())
  }

  /// Changes the value with exclusive access to the store, as `OperationStore.withExclusiveAccess`
  /// does.
  ///
  /// The value is written when `body` returns or throws. A value that equals the old one is not
  /// written, so a body that only reads changes no date and no count. A value that is not `Equatable`
  /// is always written. Without a store, `body` gets the empty value, and its write is reported as an
  /// `OperationIssue` and dropped.
  ///
  /// - Parameter body: Must not block: other writers of the store wait for it.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public func withLock<Output>(
    _ body: (inout State.StateValue) throws -> Output
  ) rethrows -> Output {
    let projection = core.projection
    let binding = core.binding
    guard let store = binding.store else {
      return try Self.edit(projection.value(binding.currentValue), body) { _ in
        Self.reportLostWrite(because: "\(SharedQueryError.unbacked)")
      }
    }
    return try store.withExclusiveAccess {
      try Self.edit(projection.value(store.currentValue), body) {
        Self.stored($0, in: projection).map { store.currentValue = $0 }
      }
    }
  }

  /// Calls `body` with a value, and `write` with the changed value.
  private static func edit<Output>(
    _ old: State.StateValue, _ body: (inout State.StateValue) throws -> Output,
    write: (State.StateValue) -> Void
  ) rethrows -> Output {
    var value = old
    defer {
      let areEqual = Equality<State.StateValue>.comparison
      if areEqual?(old, value) != true { write(value) }
    }
    return try body(&value)
  }

  /// Displays an edit of the value while `work` is in progress, as
  /// `OperationStore.optimistically(_:while:)` does. Without a store, it only calls `work`.
  ///
  /// An edit that changes nothing writes nothing, so a displayed default is not stored. A value that is not
  /// `Equatable` is always written.
  ///
  /// - Returns: The result of `work`.
  /// - Throws: The error of `work`.
  @discardableResult
  nonisolated(nonsending) public func optimistically<Output, Failure>(
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output where State.StoredState: EditableState {
    guard let store = core.binding.store else { return try await work() }
    return try await store.optimistically(
      { [projection = core.projection] stored in
        Self.edit(projection.value(stored), edit) { value in
          Self.stored(value, in: projection).map { stored = $0 }
        }
      }, while: work)
  }

  /// Returns the stored form of a value; without one, its write is reported.
  private static func stored(
    _ value: State.StateValue, in projection: Projection<State>
  ) -> State.StoredState.StateValue? {
    let stored = projection.stateValue(value)
    if stored == nil { reportLostWrite(because: "Only a part of the value is selected.") }
    return stored
  }

  private static func reportLostWrite(because reason: String) {
    OperationIssue.report(
      .unbackedWrite, "A write to a wrapper of \(State.self) is dropped. \(reason)")
  }

  /// Stores a result as if a run had returned it. Without a store, it is reported as an
  /// `OperationIssue` and dropped.
  public func setResult(
    to result: Result<State.StateValue, State.StoredState.Failure>,
    using context: OperationContext? = nil
  ) {
    guard let store = core.binding.store else {
      return Self.reportLostWrite(because: "\(SharedQueryError.unbacked)")
    }
    switch result {
    case .success(let value):
      Self.stored(value, in: core.projection).map {
        store.setResult(to: .success($0), using: context)
      }
    case .failure(let error): store.setResult(to: .failure(error), using: context)
    }
  }

  /// Restores the initial state, and cancels all runs.
  public func resetState(using context: OperationContext? = nil) {
    core.binding.store?.resetState(using: context)
  }

  /// Marks the value as out of date, and starts a run if the request runs automatically, as
  /// `OperationStore.invalidate` does.
  public func invalidate() { core.binding.store?.invalidate() }

  /// Cancels all runs of the store, including those that other callers await.
  public func cancel() { core.binding.store?.cancel() }
}

extension SharedQuery {
  /// The states of the store, and of each store that is bound later. The newest state replaces an
  /// unread one.
  ///
  /// The stream can be read after the wrapper is released. It then stays with the last store.
  public var states: StateStream<State> {
    StateStream(core.following { $0.states.source }).map(core.projection.state)
  }

  /// The values of the store, and of each store that is bound later, without repeats where they are
  /// `Equatable`.
  public var values: StateStream<State.StateValue> {
    StateStream(
      core.following { $0.values.source }.map(core.projection.value),
      areEqual: Equality<State.StateValue>.comparison)
  }

  /// The statuses of the states.
  public var statuses: StateStream<OperationStatus<State.StatusValue, State.Failure>> {
    changes(of: \.status)
  }

  /// Returns a stream of a member of the states, without repeats where it is `Equatable`.
  public func changes<Member: Sendable>(
    of keyPath: any KeyPath<State, Member> & Sendable
  ) -> StateStream<Member> {
    StateStream(states.map { $0[keyPath: keyPath] }.source, areEqual: Equality<Member>.comparison)
  }
}
