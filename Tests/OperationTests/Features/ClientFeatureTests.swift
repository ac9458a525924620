import Testing

@testable import Operation

@Suite struct PrefixDefaultsTests {
  private let clock = ManualClock()

  private func query(_ path: OperationPath) -> OpenQuery { OpenQuery(script: Script(), path: path) }

  @Test("The kinds are counted from the first read on, with and without paths, under one name")
  func oneCount() async throws {
    let client = OperationClient(defaults: .testing)
    let query = Query<Int, any Error>(path: ["posts", 1]) { _ in 1 }
    _ = client.statistics
    try await client.fetch(query)
    _ = client.statistics(byPrefixOfLength: 1)
    try await client.fetch(query)
    let (all, byPath) = (client.statistics, client.statistics(byPrefixOfLength: 1))
    #expect(all.total.runs == 2)
    #expect(byPath.byKind == all.byKind)
    #expect(byPath.byPrefix[["posts"]]?.runs == 1)
  }

  @Test("The longest prefix overrides the client's defaults, and a modifier overrides both")
  func longest() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    client.setDefaults(matching: ["users"]) { $0.staleTime = .seconds(60) }
    client.setDefaults(matching: ["users", 1]) { $0.staleTime = .seconds(600) }
    let requests = [query(["posts"]), query(["users", 2]), query(["users", 1, "name"])]
    for request in requests { try await client.fetch(request) }
    let modified = query(["users", 3]).stale(after: .zero)
    try await client.fetch(modified)
    #expect(requests.map { client.store(for: $0).isStale } == [true, false, false])
    #expect(client.store(for: modified).isStale)
    await clock.advance(by: .seconds(61))
    #expect(requests.map { client.store(for: $0).isStale } == [true, true, false])
  }

  @Test("Defaults that are set again begin with those that were set before") func again()
    async throws
  {
    let client = OperationClient(defaults: .testing, clock: clock)
    client.setDefaults(matching: ["a"]) { $0.staleTime = .seconds(60) }
    client.setDefaults(matching: ["a"]) { $0.retryLimit = 0 }
    try await client.fetch(query(["a"]))
    #expect(!client.store(for: query(["a"])).isStale)
  }

  @Test("Defaults that are set by a change that always sets others apply, too") func nested() {
    let client = OperationClient(defaults: .testing, clock: clock)
    client.setDefaults(matching: ["a"]) { defaults in
      defaults.staleTime = .seconds(60)
      client.setDefaults(matching: ["b"]) { $0.retryLimit = 7 }
    }
    let store = client.store(for: query(["a"]))
    store.currentValue = 1
    #expect(!store.isStale)
  }

  @Test("Defaults that are set while others are set for the same path apply, too")
  func meanwhile() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let isSet = Monitor(false)
    client.setDefaults(matching: ["a"]) { defaults in
      defaults.retryLimit = 7
      if isSet.value { return }
      isSet.update { $0 = true }
      client.setDefaults(matching: ["a"]) { $0.staleTime = .seconds(60) }
    }
    let store = client.store(for: query(["a"]))
    store.currentValue = 1
    #expect(!store.isStale && store.context.settings.values.retry.limit == 7)
  }

  @Test("Existing stores keep their rules") func existing() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(for: query(["a"]))
    client.setDefaults(matching: ["a"]) { $0.staleTime = .seconds(60) }
    try await store.fetch()
    #expect(store.isStale)
  }

  @Test("A negative default stale time is reported, and zero is used") func negative() async throws
  {
    let (issues, client) = await issues {
      OperationClient(defaults: OperationDefaults(staleTime: .seconds(-1)), clock: clock)
    }
    #expect(issues.map(\.kind) == [.invalidValue])
    try await client.fetch(query(["a"]))
    #expect(client.store(for: query(["a"])).isStale)
  }

  @Test("An empty prefix is reported, and applies to all stores") func empty() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let (issues, _) = await issues {
      client.setDefaults(matching: []) { $0.staleTime = .seconds(60) }
    }
    #expect(issues.map(\.kind) == [.emptyPath])
    try await client.fetch(query(["a"]))
    #expect(!client.store(for: query(["a"])).isStale)
  }
}

@Suite struct ShutdownTests {
  private let clock = ManualClock()

  @Test("Runs in flight have the time of a shutdown to end, and are cancelled after it")
  func time() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let gate = AsyncGate()
    let quick = client.store(
      for: Query(path: ["quick"]) { _ in
        await gate.wait()
        return 1
      })
    let slow = client.store(
      for: Query(path: ["slow"]) { context in
        try await context.operationClock.sleep(for: .seconds(3_600))
        return 2
      })
    let first = Task { try await quick.fetch() }
    let second = Task { try await slow.fetch() }
    await clock.sleepers(atLeast: 1)
    while quick.leaseCount == 0 { await Task.yield() }
    let shutdown = Task { await client.shutdown(within: .seconds(5)) }
    await clock.sleepers(atLeast: 2)
    gate.open()
    #expect(try await first.value == 1)
    await clock.advance(by: .seconds(5))
    let report = await shutdown.value
    #expect(report.cancelledRuns.map(\.path) == [["slow"]])
    #expect(report.cancelledRuns.map(\.kind) == [.query])
    #expect(report.description == #"shut down; cancelled: query ["slow"] (fetch)"#)
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(quick.currentValue == 1)
  }

  @Test("After a shutdown no run starts, and streams end") func closed() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let script = Script()
    let store = client.store(for: OpenQuery(script: script))
    #expect(try await store.fetch() == 1)
    let values = Task { await store.values.reduce(into: [Int?]()) { $0.append($1) } }
    let events = Task { await client.events.reduce(0) { count, _ in count + 1 } }
    while store.subscriberCount == 0 { await Task.yield() }
    let report = await client.shutdown(within: .zero)
    _ = await values.value
    _ = await events.value
    await #expect(throws: CancellationError.self) { try await store.fetch() }
    let attempts = script.attempts
    let subscription = store.subscribe { _ in }
    #expect(script.attempts == attempts)
    #expect(store.leaseCount == 0)
    #expect(report.cancelledRuns.count <= 1)
    for await _ in store.states {}
    subscription.cancel()
  }

  @Test("A client without runs can be shut down twice") func twice() async {
    let client = OperationClient(defaults: .testing, clock: clock)
    #expect(await client.shutdown(within: .seconds(5)).cancelledRuns.isEmpty)
    #expect(await client.shutdown(within: .zero).cancelledRuns.isEmpty)
  }

  @Test("A request that shuts its client down does not wait for itself") func inside() async throws
  {
    let client = OperationClient(defaults: .testing, clock: clock)
    let report = EventLog<OperationShutdown>()
    let store = client.store(
      for: Query(path: ["last"]) { context in
        if let client = context.operationClient {
          report.append(await client.shutdown(within: .seconds(5)))
        }
        return 1
      })
    await #expect(throws: CancellationError.self) { try await store.fetch() }
    await report.wait(for: 1)
    #expect(report.values.first?.cancelledRuns.map(\.path) == [["last"]])
  }

  @Test("A negative time is reported, and zero is used") func negative() async {
    let client = OperationClient(defaults: .testing, clock: clock)
    let (issues, _) = await issues { await client.shutdown(within: .seconds(-1)) }
    #expect(issues.map(\.kind) == [.invalidValue])
  }

  @Test("A typed request that is called after a shutdown is cancelled at once")
  func typed() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    await client.shutdown(within: .zero)
    let script = Script { _, _, _ in Task.isCancelled ? .failure(Refused()) : .success(1) }
    await #expect(throws: Refused.self) { try await client.fetch(TypedQuery(script: script)) }
  }
}

@Suite struct StatisticsTests {
  private let clock = ManualClock()

  @Test("Hits, joins, runs, failures and retries are counted from the first read on")
  func counts() async throws {
    var defaults = OperationDefaults.testing
    defaults.retryLimit = 1
    defaults.backoff = .noBackoff
    let client = OperationClient(defaults: defaults, clock: clock)
    let query = OpenQuery(script: Script(), path: ["a", 1]).neverStale()
    try await client.fetch(query)
    #expect(client.statistics.total.runs == 0)
    _ = client.statistics(byPrefixOfLength: 1)
    try await client.ensure(query)
    try await client.ensure(query)
    _ = try? await client.fetch(OpenQuery(script: Script(failures: 9), path: ["b"]))
    let gate = AsyncGate()
    let slow = client.store(
      for: Query(path: ["a", 2]) { _ in
        await gate.wait()
        return 1
      })
    let tasks = (0..<3).map { _ in Task { try await slow.fetch() } }
    while slow.leaseCount < 3 { await Task.yield() }
    gate.open()
    for task in tasks { _ = try await task.value }
    let total = client.statistics.total
    #expect((total.hits, total.joins, total.runs) == (2, 2, 2))
    #expect((total.failures, total.retries, total.cancellations) == (1, 1, 0))
    let byPrefix = client.statistics(byPrefixOfLength: 1).byPrefix
    #expect(byPrefix[["a"]]?.runs == 1)
    #expect(byPrefix[["a"]]?.hits == 2)
    #expect(byPrefix[["b"]]?.failures == 1)
    #expect(client.statistics.byKind.keys.map(\.self) == [.query])
  }

  @Test("Stores that are evicted are counted, and those that are cleared are not") func evictions()
    async throws
  {
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(10)))
    _ = client.statistics
    try await client.fetch(OpenQuery(script: Script(), path: ["cleared"]))
    client.clearStore(with: ["cleared"])
    try await client.fetch(OpenQuery(script: Script(), path: ["evicted"]))
    await clock.advance(by: .seconds(30))
    while client.store(with: ["evicted"]) != nil { await Task.yield() }
    #expect(client.statistics.total.evictions == 1)
  }

  @Test("A length below one is reported, and one is used", arguments: [0, -1])
  func badLength(length: Int) async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let (issues, _) = await issues { client.statistics(byPrefixOfLength: length) }
    #expect(issues.map(\.kind) == [.invalidValue])
    try await client.fetch(OpenQuery(script: Script(), path: ["a", 1]))
    #expect(client.statistics(byPrefixOfLength: 1).byPrefix[["a"]]?.runs == 1)
  }

  @Test("The text has the format of Prometheus") func text() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    _ = client.statistics(byPrefixOfLength: 1)
    try await client.fetch(OpenQuery(script: Script(), path: ["a\"b"]))
    let text = client.statistics(byPrefixOfLength: 1).prometheusText()
    let lines = text.split(separator: "\n")
    #expect(lines.contains("# TYPE operation_runs_total counter"))
    #expect(lines.contains("operation_runs_total{kind=\"query\"} 1"))
    #expect(
      lines.contains { $0.hasPrefix("operation_path_runs_total{path=\"") && $0.hasSuffix("} 1") })
    #expect(!text.contains("a\"b"))
  }

  @Test("The samples of a counter are sorted, and without samples there is no counter")
  func sortedSamples() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    #expect(client.statistics.prometheusText() == "")
    try await client.fetch(OpenQuery(script: Script()))
    try await client.store(for: Mutation(path: ["a"]) { (number: Int, _) in number }).mutate(
      with: 1)
    let lines = client.statistics.prometheusText().split(separator: "\n")
    let samples = lines.filter { $0.hasPrefix("operation_runs_total{") }
    #expect(
      samples == [
        #"operation_runs_total{kind="mutation"} 1"#, #"operation_runs_total{kind="query"} 1"#,
      ])
  }

  @Test("The text for Prometheus has a line for each sample, whatever is in the path")
  func lineFeeds() async throws {
    struct Name: Hashable, Sendable, CustomStringConvertible {
      var description: String { "a\r\nb" }
    }
    let client = OperationClient(defaults: .testing, clock: clock)
    _ = client.statistics(byPrefixOfLength: 1)
    try await client.fetch(OpenQuery(script: Script(), path: [Name()]))
    let text = client.statistics(byPrefixOfLength: 1).prometheusText()
    for line in text.unicodeScalars.split(separator: "\n") {
      #expect(["# TYPE operation", "operation_"].contains { String(line).hasPrefix($0) })
    }
  }

  @Test("A caller that joins a run by its task is counted") func joiningTask() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    _ = client.statistics
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    let task = store.runTask()
    let callers = (0..<2).map { _ in Task { try await task.runIfNeeded() } }
    await store.settles { $0.leaseCount == 2 }
    await remote.wait(forCalls: 1)
    remote.answer(1)
    for caller in callers { #expect(try await caller.value == 1) }
    #expect(client.statistics.total.joins == 1 && client.statistics.total.runs == 1)
  }
}

@Suite struct PageEventTests {
  @Test("A run of several pages sends an event for the start and the end of each") func pages()
    async throws
  {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let pages = Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id < 1 ? page.id + 1 : nil }
    ) { paging, _ in paging.pageId }
    let store = client.store(for: pages)
    try await store.fetch()
    try await store.fetchNextPage()
    let log = EventLog<String>()
    struct Logger: OperationLogger {
      let log: EventLog<String>
      func log(_ event: OperationClientEvent) {
        switch event.occurrence {
        case .pageBegan(_, let page): log.append("begin \(page)")
        case .pageEnded(_, let page): log.append("end \(page)")
        default: break
        }
      }
    }
    let logging = client.log(to: Logger(log: log))
    try await store.refetchAllPages()
    #expect(log.values == ["begin 0", "end 0", "begin 1", "end 1"])
    logging.cancel()
  }
}

// In a process of its own: the rule is one of the process.
@Suite struct RequiredClientTests {
  @Test("A read of the shared client is reported if a current one is required")
  func missing() async {
    await #expect(processExitsWith: .success) {
      OperationClient.requiresCurrent = true
      let own = OperationClient(defaults: .testing)
      let (none, _) = await issues {
        OperationClient.withCurrent(own) { #expect(OperationClient.shared === own) }
      }
      #expect(none.isEmpty)
      let (issues, _) = await issues { _ = OperationClient.shared }
      #expect(issues.map(\.kind) == [.missingClient])
    }
  }
}
