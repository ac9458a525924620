public import ReactiveStreams

/// The status of the machine's connection to a network.
public enum NetworkConnectionStatus: String, Sendable, Hashable, Codable {
  /// The machine has a connection, as far as the observer can determine.
  case connected
  /// The machine has no connection.
  case disconnected
}

/// A source of the connection status and its changes.
///
/// ``NetlinkNetworkObserver`` asks the kernel, ``ManualNetworkObserver`` is set by hand. The library
/// uses the observer of the context, ``OperationContext/networkObserver``.
public protocol NetworkObserver: Sendable {
  /// The present status. It may be read on any thread; no lock is held.
  var currentStatus: NetworkConnectionStatus { get }

  /// Calls `handler` with each later change, until the subscription ends.
  ///
  /// The calls come one at a time, in the order of the changes, on any thread and with no lock held.
  /// To miss no change, subscribe first, and read ``currentStatus`` then.
  func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription
}

/// A connection status that is set by hand, for tests and simulations.
///
/// ```swift
/// let network = ManualNetworkObserver()
/// let client = OperationClient(defaults: OperationDefaults(networkObserver: network))
/// network.set(.disconnected)
/// ```
public final class ManualNetworkObserver: NetworkObserver {
  private let status: ObservedValue<NetworkConnectionStatus>

  /// Creates an observer without subscribers.
  ///
  /// - Parameter status: The status until the first ``set(_:)``; connected by default.
  public init(_ status: NetworkConnectionStatus = .connected) {
    self.status = ObservedValue(status)
  }

  /// The status that was set last.
  public var currentStatus: NetworkConnectionStatus { status.value }

  /// The number of subscribed handlers.
  public var subscriberCount: Int { status.subscriberCount }

  /// Sets the status, and notifies all subscribers if it differs from the one before.
  ///
  /// Returns when all handlers have been called. If a delivery is in progress, this change is
  /// delivered right after it, on the thread that delivers.
  public func set(_ status: NetworkConnectionStatus) { self.status.set(status) }

  /// Calls `handler` with each later change, on a thread that sets the status.
  ///
  /// - Parameter handler: Called with no lock held, in the order of the changes.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription { status.subscribe(handler) }
}
