public import Synchronization

/// Ends a subscription, once, when it is cancelled or when its last copy goes away.
///
/// ```swift
/// let subscription = store.subscribe { event in print(event) }
/// subscription.cancel()
/// ```
///
/// A copy is the same subscription: cancelling one cancels all of them.
public struct OperationSubscription: Sendable {
  @usableFromInline let token: Token?

  /// Creates a subscription that calls `onCancel` when it ends.
  ///
  /// - Parameter onCancel: Called at most once, on the thread that cancels or that drops the last
  ///   copy, with no lock held.
  @inlinable public init(onCancel: @escaping @Sendable () -> Void) {
    token = Token(onCancel)
  }

  private init() {
    token = nil
  }

  /// A subscription to nothing.
  public static let empty = OperationSubscription()

  /// Ends the subscription. A second call does nothing.
  @inlinable public func cancel() {
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

/// The lock guards the action: whoever takes it out calls it, after the lock.
@usableFromInline final class Token: Sendable {
  /// A closure as it is: a generic type takes it only in the form that fits all types.
  @usableFromInline struct Action: Sendable {
    @usableFromInline let call: @Sendable () -> Void

    @inlinable init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  }

  @usableFromInline let onCancel: Mutex<Action?>

  @inlinable init(_ onCancel: @escaping @Sendable () -> Void) {
    self.onCancel = Mutex(Action(onCancel))
  }

  @inlinable func cancel() {
    let action = onCancel.withLock { action in
      defer { action = nil }
      return action
    }
    action?.call()
  }

  deinit {
    cancel()
  }
}
