public import FoundationEssentials
public import ReactiveStreams
import Synchronization

/// A clock that moves only when it is advanced, for tests and simulations.
///
/// ```swift
/// let clock = ManualClock(now: Date(timeIntervalSince1970: 0))
/// let client = OperationClient(clock: clock)
/// // … something waits for a retry
/// await clock.sleepers(atLeast: 1)
/// await clock.advance(by: .seconds(2))
/// await clock.settle()
/// ```
public final class ManualClock: OperationClock {
  /// The lock guards the machine. Tasks are resumed, and actions are called, without it.
  private let machine: Mutex<ManualClockMachine<OneShot<Bool>>>

  /// Creates a clock.
  ///
  /// - Parameter now: The first moment; the start of 1970 (UTC) by default. With a date that is not a
  ///   number, as of `Double.nan`, every value with a stale time is stale.
  public init(now: Date = Date(timeIntervalSince1970: 0)) {
    machine = Mutex(ManualClockMachine(start: now))
  }

  /// Returns the present moment of the clock.
  public func now() -> Date { machine.withLock { $0.now } }

  /// Returns the sum of all times by which the clock was advanced. A clock that is set back does not
  /// change it.
  public func elapsed() -> Duration { machine.withLock { $0.advanced } }

  /// The number of sleeps that wait for the clock. Scheduled actions do not count.
  public var sleeperCount: Int { machine.withLock { $0.sleeperCount } }

  /// Whether nothing waits for the clock, and no record of an earlier wait is left.
  var hasNoTraces: Bool { machine.withLock { $0.isEmpty } }

  /// Waits until the clock has been advanced by a duration.
  ///
  /// - Parameter duration: The time to wait, a hundred years at most. The call returns at once if it
  ///   is zero or negative.
  /// - Throws: `CancellationError`, as soon as the task is cancelled.
  nonisolated(nonsending) public func sleep(for duration: Duration) async throws {
    try Task.checkCancellation()
    guard duration > .zero else { return }
    let wakeUp = OneShot<Bool>()
    let (id, observers) = machine.withLock { $0.sleep(for: duration, waiter: wakeUp) }
    for observer in observers { observer.finish(true) }
    let hasWoken = await wakeUp.wait {
      // At once, so that a cancelled sleep does not count.
      _ = machine.withLock { $0.remove(id) }
      return false
    }
    for waiter in machine.withLock({ $0.sleepReturned(id) }) { waiter.finish(true) }
    if !hasWoken { throw CancellationError() }
  }

  /// Waits until a number of sleeps wait for the clock, or the task is cancelled.
  ///
  /// - Parameter count: The least number. The call returns at once if it is zero or negative.
  nonisolated(nonsending) public func sleepers(atLeast count: Int) async {
    await wait { $0.observe(atLeast: count, waiter: $1) }
  }

  /// Advances the clock, and wakes what is due then.
  ///
  /// Sleeps end, and scheduled actions are called, in the order of their times; those with equal
  /// times in the order in which they began. Before the next one, this method waits as ``settle()``
  /// does: of several polls that are due, each starts after the run of the one before it has ended, or
  /// waits for something else. It waits for a thousand steps of runs at most, because runs can start each
  /// other without an end. A woken task reads the new time, and a sleep that it begins starts from there.
  /// The last sleep has returned in its task; what the task does after it continues by itself.
  ///
  /// - Parameter duration: The time to advance by, a hundred years at most. A negative duration sets
  ///   the date back. It changes no wait, and wakes nothing.
  nonisolated(nonsending) public func advance(by duration: Duration) async {
    machine.withLock { $0.advance(by: duration) }
    while true {
      let waiter = OneShot<Bool>()
      guard let event = machine.withLock({ $0.takeDue(advance: waiter) }) else { return }
      // If the task of this call is cancelled, the next sleep is woken without waiting.
      switch event {
      case .timer(let action): action()
      case .sleep(let wakeUp):
        wakeUp.finish(true)
        _ = await waiter.wait()
      }
      await wait { $0.settleBeforeDue(waiter: $1) }
    }
  }

  /// Waits until no run that uses the clock can continue by itself, or the calling task is cancelled.
  ///
  /// Then each run and each poll has ended, sleeps, or waits for something else, such as another task,
  /// a gate of the test or the network. So a test can show that nothing was fetched:
  ///
  /// ```swift
  /// await clock.advance(by: .seconds(9))
  /// await clock.settle()
  /// #expect(fetchCount == 0)
  /// ```
  ///
  /// The runs and polls of the library count, with their child tasks, if this clock is the one of their
  /// context. Tasks that the test or a request makes with `Task` do not count, and neither does work
  /// while it is on the main actor or on another executor of its own. A request that never waits, such
  /// as a loop of `Task.yield()`, keeps the clock from settling.
  nonisolated(nonsending) public func settle() async { await wait { $0.settle(waiter: $1) } }

  /// Waits for the observer that a transition has added, if it returns one.
  nonisolated(nonsending) private func wait(
    _ observe: (inout ManualClockMachine<OneShot<Bool>>, OneShot<Bool>) -> UInt64?
  ) async {
    let observer = OneShot<Bool>()
    guard let id = machine.withLock({ observe(&$0, observer) }) else { return }
    _ = await observer.wait()
    machine.withLock { $0.removeObserver(id) }
  }

  func beginJob() { machine.withLock { $0.beginJob() } }

  func endJob() { for waiter in machine.withLock({ $0.endJob() }) { waiter.finish(true) } }

  /// Calls `action` once, in the ``advance(by:)`` that reaches its time, with no lock held.
  ///
  /// An action that is due at once is called in the next ``advance(by:)``. It does not count as a
  /// sleep, and is not called if the subscription ends before.
  ///
  /// - Parameters:
  ///   - duration: The time until the call, a hundred years at most; a negative one is zero.
  ///   - action: Called once, on the thread that advances the clock.
  public func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    let id = machine.withLock { $0.schedule(after: duration, action) }
    return OperationSubscription { [self] in
      // The action is released without the lock.
      withExtendedLifetime(machine.withLock { $0.remove(id) }) {}
    }
  }
}
