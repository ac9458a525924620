public import FoundationEssentials
public import ReactiveStreams
import Synchronization

/// A clock that stands still until it is told to go on, for tests and simulations.
///
/// ```swift
/// let clock = ManualClock(now: Date(timeIntervalSince1970: 0))
/// let client = OperationClient(clock: clock)
/// // … something waits for a retry
/// await clock.sleepers(atLeast: 1)
/// await clock.advance(by: .seconds(2))
/// ```
public final class ManualClock: OperationClock {
  /// The lock guards the machine; continuations are resumed without it.
  private let machine: Mutex<ManualClockMachine<Continuation>>

  private typealias Continuation = UnsafeContinuation<Bool, Never>

  /// Creates a clock that shows `now`. By one that is no date, as `Double.nan` gives it, every value
  /// that has a time to become stale is so.
  public init(now: Date = Date(timeIntervalSince1970: 0)) {
    machine = Mutex(ManualClockMachine(start: now))
  }

  /// The moment that the clock shows.
  public func now() -> Date {
    machine.withLock { $0.now }
  }

  /// How many sleeps wait for the clock.
  public var sleeperCount: Int {
    machine.withLock { $0.sleeperCount }
  }

  /// Whether nobody waits, no timer is set, and nothing is left of those who did.
  var hasNoTraces: Bool {
    machine.withLock { $0.hasNoTraces }
  }

  /// Waits until the clock has been advanced by `duration`, not at all where that is not above zero
  /// and a hundred years at most, and throws `CancellationError` as soon
  /// as the task is cancelled.
  nonisolated(nonsending) public func sleep(for duration: Duration) async throws {
    let id = machine.withLock { $0.makeID() }
    let hasWoken = await wait(id) { $0.sleep(id, for: duration, waiter: $1) }
    machine.withLock { $0.acknowledge(id) }?.resume(returning: true)
    if !hasWoken { throw CancellationError() }
  }

  /// Waits until at least `count` sleeps wait for the clock, or the task is cancelled; not at all
  /// for a number that is not above zero.
  nonisolated(nonsending) public func sleepers(atLeast count: Int) async {
    let id = machine.withLock { $0.makeID() }
    _ = await wait(id) { $0.observe(id, atLeast: count, waiter: $1) }
  }

  /// Moves the clock on, and wakes what is due.
  ///
  /// Sleeps end in the order of their times, and of two with one time the earlier one first; each
  /// has returned in its task before the next one is woken. A woken task sees the clock at its new
  /// time, and a sleep that it begins counts from there.
  ///
  /// - Parameter duration: How far, a hundred years at most; a negative duration sets the clock back
  ///   and wakes nobody.
  nonisolated(nonsending) public func advance(by duration: Duration) async {
    machine.withLock { $0.advance(by: duration) }
    while let wake = machine.withLock({ $0.wakeNext() }) {
      switch wake {
      case .timer(let action): action()
      case .sleeper(let id, let sleeper, let acknowledgement):
        _ = await wait(acknowledgement) { machine, waiter in
          machine.awaitAcknowledgement(acknowledgement, of: id, waiter: waiter)
        } started: {
          sleeper.resume(returning: true)
        }
      }
    }
  }

  /// Calls `action` in the ``advance(by:)`` that reaches its time; it counts as no sleeper.
  public func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    let id = machine.withLock { machine in
      let id = machine.makeID()
      machine.schedule(id, after: duration, action)
      return id
    }
    return OperationSubscription { [self] in
      let removed = machine.withLock { $0.unschedule(id) }
      withExtendedLifetime(removed) {}
    }
  }

  /// Suspends under an identifier; gives false when the task is cancelled.
  nonisolated(nonsending) private func wait(
    _ id: UInt64,
    _ suspend: @Sendable (inout ManualClockMachine<Continuation>, Continuation) -> Wakes,
    started: @Sendable () -> Void = {}
  ) async -> Bool {
    defer { machine.withLock { $0.forget(id) } }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        machine.withLock { suspend(&$0, continuation) }.perform()
        started()
      }
    } onCancel: {
      machine.withLock { $0.cancel(id) }?.resume(returning: false)
    }
  }

  private typealias Wakes = ManualClockWakes<Continuation>
}

/// Who goes on after a transition of the clock's machine.
struct ManualClockWakes<Waiter: Sendable>: Sendable {
  var woken: [Waiter] = []
  var cancelled: [Waiter] = []
}

extension ManualClockWakes where Waiter == UnsafeContinuation<Bool, Never> {
  func perform() {
    for waiter in woken { waiter.resume(returning: true) }
    for waiter in cancelled { waiter.resume(returning: false) }
  }
}
