import Operation
import Testing

private struct Adding: MutationRequest {
  let path: OperationPath = ["adding"]
  var failures = 0

  func mutate(
    with arguments: [Int], in context: OperationContext,
    with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    continuation.yield(0)
    if context.operationRetryIndex < failures { throw Refused() }
    return arguments.reduce(0, +)
  }
}

private struct Letters: PaginatedRequest {
  let path: OperationPath = ["letters"]
  let initialPageId = 0

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { page.id + 1 }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext,
    with continuation: OperationContinuation<String, Refused>
  ) async throws(Refused) -> String { "abc"[paging.pageId] }
}

extension String {
  fileprivate subscript(position: Int) -> String { String(dropFirst(position).prefix(1)) }
}

@Suite("Calls and detached stores", .timeLimit(.minutes(5))) struct CallTests {
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: ManualClock())

  @Test("A task retries the latest call of a store, and does not start by itself")
  func retryTask() async throws {
    let store = client.store(for: Adding())
    #expect(throws: MutationError.noArguments) { try store.retryLatestTask() }
    try await store.mutate(with: [1])
    try await store.mutate(with: [1, 2])
    let task = try store.retryLatestTask(using: .number(7))
    #expect(!task.hasStarted && store.history.count == 3 && task.context.fixtureNumber == 7)
    #expect(try await task.runIfNeeded() == 3)
    #expect(store.history.map(\.arguments) == [[1], [1, 2], [1, 2]])
  }

  @Test("The events of a call have its arguments, also those of a task or a repeated call")
  func arguments() async throws {
    let handled = EventLog<[Int]?>()
    let request = Adding(failures: 1)
      .handleEvents { handled.append($0.run?.arguments(as: [Int].self)) }
      .retry(limit: 1).backoff(.noBackoff)
    let store = client.store(for: request)
    let log = EventLog<[Int]?>()
    let subscription = store.subscribe { event in
      if let run = event.run { log.append(run.arguments(as: [Int].self)) }
    }
    try await store.mutate(with: [1])
    // The start, a yield of each attempt, and the end.
    #expect(log.values == Array(repeating: [1], count: 4))
    #expect(handled.values == Array(repeating: [1], count: 6))
    log.clear()
    try await store.mutateTask(with: [2]).runIfNeeded()
    try await store.retryLatest()
    try await store.run()
    #expect(log.values == Array(repeating: [2], count: 12))
    subscription.cancel()
  }

  @Test("A run has no arguments of another type, and a run that is no call has none")
  func noArguments() async throws {
    let log = EventLog<[Int]?>()
    _ = try await client.store(for: Adding()).mutate(with: [1]) { event in
      if let run = event.run { #expect(run.arguments(as: String.self) == nil) }
    }
    _ = try await client.store(for: TypedQuery(script: Script())).run { event in
      if let run = event.run { log.append(run.arguments(as: [Int].self)) }
    }
    #expect(log.values == [nil, nil])
  }

  @Test("A detached store of pages begins with pages, and fetches further ones")
  func pages() async throws {
    let plain = OperationStore.detached(paginated: Letters())
    #expect(try await plain.run().pages.map(\.value) == ["a"])
    let store = OperationStore.detached(
      paginated: Letters().retry(limit: 1), initialValue: [PaginatedPage(id: 1, value: "b")],
      initialContext: .number(3))
    #expect(store.context.fixtureNumber == 3 && store.nextPageId == 2)
    #expect(try await store.fetchNextPage()?.value == "c")
    #expect(store.currentValue.ids == [1, 2])
  }

  @Test("A detached store of a mutation begins with a value, also with modifiers")
  func mutations() async throws {
    let store = OperationStore.detached(
      mutation: Adding(failures: 1).retry(limit: 1).backoff(.noBackoff), initialValue: 9)
    #expect(store.currentValue == 9)
    #expect(try await store.mutate(with: [2, 3]) == 5)
    let closure = Mutation<Int, Int>(path: ["closure"]) { number, _ in number }
    #expect(try await OperationStore.detached(mutation: closure).mutate(with: 1) == 1)
  }
}
