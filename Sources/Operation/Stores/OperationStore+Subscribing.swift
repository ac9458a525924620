public import ReactiveStreams

extension OperationStore {
  /// Calls `handler` with the present state, and from then on with everything that happens, in its
  /// order.
  ///
  /// The handler has been called with the present state when this returns, unless a delivery of
  /// this store is under way; then the call comes right behind it. In exclusive access that is the
  /// state before it, as for everybody else, and what has changed comes at the end. Handlers are
  /// called in the order in which they subscribed, by a thread that changes something, with no lock
  /// held. A store that is stale and runs automatically starts a run for its first subscriber, which
  /// holds a lease on it.
  ///
  /// - Returns: The subscription, which keeps the store alive.
  public func subscribe(
    _ handler: @escaping @Sendable (OperationEvent<State>) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let (id, first) = commit { $0.subscribe(subscriber) }
    if let first { begin(first) }
    return OperationSubscription { [self] in
      subscriber.deactivate()
      removeSubscriber(id)
    }
  }

  /// Does what the first subscriber brings about.
  func begin(_ first: Machine.FirstSight) {
    if isControlled { tellControllers() }
    if first.sight.hasTriggers { setTriggers(first.observation) }
    guard first.sight.isAutomatic else { return }
    // What was good when he came is good still, whatever he did when he was told of it: an invalidation
    // starts a run by itself, and a reset starts none. Triggers and controllers may change anything.
    if first.sight.isStale == false, !first.sight.hasTriggers, !isControlled { return }
    runIfStale(cause: .subscriber, by: read { $0.sight })
  }

  func setTriggers(_ observation: Int) {
    let context = context
    let triggers = context.settings.values.rerunTriggers.map { $0(context, self) }
    commit { $0.setTriggers(.combined(triggers), observation: observation) }?.cancel()
  }

  /// How many handlers and stream iterators listen.
  public var subscriberCount: Int { read { $0.deliveries.subscriberCount } }

  func removeSubscriber(_ id: UInt64) {
    let departure = commit { $0.unsubscribe(id) }
    departure.triggers?.cancel()
    for core in departure.cores { core.cancelRun() }
    withExtendedLifetime(departure) {}
    if isControlled { tellControllers() }
  }
}

extension OperationStore {
  /// Starts a run for the observers if what is there is stale, and nothing has come since that look.
  func runIfStale(cause: OperationRun.Cause, by sight: Machine.Sight) {
    if sight.isStale ?? isStaleByRule {
      runForObservers(cause: cause, unlessUpdatedSince: sight.updates)
    }
  }
}

extension OperationStore: Rerunnable {
  var presentState: any Sendable { state }

  func rerunIfStale() {
    runIfStale(cause: .rerun, by: read { $0.sight })
  }

  nonisolated(nonsending) func poll() async {
    let task = runForObservers(cause: .poll) ?? read { $0.taskOfObservers }
    await task?.dependency.wait()
  }
}

extension OperationStore {
  var stateSource: StreamSource<State> {
    StreamSource { [self] handler in
      subscribe { event in
        if case .stateChanged(let state) = event { handler(.element(state)) }
      }
    }
  }

  /// The states of the store; the newest one wins.
  public var states: StateStream<State> { StateStream(stateSource) }

  /// The states of the store, kept as `buffering` says.
  public func states(buffering: StreamBuffering) -> EventStream<State> {
    EventStream(stateSource, buffering: buffering)
  }

  /// The values that the state shows, without repeats where they can be compared.
  ///
  /// A value that cannot be compared comes each time one was fetched or set.
  public var values: StateStream<State.StateValue> {
    if let areEqual = Equality<State.StateValue>.comparison {
      return StateStream(stateSource.map { $0.currentValue }, areEqual: areEqual)
    }
    let changed = stateSource.removeDuplicates {
      $0.valueUpdateCount == $1.valueUpdateCount && $0.valueLastUpdatedAt == $1.valueLastUpdatedAt
    }
    return StateStream(changed.map { $0.currentValue })
  }

  /// Where the state is, without repeats where values and failures can be compared.
  public var statuses: StateStream<OperationStatus<State.StatusValue, State.Failure>> {
    changes(of: \.status)
  }

  /// A member of the state, without repeats where it can be compared.
  public func changes<Member: Sendable>(
    of keyPath: any KeyPath<State, Member> & Sendable
  ) -> StateStream<Member> {
    StateStream(
      stateSource.map { $0[keyPath: keyPath] }, areEqual: Equality<Member>.comparison)
  }

  /// Everything that happens, beginning with the present state; nothing is dropped.
  public var events: EventStream<OperationEvent<State>> {
    EventStream(
      StreamSource { [self] handler in subscribe { handler(.element($0)) } }, buffering: .all)
  }
}
