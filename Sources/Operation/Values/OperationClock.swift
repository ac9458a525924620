public import FoundationEssentials

/// The one source of time of the library: what time it is, and how to wait.
public protocol OperationClock: Sendable {
  /// The present moment.
  func now() -> Date

  /// Waits for `duration`, and throws `CancellationError` as soon as the task is cancelled.
  nonisolated(nonsending) func sleep(for duration: Duration) async throws
}

/// The clock of the machine: `Date` and `Task.sleep`.
public struct SystemClock: OperationClock {
  /// Creates the clock of the machine.
  public init() {}

  /// The present moment.
  public func now() -> Date { Date() }

  /// Waits for `duration`, a hundred years at most.
  nonisolated(nonsending) public func sleep(for duration: Duration) async throws {
    try await Task.sleep(for: min(duration, .longest))
  }
}

extension OperationContext {
  /// The clock that every date and every wait of a run comes from; ``SystemClock`` unless written.
  public var operationClock: any OperationClock {
    get { self[OperationClockKey.self] }
    set { self[OperationClockKey.self] = newValue }
  }

  private enum OperationClockKey: Key {
    static var defaultValue: any OperationClock { SystemClock() }
  }
}
