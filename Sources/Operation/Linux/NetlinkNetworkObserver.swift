public import ReactiveStreams

/// A network observer that asks the Linux kernel over a netlink socket.
///
/// The status is connected while the main routing table has a default route, of IPv4 or IPv6,
/// through an interface that is up, has a carrier, and is not the loopback interface. The observer
/// contacts no host, so it cannot determine whether one is reachable. If the kernel does not answer,
/// as in some sandboxes, the observer reports that once, as an `OperationIssue` of the kind
/// `unobservableNetwork`, and the status is connected.
///
/// While there are subscribers, two sockets are open: one thread waits for the notifications of the first, and
/// asks for the status on the second. The messages are those of
/// [rtnetlink(7)](https://man7.org/linux/man-pages/man7/rtnetlink.7.html).
public final class NetlinkNetworkObserver: NetworkObserver {
  /// The observer of this process.
  public static let shared = NetlinkNetworkObserver()

  private let status: ObservedValue<NetworkConnectionStatus>

  /// Creates an observer of the network that the sockets of `openSocket` belong to.
  init(openSocket: @escaping @Sendable () -> Int32 = NetlinkSocket.open) {
    let feed = NetlinkFeed(openSocket)
    status = ObservedValue(measure: { feed.measure() }, feed: { feed.begin($0) })
  }

  /// The present status.
  ///
  /// With subscribers, this is the status that they were notified of last. Without a subscriber,
  /// each read asks the kernel, and waits for its answer for one second at most.
  public var currentStatus: NetworkConnectionStatus { status.value }

  /// Calls `handler` with each later change, on a queue of the observer, or on the thread of the
  /// first subscriber.
  ///
  /// The first subscriber waits for the answer of the kernel, for one second at most, as does the
  /// cancellation of the last subscription while the kernel is asked after a change.
  public func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription { status.subscribe(handler) }
}
