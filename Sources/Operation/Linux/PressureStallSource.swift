public import ReactiveStreams

/// A source of memory pressure that reads the pressure stall information of the Linux kernel.
///
/// It notifies of a ``MemoryPressure/warning`` when some task has waited for memory for 200 ms of
/// two seconds, and of a ``MemoryPressure/critical`` pressure when all tasks that could run have.
/// The kernel reports each at most once in two seconds. If it has no such information, or refuses it
/// to this process, the first subscription makes a report, an `OperationIssue` of the kind
/// `unavailableSource`, and no handler is called.
///
/// One thread waits for the kernel while there are subscribers. The interface is described in
/// [PSI – Pressure Stall Information](https://docs.kernel.org/accounting/psi.html).
public final class PressureStallSource: MemoryPressureSource {
  /// The source for the control group of this process, or for the machine if there is none.
  public static let shared = PressureStallSource()

  private let pressures: ObservedValue<MemoryPressure>

  /// Creates a source.
  ///
  /// - Parameter file: The path of a pressure file. By default it is the `memory.pressure` of the
  ///   control group of this process, or `/proc/pressure/memory` if that cannot be used.
  public init(file: String? = nil) {
    let feed = PressureFeed(file: file)
    // The first value is never read: repeats are notified of, too.
    pressures = ObservedValue(.warning, notifiesRepeats: true, feed: { feed.begin($0) })
  }

  /// Calls `handler` whenever memory is scarce, on a queue of the library, until the subscription
  /// ends.
  ///
  /// - Parameter handler: Called with no lock held, at most once in two seconds for each kind of
  ///   pressure.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(
    _ handler: @escaping @Sendable (MemoryPressure) -> Void
  ) -> OperationSubscription { pressures.subscribe(handler) }
}
