import FoundationEssentials
import Synchronization
import Testing

@testable import Operation

@Suite("ManualClock", .timeLimit(.minutes(5))) struct ManualClockTests {
  @Test("The elapsed time is the sum of the advances, also when the clock is set back")
  func elapsed() async {
    let clock = ManualClock(now: Date(timeIntervalSinceReferenceDate: .nan))
    let start = clock.elapsed()
    for (step, sum) in [(10, 10), (-30, 10), (5, 15)] {
      await clock.advance(by: .seconds(step))
      #expect(clock.elapsed() - start == .seconds(sum))
    }
  }

  @Test("The elapsed time of the system does not go back, and by default it is that of the date")
  func elapsedOfOthers() async {
    struct Fixed: OperationClock {
      let date: Date
      func now() -> Date { date }
      func sleep(for duration: Duration) async throws {}
    }
    let (first, second) = (SystemClock().elapsed(), SystemClock().elapsed())
    #expect(first > .zero && first <= second)
    // The elapsed time of unused stores is equal on a machine that was never suspended, and less
    // on others.
    let (coarse, later) = (SystemClock.coarseElapsed, SystemClock.coarseElapsed)
    #expect(coarse > .zero && coarse <= later && coarse <= SystemClock().elapsed())
    while SystemClock.coarseElapsed == coarse { await Task.yield() }
    #expect(Fixed(date: Date(timeIntervalSinceReferenceDate: 7.5)).elapsed() == .seconds(7.5))
    #expect(Fixed(date: .distantFuture).elapsed() == .longest)
  }

  /// A clock whose sleeps end at a gate, also if they are cancelled.
  private struct GateClock: OperationClock {
    @TaskLocal static var local = 0

    let gate = AsyncGate()
    let sleeps = EventLog<Int>()

    func now() -> Date { .distantPast }
    func sleep(for duration: Duration) async throws {
      sleeps.append(Self.local)
      await gate.wait()
    }

    func schedule(
      in local: Int, _ action: @escaping @Sendable () -> Void
    ) -> OperationSubscription {
      Self.$local.withValue(local) { schedule(after: .seconds(1), action) }
    }
  }

  @Test("A clock's action has no task-local values, and is not called after its cancellation")
  func defaultSchedule() async {
    let (clock, actions, live) = (GateClock(), EventLog<Int>(), LiveCount())
    let subscription = clock.schedule(in: 1) { [probe = live.makeProbe()] in
      withExtendedLifetime(probe) { _ = actions.append(GateClock.local) }
    }
    await clock.sleeps.wait(for: 1)
    let other = clock.schedule(in: 2) { actions.append(GateClock.local) }
    await clock.sleeps.wait(for: 2)
    subscription.cancel()
    clock.gate.open()
    await actions.wait(for: 1)
    #expect(await eventually { live.value == 0 })
    #expect(actions.values == [0] && clock.sleeps.values == [0, 0])
    other.cancel()
  }

  @Test("The clock begins at its first date, and moves by the duration of each advance")
  func now() async {
    let start = Date(timeIntervalSince1970: 1_700_000_000)
    let clock = ManualClock(now: start)
    #expect(clock.now() == start)
    await clock.advance(by: .seconds(90))
    #expect(clock.now() == start + 90)
    await clock.advance(by: .seconds(-30))
    #expect(clock.now() == start + 60)
    #expect(ManualClock().now() == Date(timeIntervalSince1970: 0))
  }

  @Test("Sleeps end in the order of their times, and each has ended when the next is woken")
  func order() async throws {
    let clock = ManualClock()
    let log = EventLog<Int>()
    let tasks = [5, 1, 3, 2, 4].map { second in
      Task {
        try await clock.sleep(for: .seconds(second))
        log.append(second)
      }
    }
    await clock.sleepers(atLeast: 5)
    await clock.advance(by: .seconds(4))
    #expect(clock.sleeperCount == 1)
    await log.wait(for: 4)
    await clock.advance(by: .seconds(1))
    for task in tasks { try await task.value }
    #expect(Set(log.values.prefix(4)) == [1, 2, 3, 4])
    #expect(log.values.last == 5)
    #expect(clock.sleeperCount == 0)
  }

  @Test("On one actor, sleeps with equal times end in the order in which they began")
  @MainActor
  func equalTimes() async throws {
    let clock = ManualClock()
    let log = EventLog<Int>()
    var tasks: [Task<Void, any Error>] = []
    for number in 0..<20 {
      tasks.append(
        Task { @MainActor in
          try await clock.sleep(for: .seconds(1))
          log.append(number)
        })
      await clock.sleepers(atLeast: number + 1)
    }
    await clock.advance(by: .seconds(1))
    for task in tasks { try await task.value }
    #expect(log.values == Array(0..<20))
  }

  @Test("A task that is woken reads the new time, and its next sleep starts from there")
  func chain() async throws {
    let clock = ManualClock()
    let log = EventLog<TimeInterval>()
    let task = Task {
      for _ in 0..<3 {
        try await clock.sleep(for: .seconds(1))
        log.append(clock.now().timeIntervalSince1970)
      }
    }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(10))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    try await task.value
    #expect(log.values == [10, 11, 12])
  }

  @Test("A timer that is due at once, and is set by another one, is called in the next advance")
  func timerSetByTimer() async {
    let clock = ManualClock()
    let log = EventLog<Int>()
    let second = Mutex(OperationSubscription.empty)
    let first = clock.schedule(after: .seconds(1)) {
      log.append(1)
      let subscription = clock.schedule(after: .zero) { log.append(2) }
      second.withLock { $0 = subscription }
    }
    await clock.advance(by: .seconds(1))
    #expect(log.values == [1])
    await clock.advance(by: .zero)
    #expect(log.values == [1, 2])
    withExtendedLifetime(first) {}
  }

  @Test("A cancelled sleep throws at once, and is no longer counted")
  func cancelWhileSleeping() async {
    let clock = ManualClock()
    let task = Task { try await clock.sleep(for: .seconds(1)) }
    await clock.sleepers(atLeast: 1)
    task.cancel()
    #expect(clock.sleeperCount == 0)
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test(
    "A sleep of any duration in a cancelled task throws at once",
    arguments: [Duration.seconds(1), .zero, .seconds(-1)])
  func cancelBefore(duration: Duration) async {
    let clock = ManualClock()
    let gate = AsyncGate()
    let task = Task {
      await gate.wait()
      try await clock.sleep(for: duration)
    }
    task.cancel()
    gate.open()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleeperCount == 0)
  }

  @Test("A sleep of no time returns at once, and a sleep of any length is possible")
  func extremes() async throws {
    let clock = ManualClock()
    try await clock.sleep(for: .zero)
    try await clock.sleep(for: .seconds(-1))
    let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
    let task = Task { try await clock.sleep(for: huge) }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1_000_000))
    #expect(clock.sleeperCount == 1)
    await clock.advance(by: huge)
    try await task.value
  }

  @Test("A wait for sleeps ends when its task is cancelled")
  func cancelledObserver() async {
    let clock = ManualClock()
    let task = Task { await clock.sleepers(atLeast: 1) }
    task.cancel()
    await task.value
    #expect(clock.sleeperCount == 0 && clock.hasNoTraces)
  }

  @Test("An advance in a cancelled task still wakes everything that is due")
  func cancelledAdvance() async throws {
    let clock = ManualClock()
    let sleepers = (0..<10).map { _ in Task { try await clock.sleep(for: .seconds(1)) } }
    await clock.sleepers(atLeast: 10)
    let advance = Task { await clock.advance(by: .seconds(1)) }
    advance.cancel()
    await advance.value
    for sleeper in sleepers { try await sleeper.value }
    #expect(clock.hasNoTraces)
  }

  @Test("Concurrent sleeps, cancellations and advances leave no wait", arguments: 0..<200)
  func storm(round: Int) async {
    let clock = ManualClock()
    let tasks = (0..<12).map { number in
      Task { try await clock.sleep(for: .seconds(number % 3 + 1)) }
    }
    let pump = Task {
      while !Task.isCancelled {
        await clock.sleepers(atLeast: 1)
        await clock.advance(by: .seconds(1))
      }
    }
    await withTaskGroup(of: Void.self) { group in
      for number in stride(from: 0, to: 12, by: 3) { group.addTask { tasks[number].cancel() } }
      for _ in 0..<2 { group.addTask { await clock.advance(by: .seconds(1)) } }
      for task in tasks { group.addTask { _ = await task.result } }
    }
    pump.cancel()
    await pump.value
    #expect(clock.sleeperCount == 0 && clock.hasNoTraces)
  }

  @Test("The clock of the machine returns at once after no time, and when it is cancelled")
  func systemClock() async throws {
    let clock = SystemClock()
    try await clock.sleep(for: .zero)
    try await clock.sleep(for: .seconds(-5))
    let task = Task {
      try await clock.sleep(for: Duration(secondsComponent: .max, attosecondsComponent: 0))
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let ended = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await clock.sleep(for: .zero)
    }
    await #expect(throws: CancellationError.self) { try await ended.value }
  }
}
