public import ReactiveStreams

/// How short memory is.
public enum MemoryPressure: Int, Sendable, Hashable, Comparable, Codable {
  /// Some of the work waits for memory: what is easily made again should go.
  case warning
  /// All of the work waits for memory: what can go should go.
  case critical

  /// Tells whether the first is the lesser one.
  public static func < (lhs: MemoryPressure, rhs: MemoryPressure) -> Bool {
    lhs.rawValue < rhs.rawValue
  }
}

/// Tells when memory runs short.
public protocol MemoryPressureSource: Sendable {
  /// Calls `handler` whenever memory is short, in order, on any thread and with no lock held; again
  /// and again while it stays so.
  func subscribe(_ handler: @escaping @Sendable (MemoryPressure) -> Void) -> OperationSubscription
}

/// A source that says what it is told to, for tests and for programs that know better.
public final class ManualMemoryPressureSource: MemoryPressureSource {
  private let pressures = ObservedValue<MemoryPressure?>(nil, tellsRepeats: true)

  /// Creates a source that has nothing to tell yet.
  public init() {}

  /// How many handlers listen.
  public var subscriberCount: Int { pressures.subscriberCount }

  /// Tells everyone who subscribed that memory is short.
  public func send(_ pressure: MemoryPressure) {
    pressures.set(pressure)
  }

  /// Calls `handler` with everything that is sent from now on.
  public func subscribe(
    _ handler: @escaping @Sendable (MemoryPressure) -> Void
  ) -> OperationSubscription {
    pressures.subscribe { $0.map(handler) }
  }
}

extension OperationContext {
  /// Tells when memory runs short; ``PressureStallSource/shared`` unless written.
  public var memoryPressureSource: any MemoryPressureSource {
    get { self[MemoryPressureSourceKey.self] }
    set { self[MemoryPressureSourceKey.self] = newValue }
  }

  private enum MemoryPressureSourceKey: Key {
    static var defaultValue: any MemoryPressureSource { PressureStallSource.shared }
  }
}
