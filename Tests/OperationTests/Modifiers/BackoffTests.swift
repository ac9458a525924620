import Operation
import Testing

@Suite("backoff", .timeLimit(.minutes(5))) struct BackoffTests {
  private let clock = ManualClock()

  /// Advances through these waits, and checks that no attempt comes before its time.
  private func expectWaits(_ seconds: [Int], of script: Script) async {
    for (index, wait) in seconds.enumerated() {
      await clock.sleepers(atLeast: 1)
      #expect(script.attempts == index + 1)
      await clock.advance(by: .seconds(wait) - .milliseconds(1))
      #expect(clock.sleeperCount == 1, "before retry \(index + 1)")
      await clock.advance(by: .milliseconds(1))
    }
  }

  @Test("Without a backoff a retry waits 1 s, 2 s, 4 s … up to 30 s")
  func standard() async throws {
    let script = Script(failures: 7)
    let context = OperationContext.timed(by: clock)
    let run = Task { try await OpenQuery(script: script).retry(limit: 7).run(in: context) }
    await expectWaits([1, 2, 4, 8, 16, 30, 30], of: script)
    #expect(try await run.value == 8)
  }

  @Test("A backoff applies before and after a retry, and the last of several counts")
  func position() async throws {
    let script = Script(failures: 2)
    let context = OperationContext.timed(by: clock)
    let below = Task {
      try await PlainRequest(script: script).backoff(.linear(.seconds(3))).retry(limit: 2)
        .run(in: context)
    }
    await expectWaits([3, 6], of: script)
    #expect(try await below.value == 3)
    let other = Script(failures: 2)
    let above = Task {
      try await TypedQuery(script: other).backoff(.constant(.seconds(9))).retry(limit: 2)
        .backoff(.linear(.seconds(2))).run(in: context)
    }
    await expectWaits([2, 4], of: other)
    #expect(try await above.value == 3)
  }

  @Test("A backoff replaces the client's default, also for the client's retries")
  func store() async throws {
    let script = Script(failures: 3)
    let client = OperationClient(clock: clock)
    let store = client.store(for: OpenQuery(script: script).backoff(.fibonacci(.seconds(5))))
    let run = Task { try await store.run() }
    await expectWaits([5, 5, 10], of: script)
    #expect(try await run.value == 4)
  }

  @Test("The client's default backoff is the one of its defaults")
  func clientDefault() async throws {
    let script = Script(failures: 2)
    var defaults = OperationDefaults.standard
    defaults.backoff = .constant(.seconds(4))
    let store = OperationClient(defaults: defaults, clock: clock)
      .store(for: TypedQuery(script: script))
    let run = Task { try await store.run() }
    await expectWaits([4, 4], of: script)
    #expect(try await run.value == 3)
  }

  @Test("Without retries a backoff does not wait")
  func noRetry() async {
    let script = Script(failures: 1)
    await #expect(throws: Refused(attempt: 1)) {
      try await OpenQuery(script: script).backoff(.constant(.seconds(60)))
        .run(in: .timed(by: clock))
    }
  }
}
