public import ReactiveStreams

/// A connection that comes and goes when it is told to, for tests and simulations.
///
/// ```swift
/// let network = ManualNetworkObserver()
/// let client = OperationClient(defaults: OperationDefaults(networkObserver: network))
/// network.set(.disconnected)
/// ```
public final class ManualNetworkObserver: NetworkObserver {
  private let status: ObservedValue<NetworkConnectionStatus>

  /// Creates an observer that nobody listens to yet.
  public init(_ status: NetworkConnectionStatus = .connected) {
    self.status = ObservedValue(status)
  }

  /// The status that was set last.
  public var currentStatus: NetworkConnectionStatus { status.value }

  /// How many handlers listen.
  public var subscriberCount: Int { status.subscriberCount }

  /// Changes the status; where it is another one than before, everyone who subscribed is told.
  ///
  /// Returns when all have been called, unless a delivery is under way: then this comes right behind
  /// it.
  public func set(_ status: NetworkConnectionStatus) { self.status.set(status) }

  /// Calls `handler` with each change from now on, on a thread that sets the status.
  public func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription {
    status.subscribe(handler)
  }
}
