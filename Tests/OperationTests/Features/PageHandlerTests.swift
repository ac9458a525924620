import Operation
import Testing

@Suite("handlePages", .timeLimit(.minutes(5))) struct PageHandlerTests {
  private typealias Event = PaginatedPageEvent<Int, String>

  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let log = EventLog<Event>()

  private var words: [String] { log.values.map(Self.words) }

  private static func words(_ event: Event) -> String {
    switch event {
    case .began(let id, _): "begins \(id)"
    case .ended(let id, .success(let value), _): "ends \(id): \(value)"
    case .ended(let id, .failure(let error), _): "fails \(id): \(error)"
    }
  }

  /// Three pages, of which one fails a number of times.
  private func pages(failingAt failing: Int? = nil, times: Int = 1) -> Paginated<Int, String> {
    let failures = Counter()
    return Paginated(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id < 2 ? page.id + 1 : nil }
    ) { paging, _ in
      if paging.pageId == failing, failures.value < times {
        failures.increment()
        throw Refused(attempt: failures.value)
      }
      return "page \(paging.pageId)"
    }
  }

  @Test("Each page of a run of several begins and ends once, in one run") func several()
    async throws
  {
    let store = client.store(for: pages().handlePages { [log] in log.append($0) })
    try await store.fetch()
    try await store.fetchNextPage()
    #expect(words == ["begins 0", "ends 0: page 0", "begins 1", "ends 1: page 1"])
    let runs = log.values.map(\.run.id)
    #expect(runs[0] == runs[1] && runs[2] == runs[3] && runs[0] != runs[2])
    log.clear()
    try await store.fetchAllPages()
    #expect(words == ["begins 0", "ends 0: page 0", "begins 1", "ends 1: page 1"])
    #expect(Set(log.values.map(\.run.id)).count == 1)
  }

  @Test("A page that fails ends with its error, and begins again with the retry")
  func failing() async throws {
    let request = pages(failingAt: 0).handlePages { [log] in log.append($0) }
      .retry(limit: 1).backoff(.noBackoff)
    try await client.fetch(request)
    #expect(
      words == ["begins 0", "fails 0: \(Refused(attempt: 1))", "begins 0", "ends 0: page 0"])
  }

  @Test("The run in the event of a page knows the retries that the defaults of the client allow")
  func defaultRetries() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 1), clock: ManualClock())
    let request = pages(failingAt: 0).handlePages { [log] in log.append($0) }.backoff(.noBackoff)
    try await client.fetch(request)
    #expect(log.values.map(\.run.context.operationMaxRetries) == [1, 1, 1, 1])
    #expect(log.values.map(\.run.context.isLastRetryAttempt) == [false, false, true, true])
  }

  @Test("Handlers below and above other modifiers are called in the order of the modifiers")
  func severalHandlers() async throws {
    let order = EventLog<String>()
    struct TypedPages: PaginatedRequest, Hashable {
      let initialPageId = 5
      func pageId(
        after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
        in context: OperationContext
      ) -> Int? { nil }
      func fetchPage(
        using paging: PaginatedPaging<Int, String>, in context: OperationContext,
        with continuation: OperationContinuation<String, Refused>
      ) async throws(Refused) -> String { "typed" }
    }
    let request = TypedPages()
      .handlePages { order.append("first: \(Self.words($0))") }
      .timeout(after: .seconds(1))
      .handlePages { order.append("second: \(Self.words($0))") }
    try await client.fetch(request)
    #expect(
      order.values == [
        "first: begins 5", "second: begins 5", "first: ends 5: typed", "second: ends 5: typed",
      ])
  }

  @Test("A handler that retains its events is released with the request")
  func released() async throws {
    final class Retained: Sendable {
      let events = EventLog<Event>()
    }
    weak var weakRetained: Retained?
    do {
      let retained = Retained()
      weakRetained = retained
      let request = pages().handlePages { retained.events.append($0) }
      try await client.fetch(request)
      try await client.store(for: request).fetchAllPages()
      #expect(retained.events.count == 4)
      client.clearStores()
    }
    while weakRetained != nil { await Task.yield() }
  }

  @Test("A run without a store has the events of its page as well")
  func withoutStore() async throws {
    try await pages().handlePages { [log] in log.append($0) }.run()
    #expect(words == ["begins 0", "ends 0: page 0"])
    #expect(log.values[0].run.id == log.values[1].run.id)
    #expect(log.values[0].description == "began(0, OperationRun(fetch))")
    #expect(
      String(reflecting: log.values[1])
        == "ended(0, success(\"page 0\"), OperationRun(fetch))")
  }

  @Test("Without a client, a request gets the page of another one, whose handler is called")
  func withoutClient() async throws {
    let pages = pages().handlePages { [log] in log.append($0) }
    let reader = Query(path: ["reader"]) { try await $0.ensure(pages).map(\.value) }
    #expect(try await reader.run() == ["page 0"])
    #expect(try await OperationContext().ensure(pages).map(\.value) == ["page 0"])
    #expect(words == ["begins 0", "ends 0: page 0", "begins 0", "ends 0: page 0"])
    #expect(Set(log.values.map(\.run.id)).count == 2)
  }
}
