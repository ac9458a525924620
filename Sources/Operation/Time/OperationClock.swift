public import FoundationEssentials
public import ReactiveStreams

/// The one source of time of the library: what time it is, and how to wait.
public protocol OperationClock: Sendable {
  /// The present moment. It may go back, as that of a machine does when its clock is set.
  func now() -> Date

  /// Waits for `duration`, not at all where that is not above zero, and throws `CancellationError` as
  /// soon as the task is cancelled.
  nonisolated(nonsending) func sleep(for duration: Duration) async throws

  /// Calls `action` once, on any thread, when `duration` is over, unless the subscription has been
  /// cancelled or has gone before. The default is a task that sleeps.
  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription
}

extension OperationClock {
  /// Lets a task sleep.
  public func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    // Detached, or it would keep the task-local values of its caller, as a client, while it sleeps.
    let task = Task.detached {
      if await hasSlept(for: duration) { action() }
    }
    return OperationSubscription { task.cancel() }
  }

  /// Waits, and tells whether the task may go on.
  nonisolated(nonsending) func hasSlept(for duration: Duration) async -> Bool {
    guard duration > .zero else { return !Task.isCancelled }
    do {
      try await sleep(for: duration)
      return !Task.isCancelled
    } catch {
      return false
    }
  }
}

/// The clock of the machine: `Date` and `Task.sleep`.
public struct SystemClock: OperationClock {
  /// Creates the clock of the machine.
  public init() {}

  /// The present moment.
  public func now() -> Date { Date() }

  /// Waits for `duration`, a hundred years at most.
  nonisolated(nonsending) public func sleep(for duration: Duration) async throws {
    // Far below zero it ends the program.
    guard duration > .zero else { return try Task.checkCancellation() }
    try await Task.sleep(for: min(duration, .longest))
  }
}
