import ReactiveStreams

extension StatefulOperationRequest {
  /// Runs the request again and again while somebody observes its store.
  ///
  /// The first run comes one `interval` after the first subscriber, and each further one when
  /// `interval` has passed since the end of the one before. Time is that of the context's clock.
  /// When the process is in the background, or the condition does not hold, a run that is due waits
  /// until that is over. Several polls of one request go on beside each other.
  ///
  /// - Parameters:
  ///   - interval: How long to wait; one that is not above zero is reported and taken as a second.
  ///   - condition: What has to hold for a run.
  ///   - inBackground: Whether to go on while the process is in the background.
  public func rerun(
    every interval: Duration, while condition: some OperationRunSpecification = .always,
    inBackground: Bool = false
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    poll(every: interval, while: condition, inBackground: inBackground, isUnfinished: nil)
  }

  /// Runs the request again and again while somebody observes its store and its state says that it
  /// is not there yet, such as a job that goes on.
  ///
  /// It goes behind the modifiers that change the state; before one of them, the poll ends with a
  /// report.
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
    poll(every: interval, while: .always, inBackground: inBackground, isUnfinished: isUnfinished)
  }

  private func poll(
    every interval: Duration, while condition: some OperationRunSpecification, inBackground: Bool,
    isUnfinished: (@Sendable (State) -> Bool)?
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let interval = interval.checkedInterval(for: "The interval of \(Self.self)")
    let ready = CombinedRunSpecification(inBackground ? [condition] : [condition, .foreground]) {
      $0.allSatisfy { $0 }
    }
    return settings {
      $0.rerunTriggers.append { context, store in
        // As long as the poll, for a condition that changes only while somebody subscribes.
        let watch = condition.subscribe(in: context) {}
        let task = Task { [weak store] in
          while await context.operationClock.hasSlept(for: interval) {
            repeat {
              let isReady = await wait {
                ready.isSatisfied(in: context)
              } changes: {
                ready.subscribe(in: context, onChange: $0)
              }
              guard isReady else { return }
              // It may have changed until the task went on.
            } while !ready.isSatisfied(in: context)
            guard let store else { return }
            if let isUnfinished {
              guard let state = store.presentState as? State else {
                return store.reportStateMismatch(of: "A poll", so: "it never runs")
              }
              if !isUnfinished(state) { continue }
            }
            await store.poll()
          }
        }
        return OperationSubscription {
          watch.cancel()
          task.cancel()
        }
      }
    }
  }
}
