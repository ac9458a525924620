import FoundationEssentials
import Operation
import Testing

/// The result of every public entry with a duration for invalid durations.
@Suite("Bad input: durations", .timeLimit(.minutes(5))) struct BadDurationTests {
  private static let century = Duration.seconds(100 * 365 * 86_400)
  private static let times: [(name: String, length: Duration)] = [
    ("a second", .seconds(1)), ("a minute", .seconds(60)), ("a hundred years", century),
  ]
  private static let values: [(name: String, duration: Duration)] = [
    ("zero", .zero), ("-1 s", .seconds(-1)),
    ("the least", .leastOfAll),
    ("the greatest", .longestOfAll),
  ]

  /// The rows of an entry: zero, two negative durations, and the greatest.
  ///
  /// `report` is a part of the report of a negative duration, if there is one.
  private static func rows(
    _ entry: String, zero: String = "no time", negative: String = "no time",
    greatest: String = "a hundred years", report: String?, reportsZero: Bool = false,
    call: @escaping @Sendable (Duration) async throws -> String
  ) -> [BadInput] {
    values.map { value in
      let isReported = value.duration < .zero || (reportsZero && value.duration == .zero)
      let reports = isReported && report != nil ? [report ?? ""] : []
      let outcome = value.duration == .zero ? zero : value.duration < .zero ? negative : greatest
      return BadInput(entry, value.name, outcome, reports: reports) {
        try await call(value.duration)
      }
    }
  }

  /// Advances a manual clock, and returns the time until something is done.
  private static func time(
    by clock: ManualClock, sleeps: Bool = true, until isDone: @Sendable () -> Bool
  ) async -> String {
    guard await eventually({ isDone() || clock.sleeperCount > 0 || !sleeps }) else {
      return "stuck"
    }
    if isDone() { return "no time" }
    var passed = Duration.zero
    for time in times {
      await clock.advance(by: time.length - passed - .milliseconds(1))
      if sleeps, clock.sleeperCount == 0 { return "less than \(time.name)" }
      if isDone() { return "less than \(time.name)" }
      await clock.advance(by: .milliseconds(1))
      passed = time.length
      guard await eventually({ isDone() || clock.sleeperCount > 0 || !sleeps }) else {
        return "stuck"
      }
      if isDone() { return time.name }
    }
    return "longer"
  }

  /// Returns the time that a body takes by a manual clock.
  private static func time(
    of body: @escaping @Sendable (ManualClock) async throws -> Void
  ) async -> String {
    let clock = ManualClock()
    let isDone = Latch()
    let task = Task {
      try? await body(clock)
      isDone.open()
    }
    defer { task.cancel() }
    return await time(by: clock) { isDone.isOpen }
  }

  private static func name(of duration: Duration) -> String {
    if duration == .zero { return "no time" }
    return times.first { $0.length == duration }?.name ?? "\(duration)"
  }

  private static let modifiers: [BadInput] =
    rows("delay(for:)", report: "delay of OpenQuery") { duration in
      let query = OpenQuery(script: Script()).delay(for: duration)
      return await time { clock in _ = try await query.run(in: .timed(by: clock)) }
    }
    + rows("timeout(after:)", report: "timeout of OpenQuery") { duration in
      let query = OpenQuery(script: Script { _, _, _ in await never() }).timeout(after: duration)
      return await time { clock in _ = try await query.run(in: .timed(by: clock)) }
    }
    + rows("stale(after:)", report: "stale time of OpenQuery") { duration in
      let clock = ManualClock()
      let client = OperationClient(defaults: .testing, clock: clock)
      let store = client.store(for: OpenQuery(script: Script()).stale(after: duration))
      store.currentValue = 1
      return await time(by: clock, sleeps: false) { store.isStale }
    }
    + rows(
      "rerun(every:while:inBackground:)", zero: "a second", negative: "a second",
      report: "interval of OpenQuery", reportsZero: true
    ) { duration in await polling { $0.rerun(every: duration) } }
    + rows(
      "rerun(while:every:inBackground:)", zero: "a second", negative: "a second",
      report: "interval of OpenQuery", reportsZero: true
    ) { duration in await polling { $0.rerun(while: { _ in true }, every: duration) } }
    + rows("unusedFor(_:)", zero: "a minute", negative: "a minute", report: "time of retention") {
      duration in
      let clock = ManualClock()
      let retention = OperationRetention.unusedFor(duration)
      let client = OperationClient(defaults: .testing, clock: clock, retention: retention)
      _ = client.store(for: OpenQuery(script: Script()))
      return await time(by: clock, sleeps: false) { client.store(with: ["open"]) == nil }
    }

  /// Waits until the task is cancelled.
  private static func never() async -> Result<Int, Refused> {
    let silence = AsyncStream<Never> { _ in }
    for await _ in silence {}
    return .failure(Refused())
  }

  /// Returns the time that an observed store with a poll waits before its first run.
  private static func polling<Request: StatefulOperationRequest>(
    _ modify: (OpenQuery) -> Request
  ) async -> String where Request.State == QueryState<Int, any Error> {
    let clock = ManualClock()
    let script = Script()
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(for: modify(OpenQuery(script: script)).neverStale())
    store.context.applicationActivityObserver = ManualApplicationActivityObserver()
    store.currentValue = 0
    let subscription = store.subscribe { _ in }
    defer { subscription.cancel() }
    return await time(by: clock) { script.attempts > 0 }
  }

  private static let backoffs: [BadInput] =
    rows("constant(_:)", report: "A backoff") { name(of: OperationBackoffFunction.constant($0)(0)) }
    + rows("linear(_:)", report: "A backoff") { name(of: OperationBackoffFunction.linear($0)(0)) }
    + rows("exponential(_:)", report: "A backoff") {
      name(of: OperationBackoffFunction.exponential($0)(0))
    }
    + rows("fibonacci(_:)", report: "A backoff") {
      name(of: OperationBackoffFunction.fibonacci($0)(0))
    }
    + rows("capped(at:)", report: "cap of a backoff") { limit in
      name(of: OperationBackoffFunction { _ in .longestOfAll }.capped(at: limit)(0))
    }
    + rows("OperationBackoffFunction.init(_:)", report: nil) { duration in
      let function = OperationBackoffFunction { _ in duration }
      let query = OpenQuery(script: Script(failures: 1)).retry(limit: 1).backoff(function)
      return await time { clock in _ = try await query.run(in: .timed(by: clock)) }
    }
    + rows("backoff(_:)", greatest: "a hundred years", report: nil) { duration in
      let function = OperationBackoffFunction { _ in duration }.jittered { 1 }
      let query = OpenQuery(script: Script(failures: 1)).retry(limit: 1).backoff(function)
      return await time { clock in _ = try await query.run(in: .timed(by: clock)) }
    }
    + [Double.nan, .infinity, -.infinity, -1, 2].map { number in
      BadInput("jittered(using:)", "\(number)", number < 0 ? "half a second" : "a second") {
        let wait = OperationBackoffFunction.constant(.seconds(1)).jittered { number }(0)
        return wait == .milliseconds(500) ? "half a second" : name(of: wait)
      }
    }

  private static let clocks: [BadInput] =
    rows("ManualClock.sleep(for:)", report: nil) { duration in
      await time { clock in try await clock.sleep(for: duration) }
    }
    + rows("ManualClock.schedule(after:_:)", report: nil) { duration in
      let clock = ManualClock()
      let isDone = Latch()
      let subscription = clock.schedule(after: duration) { isDone.open() }
      if duration <= .zero { await clock.advance(by: .zero) }
      defer { subscription.cancel() }
      return await time(by: clock, sleeps: false) { isDone.isOpen }
    }
    + rows("OperationClock.schedule(after:_:)", report: nil) { duration in
      let clock = ManualClock()
      let isDone = Latch()
      let subscription = Bare(base: clock).schedule(after: duration) { isDone.open() }
      defer { subscription.cancel() }
      return await time(by: clock) { isDone.isOpen }
    }
    + rows(
      "advance(by:)", zero: "0.0 s on, asleep", negative: "0.0 s on or less, asleep",
      greatest: "3153600000.0 s on, awake", report: nil
    ) { duration in
      let clock = ManualClock()
      let sleeper = Task { try await clock.sleep(for: .seconds(5)) }
      defer { sleeper.cancel() }
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: duration)
      let passed = clock.now().timeIntervalSince1970
      let place = passed < 0 ? "0.0 s on or less" : "\(passed) s on"
      return "\(place), \(clock.sleeperCount == 0 ? "awake" : "asleep")"
    }
    + values.dropLast().map { value in
      BadInput("SystemClock.sleep(for:)", value.name, "no time") {
        try await SystemClock().sleep(for: value.duration)
        return "no time"
      }
    }
    + [
      BadInput("SystemClock.sleep(for:)", "the greatest", "until it is cancelled") {
        let sleep = Task { try await SystemClock().sleep(for: .longestOfAll) }
        sleep.cancel()
        await #expect(throws: CancellationError.self) { try await sleep.value }
        return "until it is cancelled"
      }
    ]

  static let table = modifiers + backoffs + clocks

  @Test("An invalid duration is reported, and the nearest valid one is used", arguments: table)
  func duration(row: BadInput) async throws {
    try await row.check()
  }
}

/// A clock with only the required members.
private struct Bare: OperationClock {
  let base: ManualClock

  func now() -> Date { base.now() }
  nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await base.sleep(for: duration)
  }
}

extension Duration {
  // Both have more seconds than `Duration.components` can represent.
  fileprivate static var leastOfAll: Duration { .seconds(Int64.min) * 18 }
  fileprivate static var longestOfAll: Duration { .seconds(Int64.max) * 18 }
}
