import Synchronization

/// A subscription that ends, once, when it is cancelled or when its last copy is released.
///
/// ```swift
/// let subscription = store.subscribe { event in print(event) }
/// subscription.cancel()
/// ```
///
/// A copy is the same subscription: cancelling one cancels all of them.
public struct OperationSubscription: Sendable {
  private let token: Token?

  /// Creates a subscription that calls `onCancel` when it ends.
  ///
  /// - Parameter onCancel: Called at most once, with no lock held, on the thread that cancels or
  ///   that releases the last copy.
  public init(onCancel: @escaping @Sendable () -> Void) { token = Token(onCancel) }

  private init() { token = nil }

  /// A subscription to nothing.
  public static let empty = OperationSubscription()

  /// Ends the subscription. A second call does nothing.
  public func cancel() { token?.cancel() }
}

extension OperationSubscription {
  /// Combines several subscriptions into one that cancels them in their order.
  public static func combined(_ subscriptions: OperationSubscription...) -> OperationSubscription {
    combined(subscriptions)
  }

  /// Combines several subscriptions into one that cancels them in their order.
  public static func combined(
    _ subscriptions: some Sequence<OperationSubscription>
  ) -> OperationSubscription {
    let members = Array(subscriptions)
    return OperationSubscription { for member in members { member.cancel() } }
  }

  /// Stores the subscription in `subscriptions`, which keeps it from ending.
  public func store(in subscriptions: inout Set<OperationSubscription>) {
    subscriptions.insert(self)
  }

  /// Appends the subscription to `subscriptions`, which keeps it from ending.
  public func store(in subscriptions: inout [OperationSubscription]) { subscriptions.append(self) }
}

extension OperationSubscription: Hashable {
  /// Returns a Boolean value that indicates whether both are copies of one subscription.
  public static func == (lhs: OperationSubscription, rhs: OperationSubscription) -> Bool {
    lhs.token === rhs.token
  }

  /// Hashes the identity of the subscription.
  public func hash(into hasher: inout Hasher) { hasher.combine(token.map(ObjectIdentifier.init)) }
}

/// The lock guards the action, which is taken under it and called without it.
private final class Token: Sendable {
  // A bare closure would be converted to a generic one, with an allocation each way.
  private struct Action: Sendable { let perform: @Sendable () -> Void }

  private let action: Mutex<Action?>
  private let isCancelled = Atomic(false)

  init(_ onCancel: @escaping @Sendable () -> Void) { action = Mutex(Action(perform: onCancel)) }

  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    action.withLock { $0.take() }?.perform()
  }

  // Most subscriptions were cancelled, and nothing else refers to this one.
  deinit { if !isCancelled.load(ordering: .relaxed) { cancel() } }
}

extension OperationSubscription: CustomStringConvertible, CustomDebugStringConvertible {
  /// The name of the type, and whether the subscription is `empty`.
  public var description: String {
    self == .empty ? "OperationSubscription.empty" : "OperationSubscription"
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
