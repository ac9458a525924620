public import ReactiveStreams

/// Tells when memory runs short, from the pressure stall information of the Linux kernel.
///
/// It is a ``MemoryPressure/warning`` when within two seconds some task has waited for memory for
/// 200 ms, and ``MemoryPressure/critical`` when for 200 ms all that could run have; each is told
/// once in two seconds at most. Where the kernel has no such information, or does not let this
/// process ask for it, the first subscription makes a report and nothing is told.
///
/// What the kernel says is at <https://docs.kernel.org/accounting/psi.html>.
public final class PressureStallSource: MemoryPressureSource {
  /// The source for the control group of this process, or for the machine if the group has none.
  public static let shared = PressureStallSource()

  private let pressures: ObservedValue<MemoryPressure?>

  /// Creates a source.
  ///
  /// - Parameter file: The file with the information; the control group's `memory.pressure`, or
  ///   else `/proc/pressure/memory`, unless given.
  public init(file: String? = nil) {
    let feed = PressureFeed(file: file)
    pressures = ObservedValue(nil, tellsRepeats: true, feed: { feed.begin($0) })
  }

  /// Calls `handler` whenever memory is short, on a thread of the library.
  public func subscribe(
    _ handler: @escaping @Sendable (MemoryPressure) -> Void
  ) -> OperationSubscription {
    pressures.subscribe { $0.map(handler) }
  }
}
