import Operation
import Testing

@Suite("retry", .timeLimit(.minutes(5))) struct RetryTests {
  private let clock = ManualClock()

  private func attempts(_ script: Script) -> [[Int]] {
    script.contexts.values.map { context in
      [
        context.operationRetryIndex, context.operationMaxRetries,
        context.isLastRetryAttempt ? 1 : 0,
      ]
    }
  }

  @Test("A limit of n makes n retries, and the context contains the index and the limit")
  func limit() async throws {
    let script = Script(failures: 9)
    await #expect(throws: Refused(attempt: 3)) {
      try await OpenQuery(script: script).retry(limit: 2).backoff(.noBackoff).run()
    }
    #expect(attempts(script) == [[0, 2, 0], [1, 2, 0], [2, 2, 1]])
  }

  @Test("A success ends the retries")
  func success() async throws {
    let script = Script(failures: 1)
    #expect(try await OpenQuery(script: script).retry(limit: 5).backoff(.noBackoff).run() == 2)
    #expect(script.attempts == 2)
  }

  /// A condition whose evaluation cancels the task, as another thread could meanwhile.
  private struct CancellingCondition: OperationRunSpecification {
    func isSatisfied(in context: OperationContext) -> Bool {
      withUnsafeCurrentTask { $0?.cancel() }
      return true
    }
    func subscribe(
      in context: OperationContext, onChange: @escaping @Sendable () -> Void
    ) -> OperationSubscription { .empty }
  }

  @Test("A run that is cancelled while the condition of its retries is evaluated is not retried")
  func cancelledByCondition() async throws {
    let script = Script(failures: 9)
    let query = OpenQuery(script: script).retry(limit: 2).backoff(.noBackoff)
      .retries(onlyWhile: CancellingCondition())
    await #expect(throws: CancellationError.self) { try await Task { try await query.run() }.value }
    #expect(script.attempts == 1)
  }

  @Test("A query, a typed query and a plain request are all retried without a store")
  func everyKind() async throws {
    func typed() async throws(Refused) -> [Int] {
      [
        try await TypedQuery(script: Script(failures: 1)).retry(limit: 1).backoff(.noBackoff).run(),
        try await PlainRequest(script: Script(failures: 1)).backoff(.noBackoff).retry(limit: 1)
          .run(),
      ]
    }
    #expect(try await typed() == [2, 2])
    let script = Script(failures: 1)
    #expect(
      try await OpenPlainRequest(script: script).retry(limit: 1).backoff(.noBackoff).run() == 2)
  }

  @Test("A store retries, commits the last failure only, and keeps its type")
  func store() async throws {
    let script = Script(failures: 9)
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(
      for: TypedQuery(script: script).retry(limit: 2).backoff(.constant(.seconds(1))))
    let run = Task { () async -> Result<Int, Refused> in
      do throws(Refused) { return .success(try await store.run()) } catch { return .failure(error) }
    }
    for _ in 0..<2 {
      await clock.sleepers(atLeast: 1)
      #expect(store.error == nil && store.isLoading)
      await clock.advance(by: .seconds(1))
    }
    #expect(await run.value == .failure(Refused(attempt: 3)))
    let error: Refused? = store.error
    #expect(error == Refused(attempt: 3))
    #expect(store.errorUpdateCount == 1)
    #expect(attempts(script) == [[0, 2, 0], [1, 2, 0], [2, 2, 1]])
  }

  @Test("The predicate is called with the failure, and its `false` is final")
  func predicate() async throws {
    let script = Script(failures: 9)
    let calls = EventLog<Refused>()
    await #expect(throws: Refused(attempt: 2)) {
      try await TypedQuery(script: script)
        .retry(limit: 5) { failure in
          calls.append(failure)
          return failure.attempt < 2
        }
        .backoff(.noBackoff).run()
    }
    #expect(calls.values == [Refused(attempt: 1), Refused(attempt: 2)])
    #expect(script.attempts == 2)
  }

  @Test("The predicate is not called after the last retry")
  func predicateAtTheEnd() async {
    let calls = EventLog<Refused>()
    _ = try? await TypedQuery(script: Script(failures: 9))
      .retry(limit: 1) { calls.append($0) > 0 }.backoff(.noBackoff).run()
    #expect(calls.values == [Refused(attempt: 1)])
  }

  @Test("A cancellation is never retried, also if the request throws it")
  func cancellation() async {
    let attempts = EventLog<Int>()
    let query = Query<Int, any Error>(path: ["cancelled"]) { context in
      attempts.append(context.operationRetryIndex)
      throw CancellationError()
    }
    await #expect(throws: CancellationError.self) {
      try await query.retry(limit: 3) { _ in true }.backoff(.noBackoff).run()
    }
    #expect(attempts.values == [0])
  }

  @Test("A cancelled task makes no further attempt, with and without a typed failure")
  func cancelledTask() async {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .failure(Refused(attempt: attempt))
    }
    let calls = EventLog<Refused>()
    let request = PlainRequest(script: script).retry(limit: 3) { calls.append($0) > 0 }
    let run = Task { try await request.run() }
    await script.contexts.wait(for: 1)
    run.cancel()
    gate.open()
    await #expect(throws: Refused(attempt: 1)) { try await run.value }
    #expect(script.attempts == 1 && calls.count == 0)
  }

  @Test("A cancelled wait between two attempts ends the run at once")
  func cancelledWait() async {
    let script = Script(failures: 9)
    let context = OperationContext.timed(by: clock)
    let open = Task { try await OpenQuery(script: script).retry(limit: 3).run(in: context) }
    await clock.sleepers(atLeast: 1)
    open.cancel()
    await #expect(throws: CancellationError.self) { try await open.value }
    let typed = Task { try await TypedQuery(script: script).retry(limit: 3).run(in: context) }
    await clock.sleepers(atLeast: 1)
    typed.cancel()
    await #expect(throws: Refused(attempt: 2)) { try await typed.value }
    #expect(script.attempts == 2)
    #expect(clock.sleeperCount == 0)
  }

  @Test("Of several retries the last one counts, with its predicate and its limit only")
  func lastOneWins() async {
    let script = Script(failures: 99)
    let calls = EventLog<String>()
    _ = try? await OpenQuery(script: script)
      .retry(limit: 7) { _ in calls.append("inner") > 0 }
      .handleEvents { _ in }
      .retry(limit: 2) { _ in calls.append("outer") > 0 }
      .backoff(.noBackoff).run()
    #expect(attempts(script) == [[0, 2, 0], [1, 2, 0], [2, 2, 1]])
    #expect(calls.values == ["outer", "outer"])
  }

  @Test("A retry replaces the client's default, also with fewer retries")
  func replacesDefault() async {
    var defaults = OperationDefaults.standard
    defaults.retryLimit = 5
    defaults.backoff = .noBackoff
    let client = OperationClient(defaults: defaults, clock: clock)
    let own = Script(failures: 99)
    _ = try? await client.store(for: OpenQuery(script: own, path: ["own"]).retry(limit: 2)).run()
    #expect(attempts(own) == [[0, 2, 0], [1, 2, 0], [2, 2, 1]])
    let none = Script(failures: 99)
    _ = try? await client.store(for: OpenQuery(script: none, path: ["none"]).retry(limit: 0)).run()
    #expect(attempts(none) == [[0, 0, 1]])
    let refusing = Script(failures: 99)
    let never = OpenQuery(script: refusing, path: ["never"]).retry(limit: 2) { _ in false }
    _ = try? await client.store(for: never).run()
    #expect(attempts(refusing) == [[0, 2, 0]])
    let byDefault = Script(failures: 99)
    _ = try? await client.store(for: TypedQuery(script: byDefault)).run()
    #expect(byDefault.attempts == 6)
    #expect(byDefault.contexts.values.last?.operationMaxRetries == 5)
  }

  @Test("A run inside another run counts its own attempts")
  func nested() async throws {
    let outer = Script(failures: 1)
    let inner = Script(failures: 9)
    let query = Query<Int, any Error>(path: ["nested"]) { context in
      _ = try? await OpenQuery(script: inner).run(in: context)
      return try await outer.run(in: context) { _ in }.get()
    }
    #expect(try await query.retry(limit: 1).backoff(.noBackoff).run() == 2)
    #expect(attempts(inner) == [[0, 0, 1], [0, 0, 1]])
  }

  @Test("A negative limit is reported, and zero is used")
  func negativeLimit() async {
    let script = Script(failures: 9)
    let reported = await issues { OpenQuery(script: script).retry(limit: -2) }
    #expect(reported.issues.map(\.kind) == [.invalidValue])
    #expect(reported.issues.first?.message.contains("OpenQuery") == true)
    #expect(reported.issues.first?.message.contains("-2") == true)
    _ = try? await reported.output.run()
    #expect(script.attempts == 1)
  }
}
