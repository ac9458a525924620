public import ReactiveStreams

/// A degree of memory pressure.
public enum MemoryPressure: Int, Sendable, Hashable, Comparable, Codable {
  /// No task waits for memory. Only a source that also notifies of the end of a pressure sends it, which
  /// ``PressureStallSource`` does not.
  case normal = -1
  /// Some tasks wait for memory. A program should release what it can easily make again.
  case warning = 0
  /// All tasks wait for memory. A program should release everything that it can.
  case critical = 1

  /// Returns a Boolean value that indicates whether the first pressure is the lower one.
  public static func < (lhs: MemoryPressure, rhs: MemoryPressure) -> Bool {
    lhs.rawValue < rhs.rawValue
  }
}

/// A source of notifications that memory is scarce.
///
/// ``PressureStallSource`` asks the kernel, ``ManualMemoryPressureSource`` is driven by hand. The
/// library uses the source of the context, ``OperationContext/memoryPressureSource``.
public protocol MemoryPressureSource: Sendable {
  /// Calls `handler` whenever memory is scarce, and repeatedly while it remains so, until the
  /// subscription ends. A source may also notify of ``MemoryPressure/normal`` when that is over.
  ///
  /// The calls come one at a time, in order, on any thread and with no lock held.
  func subscribe(_ handler: @escaping @Sendable (MemoryPressure) -> Void) -> OperationSubscription
}

/// A source that is driven by hand, for tests and for programs with another source of pressure.
public final class ManualMemoryPressureSource: MemoryPressureSource {
  private let pressures = Broadcast<MemoryPressure>()

  /// Creates a source without subscribers.
  public init() {}

  /// The number of subscribed handlers.
  public var subscriberCount: Int { pressures.subscriberCount }

  /// Notifies all present subscribers of a pressure, also if it equals the one before.
  ///
  /// Returns when all handlers have been called. If a delivery is in progress, this pressure is
  /// delivered right after it, on the thread that delivers.
  public func send(_ pressure: MemoryPressure) { pressures.send(pressure) }

  /// Calls `handler` with each pressure that is sent from now on, on a thread that sends one.
  ///
  /// - Parameter handler: Called with no lock held, in the order in which pressures are sent.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(
    _ handler: @escaping @Sendable (MemoryPressure) -> Void
  ) -> OperationSubscription { pressures.subscribe(handler) }
}
