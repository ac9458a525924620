public import FoundationEssentials
import Glibc
public import ReactiveStreams

/// The source of all dates and waits of the library.
///
/// ``SystemClock`` is the clock of the machine, ``ManualClock`` is one for tests. The library uses
/// the clock of the context, ``OperationContext/operationClock``. Its methods are called on any
/// thread, and with no lock held, except for ``now()``.
public protocol OperationClock: Sendable {
  /// Returns the present moment. It may jump, as that of a machine does when its clock is set.
  ///
  /// A state takes the date of a result while its store is locked. So this must be quick, and must not call
  /// the library.
  func now() -> Date

  /// Returns the time since an arbitrary start, which never jumps. It measures how long something takes.
  ///
  /// By default, it is the time of ``now()`` since a fixed date. A clock whose date can be set, and whose
  /// waits are not affected by that, should implement this.
  func elapsed() -> Duration

  /// Waits, in the isolation of the caller.
  ///
  /// - Parameter duration: The time to wait. The call returns at once if it is zero or negative.
  /// - Throws: `CancellationError`, as soon as the task is cancelled.
  nonisolated(nonsending) func sleep(for duration: Duration) async throws

  /// Calls `action` once after a duration, on any thread and with no lock held, unless the
  /// subscription ends before.
  ///
  /// By default, a detached task sleeps and then calls the action.
  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription
}

extension OperationClock {
  /// Returns the time of ``now()`` since a fixed date.
  public func elapsed() -> Duration {
    now().duration(since: Date(timeIntervalSinceReferenceDate: 0))
  }

  /// Calls `action` once after a duration, from a detached task that sleeps, unless the subscription
  /// ends before.
  public func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    // A cancelled task may end later. Until then it must not retain what the action retains.
    let kept = LastElement(action)
    // Detached: another task would retain the task-local values of the caller, such as a client.
    let task = Task.detached { if await hasSlept(for: duration) { kept.take()?() } }
    return OperationSubscription {
      kept.set(nil)
      task.cancel()
    }
  }

  /// Waits, and returns `false` if the sleep has failed or the task is cancelled.
  nonisolated(nonsending) func hasSlept(for duration: Duration) async -> Bool {
    if duration > .zero, (try? await sleep(for: duration)) == nil { return false }
    return !Task.isCancelled
  }
}

/// The clock of the machine: `Date()` and `Task.sleep(for:)`.
public struct SystemClock: OperationClock {
  /// Creates the clock.
  public init() {}

  /// Returns the present moment.
  public func now() -> Date { Date() }

  /// Returns the time since the machine was started, which a change of its date does not affect.
  ///
  /// It includes the time for which the machine was suspended.
  public func elapsed() -> Duration { Self.time(of: CLOCK_BOOTTIME) }

  /// The time since the machine was started, to some milliseconds, and without the time for which it was
  /// suspended. It takes a fifth of the time of ``elapsed()``, with which these benchmarks are over or
  /// further over their limits: subscribe and cancel, fetch, inspected.
  static var coarseElapsed: Duration { time(of: CLOCK_MONOTONIC_COARSE) }

  private static func time(of clock: clockid_t) -> Duration {
    // Not a `timespec`: whether its members are visible depends on the files with which the compiler
    // processes this one.
    var time = (seconds: 0, nanoseconds: 0)
    withUnsafeMutablePointer(to: &time) {
      _ = $0.withMemoryRebound(to: timespec.self, capacity: 1) { clock_gettime(clock, $0) }
    }
    return .nanoseconds(time.seconds * 1_000_000_000 + time.nanoseconds)
  }

  /// Waits, in time that a change of the machine's date does not affect.
  ///
  /// It is a `Task.sleep`. Of one that is cancelled, the runtime of Swift 6.3 keeps about 700 bytes until its
  /// time would have been over.
  ///
  /// - Parameter duration: The time to wait, a hundred years at most. The call returns at once if it
  ///   is zero or negative.
  /// - Throws: `CancellationError`, as soon as the task is cancelled.
  nonisolated(nonsending) public func sleep(for duration: Duration) async throws {
    // `Task.sleep` traps on some negative durations.
    guard duration > .zero else { return try Task.checkCancellation() }
    try await Task.sleep(for: min(duration, .longest))
  }
}

/// A clock that stands still, for a result that is added to another state later.
struct DatedClock: OperationClock {
  let date: Date

  func now() -> Date { date }
  func sleep(for duration: Duration) async throws {}
}
