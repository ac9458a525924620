public import ReactiveStreams
import Synchronization

/// A connection that comes and goes when it is told to, for tests and simulations.
///
/// ```swift
/// let network = ManualNetworkObserver()
/// let client = OperationClient(defaults: OperationDefaults(networkObserver: network))
/// network.set(.disconnected)
/// ```
public final class ManualNetworkObserver: NetworkObserver {
  /// The lock guards the status, who listens, and what is still to be told.
  private let machine: Mutex<ManualNetworkMachine>

  /// Creates an observer that nobody listens to yet.
  public init(_ status: NetworkConnectionStatus = .connected) {
    machine = Mutex(ManualNetworkMachine(status: status))
  }

  /// The status that was set last.
  public var currentStatus: NetworkConnectionStatus {
    machine.withLock { $0.status }
  }

  /// How many handlers listen.
  public var subscriberCount: Int {
    machine.withLock { $0.deliveries.subscriberCount }
  }

  /// Changes the status; where it is another one than before, everyone who subscribed is told.
  ///
  /// Returns when all have been called, unless another thread is telling: then it tells this, too.
  public func set(_ status: NetworkConnectionStatus) {
    machine.commit { $0.set(status) }
  }

  /// Calls `handler` with each change from now on, on a thread that sets the status.
  public func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let id = machine.commit { $0.deliveries.subscribe(subscriber) }
    return OperationSubscription { [weak self] in
      let subscriber = self?.machine.withLock { $0.deliveries.unsubscribe(id) }
      // Released without the lock: the optimiser moves the release of an unused result under it.
      withExtendedLifetime(subscriber) {}
    }
  }
}

/// The delivery queue, and the status as of its last event.
struct ManualNetworkMachine: DeliveryMachine {
  var deliveries = DeliveryQueue<NetworkConnectionStatus>()
  private(set) var status: NetworkConnectionStatus

  init(status: NetworkConnectionStatus) {
    self.status = status
  }

  mutating func set(_ new: NetworkConnectionStatus) {
    guard new != status else { return }
    status = new
    deliveries.append(new)
  }
}
