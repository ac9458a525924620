public import Operation

extension SharedQuery {
  /// The store behind the wrapper; `nil` if there is none yet.
  public var store: OperationStore<State.StoredState>? {
    core.accessBinding()
    return core.binding.store
  }

  /// Whether there is a store behind the wrapper.
  public var isBacked: Bool { store != nil }

  /// Puts the store of another request behind the wrapper, in the wrapper's client, and tells those
  /// who read what differs.
  ///
  /// The store that the wrapper began with is not used any more, but stays in memory as long as the
  /// wrapper does, with its request: that must not hold whatever the wrapper stands in.
  public func bind<Request: StatefulOperationRequest>(to request: Request)
  where Request.State == State.StoredState, Request.State: ValueInitializedState {
    core.bind(to: core.client.store(for: request))
  }

  /// Whether the value is missing, invalidated, or out of date by the request's rule.
  ///
  /// Those who read it are told when a value comes, and when another store is behind the wrapper; of
  /// time that passes, and of an invalidation, nothing tells them.
  public var isStale: Bool {
    core.access(.staleness) { { $0.hasNewValue } }
    return core.binding.store?.isStale ?? true
  }

  func backed() throws -> OperationStore<State.StoredState> {
    guard let store = core.binding.store else { throw SharedQueryError.unbacked }
    return store
  }

  /// Runs the request, as `OperationStore.run` does.
  ///
  /// - Throws: What the run fails with, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func run(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    try await backed().run(using: context, handler: handler)
  }

  /// Runs the request, as `OperationStore.fetch` does.
  ///
  /// - Throws: What the run fails with, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using context: OperationContext? = nil,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    try await backed().fetch(using: context, handler: handler)
  }

  /// Runs the request with a name, a priority and a context.
  ///
  /// - Throws: What the run fails with, or ``SharedQueryError/unbacked``.
  @discardableResult
  nonisolated(nonsending) public func fetch(
    using configuration: OperationTaskConfiguration,
    handler: OperationStore<State.StoredState>.EventHandler? = nil
  ) async throws -> State.StoredState.OperationValue {
    try await backed().fetch(using: configuration, handler: handler)
  }

  /// Schedules a run without starting it.
  ///
  /// - Throws: ``SharedQueryError/unbacked``.
  public func runTask(
    using context: OperationContext? = nil
  ) throws -> OperationTask<State.StoredState.OperationValue, State.StoredState.Failure> {
    try backed().runTask(using: context)
  }

  /// Changes the value with the store to oneself, as `OperationStore.withExclusiveAccess` has it. A
  /// `body` that leaves the value as it is writes nothing; nor does one that changes an object behind it.
  ///
  /// Without a store, `body` is given the empty value, and what it writes is reported and dropped.
  public func withLock<Output>(
    _ body: (inout State.StateValue) throws -> Output
  ) rethrows -> Output {
    let binding = core.binding
    guard let store = binding.store else {
      return try Self.withValue(projection.value(binding.currentValue), body) { _ in
        Self.reportLostWrite()
      }
    }
    return try store.withExclusiveAccess {
      try Self.withValue(projection.value(store.currentValue), body) {
        store.currentValue = projection.stateValue($0)
      }
    }
  }

  /// Calls `body` with a value, and `write` with what that has become, unless `body` only looked: what
  /// is written is another value in memory, whatever its type says of what is equal.
  private static func withValue<Output>(
    _ old: State.StateValue, _ body: (inout State.StateValue) throws -> Output,
    write: (State.StateValue) -> Void
  ) rethrows -> Output {
    var value = old
    let bytes = withUnsafeBytes(of: &value) { Array($0) }
    defer {
      // The old value is held until here, so that no change of a collection is one in its place.
      let isSame = withExtendedLifetime(old) {
        withUnsafeBytes(of: &value) { $0.elementsEqual(bytes) }
      }
      if !isSame { write(value) }
    }
    return try body(&value)
  }

  /// Shows an edit of the value before the work that brings it about has ended, as
  /// `OperationStore.optimistically(_:while:)` does; without a store `work` is run all the same.
  ///
  /// An `edit` that writes nothing leaves a store without a value as it is, whatever the default.
  ///
  /// - Returns: What `work` gives.
  /// - Throws: What `work` throws.
  @discardableResult
  nonisolated(nonsending) public func optimistically<Output, Failure>(
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output where State.StoredState: EditableState {
    guard let store = core.binding.store else { return try await work() }
    return try await store.optimistically(
      { [projection] shown in
        Self.withValue(projection.value(shown), edit) { shown = projection.stateValue($0) }
      }, while: work)
  }

  private static func reportLostWrite() {
    OperationIssue(
      kind: .unbackedWrite,
      message: "A write to a wrapper of \(State.self) is dropped. \(SharedQueryError.unbacked)"
    ).report()
  }

  /// Takes in a result as if a run had given it; without a store it is reported and dropped.
  public func setResult(
    to result: Result<State.StateValue, State.StoredState.Failure>,
    using context: OperationContext? = nil
  ) {
    guard let store = core.binding.store else { return Self.reportLostWrite() }
    store.setResult(to: result.map(projection.stateValue), using: context)
  }

  /// Goes back to the initial state, and cancels all runs.
  public func resetState(using context: OperationContext? = nil) {
    core.binding.store?.resetState(using: context)
  }

  /// Marks the value as out of date, and runs the request if it runs by itself, as
  /// `OperationStore.invalidate` does.
  public func invalidate() { core.binding.store?.invalidate() }

  /// Cancels all runs of the store for everybody.
  public func cancel() { core.binding.store?.cancel() }
}

extension SharedQuery {
  /// The states behind the wrapper, also after it is bound to another request; the newest wins.
  ///
  /// The stream outlives the wrapper, and stays with what was behind it last.
  public var states: StateStream<State> {
    core.stream(of: { [projection] in $0.states.map(projection.state) }, unbacked: projection.state)
  }

  /// The values behind the wrapper, also after it is bound to another request, without repeats
  /// where they can be compared.
  public var values: StateStream<State.StateValue> {
    let values = core.stream(
      of: { [projection] in $0.values.map(projection.value) },
      unbacked: { [projection] in projection.value($0.currentValue) })
    return Equality<State.StateValue>.comparison.map(values.removeDuplicates(by:)) ?? values
  }

  /// Where the states behind the wrapper are.
  public var statuses: StateStream<OperationStatus<State.StatusValue, State.Failure>> {
    changes(of: \.status)
  }

  /// A member of the states behind the wrapper, without repeats where it can be compared.
  public func changes<Member: Sendable>(
    of keyPath: any KeyPath<State, Member> & Sendable
  ) -> StateStream<Member> {
    let members = states.map { $0[keyPath: keyPath] }
    return Equality<Member>.comparison.map(members.removeDuplicates(by:)) ?? members
  }
}
