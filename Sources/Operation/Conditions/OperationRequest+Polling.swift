import ReactiveStreams

extension StatefulOperationRequest {
  /// Runs the request again and again while somebody observes its store.
  ///
  /// The first run comes one `interval` after the first subscriber, and each further one when
  /// `interval` has passed since the end of the one before. Time is that of the context's clock.
  /// When the process is in the background, or the condition does not hold, a run that is due waits
  /// until that is over.
  ///
  /// - Parameters:
  ///   - interval: How long to wait; one that is not above zero is reported and taken as a second.
  ///   - condition: What has to hold for a run.
  ///   - inBackground: Whether to go on while the process is in the background.
  public func rerun(
    every interval: Duration, while condition: some OperationRunSpecification = .always,
    inBackground: Bool = false
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    poll(every: interval, inBackground: inBackground) { context, _ in
      await wait {
        condition.isSatisfied(in: context)
      } changes: {
        condition.subscribe(in: context, onChange: $0)
      }
    }
  }

  /// Runs the request again and again while somebody observes its store and its state says that it
  /// is not there yet, such as a job that goes on.
  ///
  /// - Parameters:
  ///   - isUnfinished: Asked before each run; called on any thread, with no lock held.
  ///   - interval: How long to wait between the end of a run and the next one; one that is not above
  ///     zero is reported and taken as a second.
  ///   - inBackground: Whether to go on while the process is in the background.
  public func rerun(
    while isUnfinished: @escaping @Sendable (State) -> Bool, every interval: Duration = .seconds(1),
    inBackground: Bool = false
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    poll(every: interval, inBackground: inBackground) { _, state in
      (state as? State).map(isUnfinished) ?? false
    }
  }

  private func poll(
    every interval: Duration, inBackground: Bool,
    ifDue isDue:
      nonisolated(nonsending) @escaping @Sendable (OperationContext, any Sendable) async -> Bool
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let interval = interval.checkedInterval(for: "The interval of \(Self.self)")
    return settings {
      $0.rerunTriggers.append { context, store in
        let task = Task { [weak store] in
          while await context.operationClock.hasSlept(for: interval) {
            var isWanted = false
            repeat {
              let mayRun = if inBackground { true } else { await context.isInForeground() }
              guard mayRun, let state = store?.presentState else { return }
              isWanted = await isDue(context, state)
              // It may have gone to the background while the condition was waited for.
            } while isWanted && !inBackground
              && context.applicationActivityObserver.currentActivity != .foreground
            if isWanted { await store?.poll() }
          }
        }
        return OperationSubscription { task.cancel() }
      }
    }
  }
}

extension OperationContext {
  /// Waits for the foreground; tells whether it is there, and not the end of the poll.
  nonisolated(nonsending) fileprivate func isInForeground() async -> Bool {
    let observer = applicationActivityObserver
    return await wait {
      observer.currentActivity == .foreground
    } changes: { onChange in
      observer.subscribe { _ in onChange() }
    }
  }
}
