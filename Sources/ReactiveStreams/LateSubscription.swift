import Synchronization

/// A place for a subscription that is made without a lock, and whose user may have ended by then. The
/// subscription ends with the place, too.
///
/// The lock guards what is stored. Subscriptions are cancelled, and released, without it.
package final class LateSubscription: Sendable {
  /// `nil` once it was cancelled.
  private let subscription = Mutex<OperationSubscription?>(.empty)

  package init() {}

  /// Stores the subscription. Called once. Cancels it if that was called before.
  package func set(_ new: OperationSubscription) {
    let isCancelled = subscription.withLock { subscription in
      if subscription != nil { subscription = new }
      return subscription == nil
    }
    if isCancelled { new.cancel() }
  }

  package func cancel() { subscription.withLock { $0.take() }?.cancel() }
}
