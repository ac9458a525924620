import ReactiveStreams

extension StatefulOperationRequest {
  /// Runs the request at an interval while its store has subscribers.
  ///
  /// The first run starts one interval after the first subscription, and each later run one interval
  /// after the end of the run before it. A poll joins a run of the observers that is in flight; it joins one
  /// of a caller if the request is deduplicated. It joins none that began before an invalidation. A run that
  /// becomes due while the condition is not satisfied, or while the program is in the background, starts as
  /// soon as both permit it. A program is in the background while it is suspended, see
  /// ``TerminalActivityObserver``. Several polls of one request are independent.
  ///
  /// - Parameters:
  ///   - interval: The wait before each run, by the context's clock. An interval that is not above zero
  ///     is reported and taken as one second.
  ///   - condition: The condition for each run; ``OperationRunSpecification/always`` by default.
  ///   - inBackground: Whether the request also runs while the program is in the background; `false`
  ///     by default.
  public func rerun(
    every interval: Duration, while condition: some OperationRunSpecification = .always,
    inBackground: Bool = false
  ) -> Configured { poll(every: interval, while: condition, inBackground: inBackground) }

  /// Runs the request while its store has subscribers, at an interval that the state decides, such as a
  /// short one while a job is in progress.
  ///
  /// Apply this modifier after the modifiers that change the state: before one of them, the poll ends with
  /// a report.
  ///
  /// - Parameters:
  ///   - interval: Returns the wait before the next run, by the context's clock. It is called after the
  ///     first subscription, when the run that this may start has ended, and after each poll, on any thread,
  ///     with no lock held. An interval that is not above zero is reported and taken as one second.
  ///   - inBackground: Whether the request also runs while the program is in the background; `false`
  ///     by default.
  public func rerun(
    every interval: @escaping @Sendable (State) -> Duration, inBackground: Bool = false
  ) -> Configured {
    poll(
      every: .seconds(1),
      by: { interval($0).checkedInterval(for: "The interval of a poll of \(State.self)") },
      while: .always, inBackground: inBackground)
  }

  /// Runs the request at an interval while its store has subscribers and its state is unfinished, such
  /// as that of a job on a server.
  ///
  /// The state is checked before each run; polling continues to check it while it is finished. Apply
  /// this modifier after the modifiers that change the state: before one of them, the poll ends with a
  /// report.
  ///
  /// - Parameters:
  ///   - isUnfinished: Returns whether to run the request. Called on any thread, with no lock held.
  ///   - interval: The wait before each run, by the context's clock; one second by default. An interval
  ///     that is not above zero is reported and taken as one second.
  ///   - inBackground: Whether the request also runs while the program is in the background; `false`
  ///     by default.
  public func rerun(
    while isUnfinished: @escaping @Sendable (State) -> Bool, every interval: Duration = .seconds(1),
    inBackground: Bool = false
  ) -> Configured {
    poll(every: interval, while: .always, inBackground: inBackground, isUnfinished: isUnfinished)
  }

  private func poll(
    every interval: Duration, by stateInterval: (@Sendable (State) -> Duration)? = nil,
    while condition: some OperationRunSpecification, inBackground: Bool,
    isUnfinished: (@Sendable (State) -> Bool)? = nil
  ) -> Configured {
    let interval = interval.checkedInterval(for: "The interval of \(requestType)")
    let ready: any OperationRunSpecification = inBackground ? condition : condition && .foreground
    let trigger: RerunTrigger = { context, request in
      // Held as long as the poll, for a condition that changes only while it has subscribers.
      let subscription = condition.subscribe(in: context) {}
      let task = Task(executorPreference: context.executor) {
        // The run for the first observer decides the first interval.
        if stateInterval != nil, await request.hasBegun.wait() == true {
          await request.store?.waitForRunOfObservers()
        }
        while let wait = stateInterval.map({ request.readForPoll($0) }) ?? interval,
          await context.operationClock.hasSlept(for: wait)
        {
          // A loop, because the condition may change before the task resumes.
          while !ready.isSatisfied(in: context) {
            guard await ready.waitUntilSatisfied(in: context) else { return }
          }
          guard !Task.isCancelled, let store = request.store,
            let isDue = isUnfinished.map({ request.readForPoll($0) }) ?? true
          else { return }
          if isDue { await store.poll(by: request.rules) }
        }
      }
      return .combined(subscription, OperationSubscription { task.cancel() })
    }
    return settings(interval, condition, inBackground, stateInterval == nil, isUnfinished == nil) {
      $0.automatic.triggers.append(trigger)
    }
  }
}

extension ObservedRequest {
  /// Returns the output of a function of the state; `nil` for another type of state, which is reported, and
  /// after the store was deallocated. The poll ends then.
  fileprivate func readForPoll<State: OperationState, Output>(
    _ body: (State) -> Output
  ) -> Output? {
    if let state = store?.presentState as? State { return body(state) }
    store?.reportStateMismatch(of: "A poll", so: "it never runs")
    return nil
  }
}
