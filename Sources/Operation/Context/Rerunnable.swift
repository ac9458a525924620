import ReactiveStreams

/// A function that subscribes to what may start runs of a store while it is observed. It must not retain the
/// store.
typealias RerunTrigger = @Sendable (OperationContext, ObservedRequest) -> OperationSubscription

/// The rules of a request, of a type that only the folder `Stores` knows.
package protocol RunRules: AnyObject, Sendable {}

/// A request that is observed, for what starts runs of it.
struct ObservedRequest: Sendable {
  weak let store: (any Rerunnable)?
  /// The rules of the observers; `nil` if they are those of the store.
  let rules: (any RunRules)?
  /// Ends when the run for the first observer was started, if it needs one.
  let hasBegun: OneShot<Bool>
}

/// A store, for what starts runs of it while it is observed.
protocol Rerunnable: AnyObject, Sendable {
  var presentState: any Sendable { get }

  /// Runs the request for the observers.
  func rerun(by rules: (any RunRules)?, onlyIfStale: Bool)
  /// Displays a result as one that the newest run in flight has yielded; nothing if there is none.
  func yield(_ result: any Sendable)
  /// Invalidates the value, and not those of requests that read it. A run follows if the store is observed.
  func invalidateAlone()
  /// Runs the request, and waits until the run has ended or the calling task is cancelled.
  nonisolated(nonsending) func poll(by rules: (any RunRules)?) async
  /// Waits until a run in flight for the observers has ended, or the calling task is cancelled.
  nonisolated(nonsending) func waitForRunOfObservers() async
  /// Reports a rule for a state of another type.
  func reportStateMismatch(of what: String, so consequence: String)
}

/// A function that attaches a controller to a store. It returns `nil` for a state of another type.
typealias ControllerAttachment = @Sendable (any Rerunnable) -> AttachedController?

/// A controller that is attached to a store until this object is released.
final class AttachedController: Sendable {
  /// Notifies the controller whether the store is observed.
  let notify: @Sendable (_ isObserved: Bool) -> Void
  private let subscription: OperationSubscription

  init(_ subscription: OperationSubscription, notify: @escaping @Sendable (Bool) -> Void) {
    self.subscription = subscription
    self.notify = notify
  }

  deinit {
    // Not left to its last copy, which the controller may hold.
    subscription.cancel()
  }
}
