extension StatefulOperationRequest {
  /// Runs the request when a condition becomes satisfied, if its store is stale and has subscribers.
  ///
  /// Several such modifiers on one request apply independently.
  ///
  /// - Parameters:
  ///   - condition: The condition. The store subscribes to it while it has subscribers itself.
  ///   - evenIfFresh: Whether the request also runs if its value is fresh; `false` by default.
  public func rerunOnChange(
    of condition: some OperationRunSpecification, evenIfFresh: Bool = false
  ) -> Configured {
    settings(condition, evenIfFresh) {
      $0.automatic.triggers.append(condition.trigger(evenIfFresh: evenIfFresh))
    }
  }

  /// Lets the retries of a run wait until a condition is satisfied, such as `.connected && .foreground`.
  ///
  /// The wait follows that of the backoff. A run that waits is in flight, and is cancelled like any other.
  /// Of several such modifiers the last one counts.
  public func retries(onlyWhile condition: some OperationRunSpecification) -> Configured {
    settings(condition) { $0.retry.condition = condition }
  }

  /// Runs the request automatically, but only while a condition is satisfied.
  ///
  /// Automatic runs are those for the first subscriber of a stale store, after an invalidation, by
  /// polling, and by a controller. A stale store with subscribers also runs when the condition becomes
  /// satisfied. Calls such as `run()` and `fetch()` do not depend on the condition. An automatic run of
  /// a mutation repeats the call with the latest arguments, and does nothing before the first call.
  ///
  /// - Parameter condition: The condition; ``OperationRunSpecification/always`` by default.
  public func enableAutomaticRunning(
    onlyWhen condition: some OperationRunSpecification = .always
  ) -> Configured {
    settings(condition) {
      $0.automatic.isEnabled = true
      $0.automatic.condition = condition
    }
  }

  /// Makes the request one that never runs by itself: not for a subscriber, not after an invalidation,
  /// not by a condition, a poll or a controller. Only calls such as `fetch()` run it.
  public func manual() -> Configured { enableAutomaticRunning(onlyWhen: .never) }

  /// Lets a source outside the store set its values; see ``OperationController``.
  ///
  /// Several controllers on one request apply independently, and are called in the order of the
  /// modifiers.
  public func controlled(by controller: some OperationController<State>) -> Configured {
    settings {
      $0.automatic.controllers.append { store in
        guard let store = store as? OperationStore<State> else {
          store.reportStateMismatch(of: "A controller", so: "it does not get the store")
          return nil
        }
        let controls = OperationControls(store)
        return AttachedController(controller.control(with: controls)) { isObserved in
          if isObserved {
            controller.observationBegan(with: controls)
          } else {
            controller.observationEnded(with: controls)
          }
        }
      }
    }
  }
}
