import Dispatch
public import ReactiveStreams
import Synchronization

/// Asks the kernel whether there is a connection.
///
/// There is one when a default route of IPv4 or IPv6, in the main table, leads through an interface
/// that is up and is not the loopback. That is what the machine knows of itself: no host is asked,
/// and whether one can be reached is not known. Where the kernel cannot be asked, in some sandboxes,
/// this is reported once as an `OperationIssue`, and counts as a connection.
///
/// One netlink socket is open while anybody is subscribed. Without a subscriber, every read of
/// ``currentStatus`` asks the kernel anew, which takes some system calls.
public final class NetlinkNetworkObserver: NetworkObserver {
  /// The observer of the process.
  public static let shared = NetlinkNetworkObserver()

  /// The lock guards who listens, what they know, and which socket is watched.
  private let machine = Mutex(NetworkWatchMachine<NetlinkWatch>())
  /// Where a watched socket is read, handlers are called, and sockets that nobody wants are closed.
  private let queue = DispatchQueue(label: "swift-operation.network")
  private let openSocket: @Sendable () -> Int32

  /// Creates an observer of the network that sockets from `openSocket` belong to.
  init(openSocket: @escaping @Sendable () -> Int32 = NetlinkSocket.open) {
    self.openSocket = openSocket
  }

  /// Whether there is a connection now.
  public var currentStatus: NetworkConnectionStatus {
    if let status = machine.withLock({ $0.status }) { return status }
    let status = NetlinkSocket(openSocket(), groups: [])?.ask()
    if status == nil { report() }
    return machine.withLock { $0.read(status ?? .connected) }
  }

  /// Calls `handler` with each change from now on, on a queue of the observer, or on the thread of the
  /// first subscriber.
  ///
  /// That one waits for the kernel's answer, for a second at most.
  public func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let (id, opens) = machine.withLock { $0.subscribe(subscriber) }
    if opens { open() }
    return OperationSubscription { [self] in
      let (subscriber, isLast) = machine.withLock { $0.unsubscribe(id) }
      // Released without the lock: the optimiser moves the release of an unused result under it.
      withExtendedLifetime(subscriber) {}
      if isLast { closeUnused() }
    }
  }

  private func open() {
    guard let socket = NetlinkSocket(openSocket(), groups: .changes), let status = socket.ask()
    else { return fail() }
    // Nothing is read, and nothing closed, before the machine knows the socket.
    queue.suspend()
    let watch = NetlinkWatch(socket, on: queue) { [self] in read(socket) }
    let isUnused = machine.commit { $0.opened(watch, status) }
    queue.resume()
    if isUnused { closeUnused() }
  }

  /// Reads what has come; called on the queue.
  private func read(_ socket: NetlinkSocket) {
    while true {
      switch socket.read() {
      case .nothing: return
      case .status(let status): machine.commit { $0.update(status) }
      case .failed: return fail()
      }
    }
  }

  private func fail() {
    machine.commit { $0.fail() }?.end()
    report()
  }

  /// Closes the socket, unless somebody has come by then: who comes and goes all the time shares
  /// one socket.
  private func closeUnused() {
    queue.async { [self] in
      machine.withLock { $0.takeUnused() }?.end()
    }
  }

  private func report() {
    guard machine.withLock({ $0.isFirstReport() }) else { return }
    OperationIssue(
      kind: .unobservableNetwork,
      message: "The kernel does not answer on a netlink socket; the network counts as connected."
    ).report()
  }
}
