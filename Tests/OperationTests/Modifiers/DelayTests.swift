import Operation
import Testing

@Suite("delay", .timeLimit(.minutes(5))) struct DelayTests {
  private let clock = ManualClock()
  private var context: OperationContext { .timed(by: clock) }

  @Test("A run begins after its delay, with and without a store, with and without a typed failure")
  func everyKind() async throws {
    let script = Script()
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = OpenQuery(script: script).delay(for: .seconds(2))
    let typed = TypedQuery(script: script).delay(for: .seconds(2))
    let runs = [
      Task { try await query.run(in: context) },
      Task { try await typed.run(in: context) },
      Task { try await PlainRequest(script: script).delay(for: .seconds(2)).run(in: context) },
      Task { try await client.store(for: query).run() },
      Task { try await client.store(for: typed).run() },
    ]
    await clock.sleepers(atLeast: 5)
    await clock.advance(by: .milliseconds(1_999))
    #expect(clock.sleeperCount == 5 && script.attempts == 0)
    await clock.advance(by: .milliseconds(1))
    for run in runs { _ = try await run.value }
    #expect(script.attempts == 5)
  }

  @Test("Below a retry every attempt is delayed, above it only the first")
  func retry() async throws {
    let below = Script(failures: 1)
    let run = Task {
      try await OpenQuery(script: below).delay(for: .seconds(1)).retry(limit: 1)
        .backoff(.noBackoff).run(in: context)
    }
    for attempts in 0..<2 {
      await clock.sleepers(atLeast: 1)
      #expect(below.attempts == attempts)
      await clock.advance(by: .seconds(1))
    }
    #expect(try await run.value == 2)
    let above = Script(failures: 1)
    let other = Task {
      try await OpenQuery(script: above).retry(limit: 1).backoff(.noBackoff)
        .delay(for: .seconds(1)).run(in: context)
    }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    #expect(try await other.value == 2)
  }

  @Test("A cancelled delay throws, and the request does not run")
  func cancelled() async {
    let script = Script()
    let run = Task { try await OpenQuery(script: script).delay(for: .seconds(1)).run(in: context) }
    await clock.sleepers(atLeast: 1)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(script.attempts == 0 && clock.sleeperCount == 0)
  }

  @Test("A request with a typed failure runs at once when its delay is cancelled")
  func cancelledTyped() async throws {
    let script = Script { _, _, _ in Task.isCancelled ? .failure(Refused()) : .success(1) }
    let run = Task { try await TypedQuery(script: script).delay(for: .seconds(1)).run(in: context) }
    await clock.sleepers(atLeast: 1)
    run.cancel()
    await #expect(throws: Refused()) { try await run.value }
  }

  @Test("A negative delay is reported, and there is no delay")
  func negative() async throws {
    let reported = await issues { PlainRequest(script: Script()).delay(for: .seconds(-1)) }
    #expect(reported.issues.map(\.kind) == [.invalidValue])
    #expect(try await reported.output.run(in: context) == 1)
  }
}
