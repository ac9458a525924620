public import ReactiveStreams

/// A condition for automatic runs: whether it is satisfied, and when that may have changed.
///
/// ```swift
/// struct LoggedIn: OperationRunSpecification {
///   func isSatisfied(in context: OperationContext) -> Bool { session.isLoggedIn }
///
///   func subscribe(
///     in context: OperationContext, onChange: @escaping @Sendable () -> Void
///   ) -> OperationSubscription {
///     session.logins.subscribe { _ in onChange() }
///   }
/// }
///
/// extension OperationRunSpecification where Self == LoggedIn {
///   static var loggedIn: Self { LoggedIn() }
/// }
///
/// let query = AccountQuery().rerunOnChange(of: .loggedIn)
/// ```
///
/// Conditions are combined with `&&`, `||` and `!`. Both methods are called on any thread, with no lock
/// held, and several threads may call them at the same time.
public protocol OperationRunSpecification: Sendable {
  /// Returns a Boolean value that indicates whether the condition is satisfied now. It must not block.
  ///
  /// - Parameter context: The context of the store whose runs depend on the condition.
  func isSatisfied(in context: OperationContext) -> Bool

  /// Calls a handler whenever the result of ``isSatisfied(in:)`` may have changed.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: May be called on any thread, with no lock held, and more often than the result
  ///     changes.
  /// - Returns: The subscription, which ends the calls when it is cancelled.
  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription
}

extension OperationRunSpecification {
  /// Waits until the condition is satisfied; returns `false` if the task is cancelled first.
  nonisolated(nonsending) func waitUntilSatisfied(in context: OperationContext) async -> Bool {
    await wait(
      until: { isSatisfied(in: context) }, changes: { subscribe(in: context, onChange: $0) })
  }

  /// Starts a run whenever the condition becomes satisfied, if the store is stale or `evenIfFresh` is `true`.
  func trigger(evenIfFresh: Bool) -> RerunTrigger {
    { context, request in
      // One thread at a time evaluates the condition, in the deliveries of this, and once more for all changes
      // meanwhile: so a result is never older than the one before it. The first result starts no run.
      let turns = Broadcast<Never>()
      let (isUnchanged, last) = (LastElement(true), LastElement<Bool>())
      let check = { @Sendable in
        guard isUnchanged.take() != nil else { return }
        turns.afterDeliveries {
          isUnchanged.set(true)
          let isSatisfied = isSatisfied(in: context)
          let wasUnsatisfied = last.value == false
          last.set(isSatisfied)
          guard isSatisfied, wasUnsatisfied else { return }
          request.store?.rerun(by: request.rules, onlyIfStale: !evenIfFresh)
        }
      }
      let subscription = subscribe(in: context, onChange: check)
      // After the subscription, so that no change before it is taken for one after it.
      check()
      return subscription
    }
  }
}
