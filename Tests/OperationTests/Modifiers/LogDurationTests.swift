import Operation
import Testing

@Suite("logDuration") struct LogDurationTests {
  private let clock = ManualClock()
  private let log = EventLog<String>()

  @Test("A success is logged with its duration by the clock of the context, in every kind of run")
  func success() async throws {
    let context = OperationContext.timed(by: clock)
    let client = OperationClient(defaults: .testing, clock: clock)
    let script = Script()
    let query = OpenQuery(script: script).delay(for: .milliseconds(60))
      .logDuration { log.append($0) }
    let runs = [
      Task { try await query.run(in: context) },
      Task { try await client.store(for: query).run() },
      Task {
        try await PlainRequest(script: script).delay(for: .milliseconds(60))
          .logDuration("plain") { log.append($0) }.run(in: context)
      },
    ]
    await clock.sleepers(atLeast: 3)
    await clock.advance(by: .milliseconds(60))
    for run in runs { _ = try await run.value }
    #expect(log.count == 3)
    #expect(log.values.contains("plain succeeded after 0.06 s"))
    #expect(log.values.filter { $0.contains("OpenQuery") && $0.contains("0.06 s") }.count == 2)
  }

  @Test("A failure is logged with its description, and the run throws it with its type")
  func failure() async {
    func run() async throws(Refused) -> Int {
      try await TypedQuery(script: Script(failures: 9)).logDuration("q") { log.append($0) }
        .run(in: .timed(by: clock))
    }
    await #expect(throws: Refused(attempt: 1)) { try await run() }
    #expect(log.values == ["q failed after 0.0 s: Refused(attempt: 1)"])
  }

  @Test("Without a closure, the line is written to standard error")
  func standardError() async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      let query = OpenQuery(script: Script()).logDuration("the query")
      _ = try await query.run(in: .timed(by: ManualClock()))
    }
    let text = String(decoding: try #require(result?.standardErrorContent), as: UTF8.self)
    #expect(text.split(separator: "\n").contains("the query succeeded after 0.0 s"))
  }

  @Test("Below a retry each attempt is logged, and above it the whole run")
  func retry() async throws {
    _ = try await OpenQuery(script: Script(failures: 1)).logDuration("one") { log.append($0) }
      .retry(limit: 1).backoff(.noBackoff).logDuration("all") { log.append($0) }
      .run(in: .timed(by: clock))
    #expect(log.values.map { $0.prefix(9) } == ["one faile", "one succe", "all succe"])
  }
}
