import FoundationEssentials
import Operation
import Testing

@Suite("clock") struct ClockTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 500))

  @Test("The context of a request with a clock has that clock, with and without a store")
  func everyKind() async throws {
    let script = Script()
    let client = OperationClient(defaults: .testing)
    _ = try await OpenQuery(script: script).clock(clock).run()
    _ = try await TypedQuery(script: script).clock(clock).run()
    _ = try await PlainRequest(script: script).clock(clock).run(in: .timed(by: SystemClock()))
    _ = try await client.store(for: OpenQuery(script: script).clock(clock)).run()
    _ = try await client.store(for: TypedQuery(script: script).clock(clock)).run()
    #expect(script.attempts == 5)
    #expect(script.contexts.values.allSatisfy { $0.operationClock as? ManualClock === clock })
  }

  @Test("The dates of a store come from the clock of its request")
  func dates() async throws {
    let store = OperationClient(defaults: .testing)
      .store(for: OpenQuery(script: Script(failures: 1)).clock(clock))
    _ = try? await store.run()
    #expect(store.errorLastUpdatedAt == Date(timeIntervalSince1970: 500))
    await clock.advance(by: .seconds(5))
    _ = try await store.run()
    #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 505))
  }

  @Test("Waits before and after the clock modifier use the clock, and the last clock counts")
  func waits() async throws {
    let other = ManualClock()
    let run = Task {
      try await OpenQuery(script: Script(failures: 1)).clock(other).delay(for: .seconds(1))
        .retry(limit: 1).backoff(.constant(.seconds(1))).clock(clock).run()
    }
    for _ in 0..<3 {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(1))
    }
    #expect(try await run.value == 2)
    #expect(other.sleeperCount == 0)
  }

  @Test("The clock of a context that is passed to a run replaces that of the store")
  func passedContext() async throws {
    let other = ManualClock(now: Date(timeIntervalSince1970: 9))
    let store = OperationClient(defaults: .testing)
      .store(for: OpenQuery(script: Script()).clock(clock))
    _ = try await store.run(using: .timed(by: other))
    #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 9))
  }
}
