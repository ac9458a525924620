import ReactiveStreams

extension OperationStore {
  /// Calls `handler` with the current state, and from then on with all events in their order.
  ///
  /// When this returns, the handler has been called with the current state, unless a delivery of this
  /// store is in progress; then the call follows it. During exclusive access that is the state before
  /// it, and the changes follow at its end. Handlers are called in the order in which they subscribed,
  /// on a thread that changes the store, with no lock held. That thread continues when they have returned, so
  /// a slow handler also delays a call that is cancelled. A stale store that runs automatically starts a run
  /// for its first subscriber. The subscribers hold a lease on it.
  ///
  /// - Returns: The subscription, which retains the store.
  public func subscribe(
    _ handler: @escaping @Sendable (OperationEvent<State>) -> Void
  ) -> OperationSubscription { subscribe(by: nil, handler) }

  /// Subscribes as ``subscribe(_:)`` does, for a request with rules of its own: its stale time, its polls
  /// and its condition apply as long as the subscription.
  ///
  /// - Parameter wantsNewest: Whether the handler needs only the newest state, and no other event.
  package func subscribe(
    by rules: RequestRules<State>?, wantsNewest: Bool = false,
    _ handler: @escaping @Sendable (OperationEvent<State>) -> Void
  ) -> OperationSubscription {
    let rules = rules.flatMap { $0.key == ownKey ? nil : $0 }
    let (subscriber, new) = commit { machine in
      // Not outside, where the closures of this method would each retain it once more: that puts the
      // benchmark subscribe and cancel over its limit.
      let subscriber = Subscriber(wantsNewest: wantsNewest, handler)
      return (subscriber, machine.subscribe(subscriber, by: rules))
    }
    if new.isFirst { observationBegan(new, by: rules) }
    return OperationSubscription { [self] in
      // First: a call that has not begun does not begin, also while another thread has exclusive access.
      subscriber.deactivate()
      let removal = commit { $0.unsubscribe(new.id) }
      removal.triggers?.cancel()
      for core in removal.cores { core.cancelRun() }
      notifyControllers()
    }
  }

  /// The number of subscribed handlers and stream iterators.
  public var subscriberCount: Int { read { $0.deliveries.subscriberCount } }

  /// Does what has to follow the first subscriber with some rules.
  private func observationBegan(_ first: Machine.Observation, by rules: RequestRules<State>?) {
    notifyControllers()
    let automatic = setting(by: rules) { $0.automatic }
    var triggers = automatic.triggers
    if let condition = automatic.condition {
      triggers.append(condition.trigger(evenIfFresh: false))
    }
    let begun = triggers.isEmpty ? nil : OneShot<Bool>()
    defer { begun?.finish(true) }
    if let begun {
      let context = context(by: rules)
      let request = ObservedRequest(store: self, rules: rules, hasBegun: begun)
      // A task that a poll or a condition starts does not work for the run whose request subscribes.
      let subscriptions = CurrentWork.without { triggers.map { $0(context, request) } }
      commit { $0.observation.setTriggers(.combined(subscriptions), of: first.id.group) }?.cancel()
    }
    guard automatic.isEnabled == true else { return }
    // The handler may have invalidated or reset the store in its first call. Neither needs a run here: an
    // invalidation starts its own, and a reset starts none. Triggers and controllers may have changed anything.
    let isUntouched = triggers.isEmpty && settings.values.automatic.controllers.isEmpty
    let canBeStale = !first.hasValidValue || setting(by: rules) { $0.staleness.canBecomeStale }
    if canBeStale || !isUntouched {
      runIfStale(by: rules, cause: .subscriber, for: first.id.group)
    }
  }

  /// Starts a run for the observers if the value is stale, unless a result comes meanwhile.
  ///
  /// - Parameter group: The observers for which it runs, if they may be gone when a saved value is loaded.
  private func runIfStale(
    by rules: RequestRules<State>?, cause: OperationRun.Cause, for group: Int? = nil
  ) {
    if let group, !read({ $0.observation.contains(group) }) { return }
    // A saved value comes first.
    let isLoading = persistence?.whenLoaded { [self] in
      runIfStale(by: rules, cause: cause, for: group)
    }
    if isLoading == true { return }
    let results = read { $0.visibleResultCount }
    guard isStale(by: rules) else { return }
    runForObservers(by: rules, cause: cause, unlessNewerThan: results)
  }
}

extension OperationStore: Rerunnable {
  var presentState: any Sendable { state }

  func rerun(by rules: (any RunRules)?, onlyIfStale: Bool) {
    let rules = rules as? RequestRules<State>
    if onlyIfStale {
      runIfStale(by: rules, cause: .rerun)
    } else {
      runForObservers(by: rules, cause: .rerun)
    }
  }

  func yield(_ result: any Sendable) {
    let run = read { Array($0.runs.records).last { $0.isStarted } }
    guard let run, let result = result as? Machine.Output else { return }
    _ = yield(result, from: run.id, run.payload.launch)
  }

  nonisolated(nonsending) func poll(by rules: (any RunRules)?) async {
    let task =
      runForObservers(by: rules as? RequestRules<State>, cause: .poll)
      ?? read { $0.taskOfObservers }
    await task?.dependency.wait()
  }

  nonisolated(nonsending) func waitForRunOfObservers() async {
    // A run for the observers starts before this continues.
    await persistence?.waitUntilLoaded()
    await read { $0.taskOfObservers }?.dependency.wait()
  }
}

extension OperationStore {
  private func stateSource(
    by rules: RequestRules<State>? = nil, wantsNewest: Bool = true
  ) -> StreamSource<State> {
    StreamSource { [self] handler in
      subscribe(by: rules, wantsNewest: wantsNewest) { event in
        if case .stateChanged(let state) = event { handler(.element(state)) }
      }
    }.ending(with: hub.closing, after: afterDeliveries)
  }

  /// Calls an action when what is queued has been delivered, and at once if nothing is.
  package func afterDeliveries(_ action: @escaping @Sendable () -> Void) {
    commit(as: .note) {
      $0.deliveries.notify(Subscriber { _ in action() }, of: .stateChanged($0.state))
    }
  }

  /// The states of the store; the newest one wins.
  public var states: StateStream<State> { states(by: nil) }

  package func states(by rules: RequestRules<State>?) -> StateStream<State> {
    StateStream(stateSource(by: rules))
  }

  /// Returns a stream of the states of the store.
  ///
  /// - Parameter buffering: The policy for states that arrive faster than the reader takes them.
  public func states(buffering: StreamBuffering) -> EventStream<State> {
    EventStream(stateSource(wantsNewest: false), buffering: buffering)
  }

  /// The values that the state displays, without repeats if they are `Equatable`.
  ///
  /// A value that cannot be compared is delivered each time one was fetched, set or edited.
  public var values: StateStream<State.StateValue> { values(by: nil) }

  package func values(by rules: RequestRules<State>?) -> StateStream<State.StateValue> {
    StateStream(
      updates(by: rules).map { $0.currentValue }, areEqual: Equality<State.StateValue>.comparison)
  }

  /// The states. Where values cannot be compared, only those that display another value.
  package func updates(by rules: RequestRules<State>?) -> StreamSource<State> {
    let states = stateSource(by: rules)
    if Equality<State.StateValue>.comparison != nil { return states }
    return states.removeDuplicates { $0.hasSameValue(as: $1) }
  }

  /// The changes, since the subscription, of the value that the runs of other requests read. An equal value is
  /// a change, too: a result that was made from the earlier value is out of date.
  func confirmedChanges(by rules: RequestRules<State>?) -> StreamSource<Void> {
    let present = { @Sendable [self] in [versionForRun.version, state.errorUpdateCount] }
    return StreamSource { [self] handler in
      // Before the subscription, whose first state may be delivered after a change.
      let first = present()
      let changed = stateSource(by: rules).map { _ in present() }
        .removeDuplicates(after: first, by: ==)
      return changed.map { _ in }.subscribe(handler)
    }
  }

  /// Returns a stream of a part of the displayed values, without repeats if it is `Equatable`.
  ///
  /// - Parameter select: Returns the part. It is called on a thread that changes the store, and must be
  ///   quick.
  public func values<Selected: Sendable>(
    select: @escaping @Sendable (State.StateValue) -> Selected
  ) -> StateStream<Selected> {
    StateStream(
      stateSource().map { select($0.currentValue) }, areEqual: Equality<Selected>.comparison)
  }

  /// The statuses of the state, without repeats if values and failures are `Equatable`.
  public var statuses: StateStream<OperationStatus<State.StatusValue, State.Failure>> {
    changes(of: \.status)
  }

  /// Returns a stream of a member of the state, without repeats if it is `Equatable`.
  public func changes<Member: Sendable>(
    of keyPath: any KeyPath<State, Member> & Sendable
  ) -> StateStream<Member> {
    StateStream(stateSource().map { $0[keyPath: keyPath] }, areEqual: Equality<Member>.comparison)
  }

  /// All events of the store, beginning with the current state; nothing is dropped.
  public var events: EventStream<OperationEvent<State>> {
    EventStream(
      StreamSource { [self] handler in subscribe { handler(.element($0)) } }
        .ending(with: hub.closing, after: afterDeliveries),
      buffering: .all)
  }
}
