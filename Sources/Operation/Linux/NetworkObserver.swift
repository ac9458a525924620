public import ReactiveStreams

/// Whether the machine has a connection to a network.
public enum NetworkConnectionStatus: String, Sendable, Hashable, Codable {
  /// There is a way out, as far as the machine knows.
  case connected
  /// There is no way out.
  case disconnected
}

/// Knows whether there is a connection, and tells when that changes.
///
/// ``NetlinkNetworkObserver`` asks the system, ``ManualNetworkObserver`` is told by a test.
public protocol NetworkObserver: Sendable {
  /// Whether there is a connection now; called on any thread, with no lock held.
  var currentStatus: NetworkConnectionStatus { get }

  /// Calls `handler` with each change from now on, in order, on any thread and with no lock held.
  ///
  /// Subscribe first and read ``currentStatus`` then: a change between both is told.
  func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription
}

extension OperationContext {
  /// Who knows whether there is a connection; ``NetlinkNetworkObserver/shared`` unless written.
  public var networkObserver: any NetworkObserver {
    get { self[NetworkObserverKey.self] }
    set { self[NetworkObserverKey.self] = newValue }
  }

  private enum NetworkObserverKey: Key {
    static var defaultValue: any NetworkObserver { NetlinkNetworkObserver.shared }
  }
}
