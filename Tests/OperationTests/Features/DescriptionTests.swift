import Operation
import Testing

/// A value of a private type, whose name in Swift contains an address.
private struct Secret: Hashable, Sendable, Error { var id = 1 }

private struct NumberPages: PaginatedRequest {
  let path: OperationPath = ["numbers"]
  let initialPageId = 0

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { page.id + 1 }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext,
    with continuation: OperationContinuation<String, any Error>
  ) async throws -> String { "page \(paging.pageId)" }
}

private struct Doubling: MutationRequest {
  let path: OperationPath = ["double"]

  func mutate(
    with arguments: Int, in context: OperationContext,
    with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int { arguments * 2 }
}

@Suite("Descriptions", .timeLimit(.minutes(5))) struct DescriptionTests {
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: ManualClock())

  /// Returns the description and the debug description, which must be equal.
  private func text(_ value: some Any) -> String {
    let text = String(describing: value)
    #expect(String(reflecting: value) == text)
    return text
  }

  @Test("The description of a path is a literal, also with a value of a private type")
  func paths() {
    let path = OperationPath(["a", 1, Secret()])
    #expect(text(path) == #"["a", 1, OperationTests.Secret(id: 1)]"#)
    #expect(path.map(text) == [#""a""#, "1", "OperationTests.Secret(id: 1)"])
  }

  @Test("The elements of a set and of a dictionary are in the same order in every process")
  func unorderedValues() {
    let numbers = (10..<40).shuffled()
    let sorted = (10..<40).map(String.init)
    let path = OperationPath([Set(numbers)])
    #expect(text(path) == "[Set([\(sorted.joined(separator: ", "))])]")
    let pairs = Dictionary(uniqueKeysWithValues: numbers.map { ("\($0)", $0) })
    let state = QueryState<[String: Int], any Error>(initialValue: pairs)
    let elements = sorted.map { "\"\($0)\": \($0)" }.joined(separator: ", ")
    #expect(text(state) == "QueryState(idle, value: [\(elements)])")
    #expect(text(OperationPath([[String: Int]()])) == "[[:]]")
    #expect(text(OperationPath([Set<Int>()])) == "[Set([])]")
    #expect(text(OperationPath([Optional(Set([1]))])) == "[Optional(Set([1]))]")
  }

  @Test("A long value is cut in a description")
  func longValues() {
    let state = QueryState<[Int], any Error>(initialValue: Array(0..<100_000))
    #expect(text(state).hasPrefix("QueryState(idle, value: [0, 1, 2, 3, "))
    #expect(text(state).hasSuffix("…)") && text(state).count < 1_100)
    // Characters of two bytes.
    let limit = String(repeating: "é", count: 998)
    #expect(text(OperationPath([limit])) == #"["\#(limit)"]"#)
    #expect(text(OperationPath([limit + "x"])) == #"["\#(limit)x…]"#)
  }

  @Test("Reports and logs name the type of a request without its modifiers")
  func requestTypes() async throws {
    let plain = NumberPages()
    let request = plain.stale(after: .seconds(1)).retry(limit: 1).stale(after: .seconds(2))
    let lines = EventLog<String>()
    let (reports, logged) = await issues {
      _ = request.delay(for: .seconds(-1)).maxPages(0)
      _ = request.rerun(every: .zero)
      return request.logDuration { lines.append($0) }
    }
    #expect(reports.map(\.message).allSatisfy { $0.contains("of NumberPages ") })
    #expect(reports.count == 3)
    _ = try await client.fetch(logged)
    #expect(lines.values.allSatisfy { $0.hasPrefix("NumberPages") })
    #expect(lines.count > 0)
  }

  @Test("A status is its name, or its result")
  func statuses() {
    typealias Status = OperationStatus<String, Secret>
    #expect(text(Status.idle) == "idle")
    #expect(text(Status.loading) == "loading")
    #expect(text(Status.paused) == "paused")
    #expect(text(Status.result(.success("x"))) == #"success("x")"#)
    #expect(text(Status.result(.failure(Secret()))) == "failure(OperationTests.Secret(id: 1))")
  }

  @Test("The state of a query has its status, its value and its error")
  func queries() async throws {
    let script = Script { attempt, _, _ in attempt == 1 ? .success(7) : .failure(Refused()) }
    let store = client.store(for: TypedQuery(script: script))
    #expect(text(store.state) == "QueryState(idle)")
    try await store.run()
    #expect(text(store.state) == "QueryState(success, value: 7)")
    _ = try? await store.run()
    let failed = "QueryState(failure, value: 7, error: OperationTests.Refused(attempt: 0))"
    #expect(text(store.state) == failed)
    #expect(text(OperationEvent.stateChanged(store.state)) == "stateChanged(\(failed))")
    let shown = DefaultState(QueryState<Int, any Error>(), default: 3)
    #expect(text(shown) == "DefaultState(QueryState(idle), default: 3)")
    let part = SelectedState(QueryState<Int, any Error>(initialValue: 3)) { $0 == nil }
    #expect(text(part) == "SelectedState(QueryState(idle, value: 3), selected: false)")
  }

  @Test("A run has its cause and its path, and its events have the run and the result")
  func events() async throws {
    // The script of a request retains the client.
    defer { client.clearStores(matching: []) }
    let log = EventLog<String>()
    let script = Script { _, _, yield in
      yield(.success(1))
      return .failure(Refused())
    }
    let store = client.store(for: TypedQuery(script: script))
    _ = try? await store.run { event in if event.run != nil { log.append(text(event)) } }
    let run = #"OperationRun(fetch, ["typed"])"#
    #expect(
      log.values == [
        "runStarted(\(run))", "yielded(success(1), \(run))",
        "runEnded(failure(OperationTests.Refused(attempt: 0)), \(run))",
      ])
    let retried = EventLog<String>()
    let flaky = Script { attempt, context, _ in
      retried.append(context.operationRun.map { text($0) } ?? "none")
      return attempt == 1 ? .failure(Refused()) : .success(attempt)
    }
    let request = TypedQuery(script: flaky, path: ["flaky"]).retry(limit: 1).backoff(.noBackoff)
    _ = try await client.store(for: request).run()
    #expect(
      retried.values == [
        #"OperationRun(fetch, ["flaky"])"#, #"OperationRun(fetch, ["flaky"], retry: 1)"#,
      ])
  }

  @Test("A task has its progress, its cause, its path and its name")
  func tasks() async throws {
    let store = client.store(for: TypedQuery(script: Script()))
    var task = store.runTask()
    #expect(text(task) == #"OperationTask(scheduled, fetch, ["typed"])"#)
    task.configuration.name = "refresh"
    try await task.runIfNeeded()
    #expect(text(task) == #"OperationTask(finished, fetch, ["typed"], name: "refresh")"#)
    let gate = AsyncGate()
    let running = client.store(
      for: OpenQuery(
        script: Script { attempt, _, _ in
          await gate.wait()
          return .success(attempt)
        })
    ).runTask()
    let run = Task { try await running.runIfNeeded() }
    while !running.hasStarted { await Task.yield() }
    #expect(text(running) == #"OperationTask(running, fetch, ["open"])"#)
    gate.open()
    _ = try await run.value
    let cancelled = store.runTask()
    cancelled.cancel()
    #expect(text(cancelled) == #"OperationTask(cancelled, fetch, ["typed"])"#)
    #expect(text(task.id).hasPrefix("#"))
    #expect(
      text(OperationTaskConfiguration(name: "n", priority: .high))
        == #"OperationTaskConfiguration(name: "n", priority: 25, context: OperationContext(keys: 0))"#
    )
    #expect(text(OperationContext.number(3)) == "OperationContext(keys: 1)")
  }

  @Test("Pages have their identifiers and values, and their state has the identifiers")
  func pages() async throws {
    let page = PaginatedPage(id: 0, value: Secret())
    #expect(text(page) == "PaginatedPage(id: 0, value: OperationTests.Secret(id: 1))")
    let pages: PaginatedPages<Int, Secret> = [page]
    #expect(text(pages) == "[PaginatedPage(id: 0, value: OperationTests.Secret(id: 1))]")
    let store = client.store(for: NumberPages())
    #expect(text(store.state) == "PaginatedState(idle, pages: [])")
    let result = try await store.run()
    #expect(
      text(result)
        == #"PaginatedResult(initialPage, pages: [PaginatedPage(id: 0, value: "page 0")])"#)
    try await store.fetchNextPage()
    #expect(text(store.state) == "PaginatedState(success, pages: [0, 1], next: 2)")
    let both = Paginated<Int, Int>(
      path: ["both"], initialPageId: 5, nextPageId: { page, _ in page.id + 1 },
      previousPageId: { page, _ in page.id - 1 }
    ) { _, _ in 0 }
    let other = client.store(for: both)
    try await other.run()
    #expect(text(other.state) == "PaginatedState(success, pages: [5], previous: 4, next: 6)")
    #expect(
      text(PaginatedPaging(pageId: 6, pages: other.currentValue, kind: .nextPage))
        == "PaginatedPaging(pageId: 6, nextPage, pages: [5])")
  }

  @Test("The state of a mutation has its value and the length of its history")
  func mutations() async throws {
    let store = client.store(for: Doubling())
    #expect(text(store.state) == "MutationState(idle, history: 0)")
    try await store.mutate(with: 2)
    #expect(text(store.state) == "MutationState(success, value: 4, history: 1)")
    #expect(text(store.history) == "[Attempt(success(4), arguments: 2)]")
  }

  @Test("A subscription has its type, and a retry its failure")
  func others() async throws {
    #expect(text(OperationSubscription.empty) == "OperationSubscription.empty")
    #expect(text(OperationSubscription {}) == "OperationSubscription")
    let clock = ManualClock()
    let store = OperationClient(defaults: .testing, clock: clock).store(
      for: TypedQuery(script: Script(failures: 1)).retry(limit: 1).backoff(.constant(.seconds(5))))
    let run = Task { try await store.run() }
    await clock.sleepers(atLeast: 1)
    let failure = "OperationTests.Refused(attempt: 1)"
    let retry = try #require(store.state.retry)
    #expect(text(retry) == "OperationRetry(failed attempts: 1, last failure: \(failure))")
    await clock.advance(by: .seconds(5))
    _ = try await run.value
  }
}
