import Testing

@testable import Operation

/// A mutation that fails for an empty text, and otherwise yields 1 and returns the length.
private struct TextLength: MutationRequest {
  let calls: EventLog<String>

  var path: OperationPath { ["measure"] }

  func mutate(
    with text: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    calls.append(text)
    continuation.yield(1)
    if text.isEmpty { throw Refused() }
    return text.count
  }
}

/// Pages in both directions from page 7, of which page 8 fails.
private struct TypedPages: PaginatedRequest {
  let calls: EventLog<Int>

  var path: OperationPath { ["numbers"] }
  var initialPageId: Int { 7 }

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { page.id + 1 }

  func pageId(
    before page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { page.id - 1 }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext,
    with continuation: OperationContinuation<String, Refused>
  ) async throws(Refused) -> String {
    calls.append(paging.pageId)
    continuation.yield("part of \(paging.pageId)")
    if paging.pageId == 8 { throw Refused(attempt: 8) }
    return "page \(paging.pageId)"
  }
}

/// Calls of `fetch`, `fetchPage` and `mutate` themselves, and not of `run`.
@Suite("Direct calls of modified requests", .timeLimit(.minutes(5)))
struct DirectCallTests {
  private let yields = EventLog<String>()
  private let context = OperationContext()

  private func continuation<Value, Failure>() -> OperationContinuation<Value, Failure> {
    OperationContinuation { [yields] in yields.append((try? $0.get()).map { "\($0)" } ?? "failure")
    }
  }

  @Test("A mapped mutation maps the yields and the value, and throws the failure")
  func mappedMutation() async throws {
    let mapped = TextLength(calls: EventLog()).map { "<\($0)>" }
    #expect(try await mapped.mutate(with: "abc", in: context, with: continuation()) == "<3>")
    await #expect(throws: Refused()) {
      try await mapped.mutate(with: "", in: context, with: continuation())
    }
    #expect(yields.values == ["<1>", "<1>"])
  }

  @Test("A modifier does not apply to one call of a mutation")
  func modifiedMutation() async throws {
    let calls = EventLog<String>()
    let modified = TextLength(calls: calls).retry(limit: 2).backoff(.noBackoff)
    #expect(try await modified.mutate(with: "ab", in: context, with: continuation()) == 2)
    await #expect(throws: Refused()) {
      try await modified.mutate(with: "", in: context, with: continuation())
    }
    #expect(calls.values == ["ab", ""])
  }

  @Test("A mapped query maps the yields and the value of a fetch, and throws the failure")
  func mappedQuery() async throws {
    let script = Script { attempt, _, yield in
      yield(.success(5))
      return attempt == 1 ? .success(1) : .failure(Refused(attempt: attempt))
    }
    let mapped = TypedQuery(script: script).map { "<\($0)>" }
    #expect(try await mapped.fetch(in: context, with: continuation()) == "<1>")
    await #expect(throws: Refused(attempt: 2)) {
      try await mapped.fetch(in: context, with: continuation())
    }
    #expect(yields.values == ["<5>", "<5>"])
  }

  @Test("A modifier does not apply to one page, whose identifiers are those of the request")
  func modifiedPages() async throws {
    let calls = EventLog<Int>()
    try await checkPages(of: TypedPages(calls: calls).retry(limit: 2).backoff(.noBackoff))
    // With any error as its failure, because of the timeout.
    try await checkPages(
      of: TypedPages(calls: calls).retry(limit: 2).backoff(.noBackoff).timeout(after: .seconds(1)))
    #expect(calls.values == [7, 8, 7, 8])
    #expect(yields.values == ["part of 7", "part of 8", "part of 7", "part of 8"])
  }

  private func checkPages<Request: PaginatedRequest>(
    of request: Request
  ) async throws where Request.PageID == Int, Request.PageValue == String {
    #expect(request.initialPageId == 7)
    let page = PaginatedPage(id: 7, value: "page 7")
    let paging = PaginatedPaging(pageId: 7, pages: [page], kind: .nextPage)
    #expect(request.pageId(after: page, using: paging, in: context) == 8)
    #expect(request.pageId(before: page, using: paging, in: context) == 6)
    #expect(
      try await request.fetchPage(using: paging, in: context, with: continuation()) == "page 7")
    let next = PaginatedPaging(pageId: 8, pages: [page], kind: .nextPage)
    await #expect(throws: Refused(attempt: 8)) {
      try await request.fetchPage(using: next, in: context, with: continuation())
    }
  }

  @Test("A run without a store reads the stores of its client, and depends on none")
  func readsStores() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let source = OpenQuery(script: Script()).neverStale()
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) }
    let present = Query<Int, any Error>(path: ["present"]) { $0.value(of: source) ?? 0 }
    var context = OperationContext()
    context.operationClient = client
    #expect(try await reader.run(in: context) == 1)
    client.invalidate(source)
    #expect(try await present.run(in: context) == 1)
    #expect(client.hub.hasNoDependencies)
  }

  @Test("A request depends on what one without a store has read that it called with its context")
  func nestedRead() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let source = OpenQuery(script: Script(), path: ["source"]).neverStale()
    let ensuring = Query<Int, any Error>(path: ["ensuring"]) { try await $0.ensure(source) }
    let reading = Query<Int, any Error>(path: ["reading"]) { $0.value(of: source) ?? 0 }
    let outer: [Query<Int, any Error>] = [
      Query(path: ["outer", 0]) { try await ensuring.timeout(after: .seconds(1)).run(in: $0) },
      Query(path: ["outer", 1]) { try await reading.deduplicated().run(in: $0) },
      Query(path: ["outer", 2]) { try await source.map { $0 }.run(in: $0) },
      Query(path: ["outer", 3]) { context in
        try await Query<Int, any Error>(path: ["inner"]) { try await ensuring.run(in: $0) }
          .run(in: context)
      },
    ]
    for query in outer.map({ $0.neverStale() }) {
      try await client.fetch(query)
      #expect(!client.store(for: query).isStale)
    }
    client.invalidate(source)
    #expect(outer.map { client.store(for: $0).isStale } == [true, true, true, true])
  }

  @Test("A restarted request depends on what one without a store has read that it called")
  func nestedReadOfRestarted() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let source = OpenQuery(script: Script(), path: ["source"]).neverStale()
    let inner = Query<Int, any Error>(path: ["inner"]) { try await $0.ensure(source) }
    let (begun, gate) = (EventLog<Void>(), AsyncGate())
    let outer = Query<Int, any Error>(path: ["outer"]) { context in
      begun.append(())
      await gate.wait()
      return try await inner.run(in: context)
    }.neverStale()
    let first = Task { try await client.fetch(outer) }
    await begun.wait(for: 1)
    let second = Task { try await client.fetch(outer, restarting: true) }
    await begun.wait(for: 2)
    gate.open()
    _ = try await (first.value, second.value)
    #expect(!client.store(for: outer).isStale)
    client.invalidate(source)
    #expect(client.store(for: outer).isStale)
  }

  @Test("A restarted request that calls a map without a store does not restart the map's query")
  func mapInRestarted() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let (sourceGate, replaced, restarted) = (AsyncGate(), AsyncGate(), AsyncGate())
    let script = Script { attempt, _, _ in
      await sourceGate.wait()
      return .success(attempt)
    }
    let source = OpenQuery(script: script, path: ["source"]).neverStale()
    let begun = EventLog<Void>()
    let outer = Query<Int, any Error>(path: ["outer"]) { context in
      begun.append(())
      await (begun.count == 1 ? replaced : restarted).wait()
      return try await source.map { $0 }.run(in: context)
    }
    let other = Task { try await client.fetch(source) }
    await script.contexts.wait(for: 1)
    let first = Task { try await client.fetch(outer) }
    await begun.wait(for: 1)
    let second = Task { try await client.fetch(outer, restarting: true) }
    await begun.wait(for: 2)
    let joins = client.statistics.total.joins
    restarted.open()
    while client.statistics.total.joins == joins, script.attempts == 1 { await Task.yield() }
    sourceGate.open()
    #expect(try await other.value == 1)
    _ = try await (first.value, second.value)
    #expect(script.attempts == 1)
    replaced.open()
  }

  @Test("Runs of stores that call a deduplicated request at once all depend on what it reads")
  func sharedRead() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let source = OpenQuery(script: Script(), path: ["source"]).neverStale()
    try await client.fetch(source)
    let (begun, gate) = (EventLog<Void>(), AsyncGate())
    let shared = Query<Int, any Error>(path: ["shared"]) { context in
      begun.append(())
      await gate.wait()
      return context.value(of: source) ?? 0
    }.deduplicated()
    let outer = (0..<2).map { id in
      Query<Int, any Error>(path: ["outer", id]) { try await shared.run(in: $0) }.neverStale()
    }
    let runs = outer.map { query in Task { try await client.fetch(query) } }
    await begun.wait(for: 2)
    gate.open()
    for run in runs { #expect(try await run.value == 1) }
    client.invalidate(source)
    #expect(outer.map { client.store(for: $0).isStale } == [true, true])
  }
}
