import Synchronization

/// Ends a subscription, once, when it is cancelled or when its last copy goes away.
///
/// ```swift
/// let subscription = store.subscribe { event in print(event) }
/// subscription.cancel()
/// ```
///
/// A copy is the same subscription: cancelling one cancels all of them.
public struct OperationSubscription: Sendable {
  let token: Token?

  /// Creates a subscription that calls `onCancel` when it ends.
  ///
  /// - Parameter onCancel: Called at most once, on the thread that cancels or that drops the last
  ///   copy, with no lock held.
  public init(onCancel: @escaping @Sendable () -> Void) {
    token = Token(.call(onCancel))
  }

  /// Creates a subscription that ends by taking a subscriber out again.
  package init(
    of id: UInt64, _ listener: any Listener, to source: any SubscriptionSource
  ) {
    token = Token(.unsubscribe(id, listener, source))
  }

  private init() {
    token = nil
  }

  /// A subscription to nothing.
  public static let empty = OperationSubscription()

  /// Ends the subscription. A second call does nothing.
  public func cancel() {
    token?.cancel()
  }
}

extension OperationSubscription {
  /// Makes one subscription of several; cancelling it cancels them in their order.
  public static func combined(_ subscriptions: OperationSubscription...) -> OperationSubscription {
    combined(subscriptions)
  }

  /// Makes one subscription of several; cancelling it cancels them in their order.
  public static func combined(
    _ subscriptions: some Sequence<OperationSubscription>
  ) -> OperationSubscription {
    let members = Array(subscriptions)
    return OperationSubscription { for member in members { member.cancel() } }
  }

  /// Keeps the subscription alive in `subscriptions`.
  public func store(in subscriptions: inout Set<OperationSubscription>) {
    subscriptions.insert(self)
  }

  /// Keeps the subscription alive at the end of `subscriptions`.
  public func store(in subscriptions: inout [OperationSubscription]) {
    subscriptions.append(self)
  }
}

extension OperationSubscription: Hashable {
  /// Tells whether both are copies of one subscription.
  public static func == (lhs: OperationSubscription, rhs: OperationSubscription) -> Bool {
    lhs.token === rhs.token
  }

  /// Hashes the identity of the subscription.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(token.map(ObjectIdentifier.init))
  }
}

/// Who hears of something until he is told that he does not any more.
package protocol Listener: AnyObject, Sendable {
  func deactivate()
}

/// What has subscribers, which go by the identifiers that they came with.
package protocol SubscriptionSource: AnyObject, Sendable {
  func unsubscribe(_ id: UInt64)
}

/// The lock guards the action: whoever takes it out performs it, after the lock.
final class Token: Sendable {
  enum Action: Sendable {
    case call(@Sendable () -> Void)
    /// Without a closure, which would be an object more.
    case unsubscribe(UInt64, any Listener, any SubscriptionSource)
  }

  let onCancel: Mutex<Action?>
  /// Whether the action has been taken out, so that the end of the token needs no lock to see it.
  let isOver = Atomic(false)

  init(_ onCancel: Action) {
    self.onCancel = Mutex(onCancel)
  }

  func cancel() {
    if isOver.load(ordering: .relaxed) { return }
    isOver.store(true, ordering: .relaxed)
    switch onCancel.withLock({ $0.take() }) {
    case .call(let call): call()
    case .unsubscribe(let id, let listener, let source):
      listener.deactivate()
      source.unsubscribe(id)
    case nil: break
    }
  }

  deinit {
    cancel()
  }
}
