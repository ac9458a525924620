import Dispatch
import Operation
import Testing

@Suite("timeout", .timeLimit(.minutes(5))) struct TimeoutTests {
  private let clock = ManualClock()
  private var context: OperationContext { .timed(by: clock) }

  /// A script that ignores cancellation, and ends when the gate is opened.
  private func ignoringCancellation(_ gate: AsyncGate) -> Script {
    Script { attempt, _, yield in
      await gate.wait()
      yield(.success(-attempt))
      return .success(attempt)
    }
  }

  @Test("A run that ends in time returns or throws its result, and leaves no sleeper")
  func inTime() async throws {
    let script = Script()
    #expect(
      try await OpenQuery(script: script).timeout(after: .seconds(1)).run(in: context) == 1)
    #expect(
      try await PlainRequest(script: script).timeout(after: .seconds(1)).run(in: context) == 2)
    await #expect(throws: Refused(attempt: 1)) {
      try await TypedQuery(script: Script(failures: 1)).timeout(after: .seconds(1))
        .run(in: context)
    }
    #expect(clock.sleeperCount == 0)
  }

  @Test("A run that ignores cancellation is cancelled and abandoned at its timeout")
  func ignoredCancellation() async throws {
    let gate = AsyncGate()
    let cancellations = EventLog<Bool>()
    let script = Script { attempt, _, _ in
      await gate.wait()
      cancellations.append(Task.isCancelled)
      return .success(attempt)
    }
    let run = Task {
      try await OpenQuery(script: script).timeout(after: .seconds(5)).run(in: context)
    }
    await clock.sleepers(atLeast: 1)
    await script.contexts.wait(for: 1)
    await clock.advance(by: .seconds(5))
    let error = await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(error?.duration == .seconds(5))
    #expect(error?.description.contains("5.0 seconds") == true)
    gate.open()
    await cancellations.wait(for: 1)
    #expect(cancellations.values == [true])
  }

  @Test("A yield after the timeout is dropped")
  func lateYields() async throws {
    let gate = AsyncGate()
    let yields = EventLog<Int>()
    let over = EventLog<Void>()
    let script = Script { attempt, _, yield in
      yield(.success(10))
      await gate.wait()
      yield(.success(20))
      over.append(())
      return .success(attempt)
    }
    let run = Task {
      let continuation = OperationContinuation<Int, any Error> { result in
        if let value = try? result.get() { yields.append(value) }
      }
      return try await TypedQuery(script: script).timeout(after: .seconds(1))
        .run(in: context, with: continuation)
    }
    await clock.sleepers(atLeast: 1)
    await yields.wait(for: 1)
    await clock.advance(by: .seconds(1))
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    gate.open()
    await over.wait(for: 1)
    #expect(yields.values == [10])
  }

  @Test("A cancelled caller returns at once from a run that ignores cancellation")
  func cancelledCaller() async {
    let gate = AsyncGate()
    let script = ignoringCancellation(gate)
    let run = Task {
      try await OpenPlainRequest(script: script).timeout(after: .seconds(1)).run(in: context)
    }
    await script.contexts.wait(for: 1)
    await clock.sleepers(atLeast: 1)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    // The timer may have been cancelled just before it slept.
    await clock.settle()
    #expect(clock.sleeperCount == 0)
    gate.open()
  }

  @Test("Below a retry, each attempt has the full time")
  func belowRetry() async {
    let gate = AsyncGate()
    let script = ignoringCancellation(gate)
    let run = Task {
      try await OpenQuery(script: script).timeout(after: .seconds(2)).retry(limit: 2)
        .backoff(.noBackoff).run(in: context)
    }
    for attempt in 1...3 {
      await script.contexts.wait(for: attempt)
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(2))
    }
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(script.contexts.values.map(\.operationRetryIndex) == [0, 1, 2])
    gate.open()
  }

  @Test("Above a retry, all attempts and waits share the time")
  func aboveRetry() async {
    let script = Script(failures: 99)
    let run = Task {
      try await TypedQuery(script: script).retry(limit: 9).backoff(.constant(.seconds(2)))
        .timeout(after: .seconds(5)).run(in: context)
    }
    for _ in 0..<2 {
      await clock.sleepers(atLeast: 2)
      await clock.advance(by: .seconds(2))
    }
    await clock.sleepers(atLeast: 2)
    await clock.advance(by: .seconds(1))
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(script.attempts == 3)
    #expect(clock.sleeperCount == 0)
  }

  @Test("In a store a timeout is a failure of the run, and a typed failure becomes any error")
  func store() async throws {
    let gate = AsyncGate()
    let script = ignoringCancellation(gate)
    let client = OperationClient(defaults: .testing, clock: clock)
    let store: OperationStore<QueryState<Int, any Error>> = client.store(
      for: TypedQuery(script: script).timeout(after: .seconds(1)))
    let run = Task { try await store.run() }
    await script.contexts.wait(for: 1)
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(store.error is OperationTimeoutError)
    #expect(!store.isLoading && store.currentValue == nil)
    gate.open()
    #expect(try await store.run() == 2)
  }

  @Test("A query with a timeout is of the same kind as the query")
  func sameKind() {
    func state<Request: QueryRequest>(of: Request) -> Request.State.Type { Request.State.self }
    let script = Script()
    let open = OpenQuery(script: script).timeout(after: .seconds(1))
    #expect(state(of: open) == QueryState<Int, any Error>.self)
    let client = OperationClient(defaults: .testing)
    #expect(client.store(for: OpenQuery(script: script)) === client.store(for: open))
    let typed = TypedQuery(script: script).timeout(after: .seconds(1)).retry(limit: 1)
    #expect(state(of: typed) == QueryState<Int, any Error>.self)
  }

  @Test("A negative timeout is reported, and zero is used")
  func negative() async {
    let gate = AsyncGate()
    let script = ignoringCancellation(gate)
    let reported = await issues { OpenQuery(script: script).timeout(after: .seconds(-1)) }
    #expect(reported.issues.map(\.kind) == [.invalidValue])
    await #expect(throws: OperationTimeoutError.self) {
      try await reported.output.run(in: context)
    }
    gate.open()
  }

  @Test("A race between the work and its time has one of both results", arguments: 0..<200)
  func race(round: Int) async throws {
    let script = Script { attempt, context, _ in
      try? await context.operationClock.sleep(for: .seconds(1))
      return .success(attempt)
    }
    let run = Task {
      try await TypedQuery(script: script).timeout(after: .seconds(1)).run(in: context)
    }
    await clock.sleepers(atLeast: 2)
    await clock.advance(by: .seconds(1))
    do {
      #expect(try await run.value == 1)
    } catch {
      #expect(error is OperationTimeoutError)
    }
    #expect(clock.sleeperCount == 0)
  }

  @Test("A retry that an attempt notes after its timeout is not displayed")
  func lateRetry() async throws {
    let (clock, gate) = (ManualClock(), AsyncGate())
    let (isAsked, mayAnswer) = (Monitor(false), DispatchSemaphore(value: 0))
    let script = Script { attempt, _, _ in
      if attempt == 1 { return .failure(Refused()) }
      await gate.wait()
      return .success(attempt)
    }
    let query = OpenQuery(script: script).retry(
      limit: 1,
      when: { _ in
        isAsked.update { $0 = true }
        mayAnswer.wait()
        return true
      })
    let limited = query.timeout(after: .seconds(5))
    let store = OperationClient(defaults: .testing, clock: clock).store(
      for: limited.modifier(Again()))
    let run = Task { try await store.fetch() }
    await isAsked.wait { $0 }
    // The timeout ends the attempt. The next one waits at the gate.
    await clock.advance(by: .seconds(5))
    await script.contexts.wait(for: 2)
    mayAnswer.signal()
    await clock.settle()
    #expect(store.retry == nil)
    gate.open()
    #expect(try await run.value == 2)
  }

  @Test("An error that is yielded before the timeout arrives, whatever its type")
  func yieldedErrors() async throws {
    let script = Script { attempt, _, yield in
      yield(.failure(Refused(attempt: attempt)))
      return .success(attempt)
    }
    let errors = EventLog<Refused?>()
    let continuation = OperationContinuation<Int, any Error> { result in
      if case .failure(let error) = result { errors.append(error as? Refused) }
    }
    let (open, typed) = (OpenQuery(script: script), TypedQuery(script: script))
    _ = try await open.timeout(after: .seconds(1)).run(in: context, with: continuation)
    _ = try await typed.timeout(after: .seconds(1)).run(in: context, with: continuation)
    #expect(errors.values == [Refused(attempt: 1), Refused(attempt: 2)])
  }

  @Test("What a typed page yields before the timeout arrives, with and without a store")
  func yieldedPageErrors() async throws {
    struct Pages: PaginatedRequest, Hashable {
      let initialPageId = 0

      func pageId(
        after page: PaginatedPage<Int, Int>, using paging: PaginatedPaging<Int, Int>,
        in context: OperationContext
      ) -> Int? { nil }

      func fetchPage(
        using paging: PaginatedPaging<Int, Int>, in context: OperationContext,
        with continuation: OperationContinuation<Int, Refused>
      ) async throws(Refused) -> Int {
        continuation.yield(error: Refused(attempt: 7))
        continuation.yield(8)
        return 9
      }
    }
    let log = EventLog<String>()
    let request = Pages().timeout(after: .seconds(1))
    let yielded = OperationContinuation<Pages.Value, any Error> { result in
      log.append("\(result.map { $0.pages.map(\.value) })")
    }
    _ = try await request.run(in: context, with: yielded)
    let store = OperationClient(defaults: .testing, clock: clock).store(for: request)
    try await store.fetchNextPage { event in
      if case .yielded(let result, _) = event {
        log.append("\(result.map { $0.pages.map(\.value) })")
      }
    }
    _ = try await request.fetchPage(
      using: PaginatedPaging(pageId: 0), in: context,
      with: OperationContinuation { log.append("\($0)") })
    let error = "failure(OperationTests.Refused(attempt: 7))"
    #expect(log.values == [error, "success([8])", error, "success([8])", error, "success(8)"])
  }

  @Test("An attempt that has timed out yields nothing during the next one")
  func yieldOfEarlierAttempt() async throws {
    let (gate, last) = (AsyncGate(), AsyncGate())
    let over = EventLog<Void>()
    let script = Script { attempt, _, yield in
      if attempt == 2 {
        await last.wait()
        return .success(attempt)
      }
      await gate.wait()
      yield(.success(-1))
      over.append(())
      return .success(attempt)
    }
    let store = OperationClient(defaults: .testing, clock: clock).store(
      for: OpenQuery(script: script).timeout(after: .seconds(5)).retry(limit: 1)
        .backoff(.noBackoff))
    let run = Task { try await store.run() }
    await script.contexts.wait(for: 1)
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(5))
    await script.contexts.wait(for: 2)
    gate.open()
    await over.wait(for: 1)
    #expect(store.currentValue == nil)
    last.open()
    #expect(try await run.value == 2)
  }
}
