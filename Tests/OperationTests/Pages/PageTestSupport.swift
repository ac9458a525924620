import Operation
import Synchronization

/// A server of numbered pages whose answers wait while a test has closed its gate.
///
/// It ignores cancellation: an answer that waits is returned when the test permits it.
final class PageServer: Sendable {
  struct Failed: Error, Equatable {
    var id = 0
  }

  /// A request that waits for its answer.
  struct Pending: Sendable, Hashable {
    let kind: PaginatedRunKind
    let id: Int
  }

  private struct Answers: Sendable {
    var range: ClosedRange<Int>
    var version = 0
    var isClosed = false
    var requests: [Pending] = []
    var failures: [Int: Int] = [:]
    var waiting: [(pending: Pending, waiter: CheckedContinuation<Void, Never>)] = []
  }

  private let answers: Mutex<Answers>

  init(_ range: ClosedRange<Int> = -100...100) {
    answers = Mutex(Answers(range: range))
  }

  /// The pages of the server.
  var range: ClosedRange<Int> {
    get { answers.withLock { $0.range } }
    set { answers.withLock { $0.range = newValue } }
  }

  /// The version in every page from now on.
  var version: Int {
    get { answers.withLock { $0.version } }
    set { answers.withLock { $0.version = newValue } }
  }

  /// All pages that were requested, in order.
  var requests: [Int] { answers.withLock { $0.requests.map(\.id) } }
  var kinds: [PaginatedRunKind] { answers.withLock { $0.requests.map(\.kind) } }
  /// The requests that wait for an answer, in order.
  var pending: [Pending] { answers.withLock { $0.waiting.map(\.pending) } }

  /// Answers nothing by itself from now on.
  func close() { answers.withLock { $0.isClosed = true } }

  /// Answers everything from now on.
  func open() {
    let waiting = answers.withLock { answers in
      answers.isClosed = false
      defer { answers.waiting = [] }
      return answers.waiting
    }
    for entry in waiting { entry.waiter.resume() }
  }

  /// Answers one request that waits.
  func answer(_ pending: Pending) {
    let entry = answers.withLock { answers in
      answers.waiting.firstIndex { $0.pending == pending }.map { answers.waiting.remove(at: $0) }
    }
    entry?.waiter.resume()
  }

  /// Answers the pending request for a page, of any run.
  func answer(_ id: Int) {
    if let entry = pending.first(where: { $0.id == id }) { answer(entry) }
  }

  /// Fails the next requests for a page.
  func fail(_ id: Int, times: Int = 1) { answers.withLock { $0.failures[id] = times } }

  /// Waits until this number of requests is pending.
  func pending(_ count: Int) async {
    await Settled.when { self.pending.count == count }
  }

  func page(_ paging: PaginatedPaging<Int, String>) async throws(Failed) -> String {
    let pending = Pending(kind: paging.kind, id: paging.pageId)
    await withCheckedContinuation { waiter in
      let isClosed = answers.withLock { answers in
        answers.requests.append(pending)
        if answers.isClosed { answers.waiting.append((pending, waiter)) }
        return answers.isClosed
      }
      if !isClosed { waiter.resume() }
    }
    let (fails, version) = answers.withLock { answers in
      let left = answers.failures[pending.id, default: 0]
      answers.failures[pending.id] = max(left - 1, 0)
      return (left > 0, answers.version)
    }
    if fails { throw Failed(id: pending.id) }
    return "\(pending.id)v\(version)"
  }
}

/// The pages of a server, with a failure that is any error.
struct Numbers: PaginatedRequest {
  let server: PageServer
  var initialPageId = 0
  var path: OperationPath { ["numbers"] }

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { server.range.contains(page.id + 1) ? page.id + 1 : nil }

  func pageId(
    before page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { server.range.contains(page.id - 1) ? page.id - 1 : nil }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext,
    with continuation: OperationContinuation<String, any Error>
  ) async throws -> String { try await server.page(paging) }
}

/// The pages of a server, with a typed failure.
struct TypedNumbers: PaginatedRequest {
  let server: PageServer
  let initialPageId = 0
  var path: OperationPath { ["typed-numbers"] }

  func pageId(
    after page: PaginatedPage<Int, String>, using paging: PaginatedPaging<Int, String>,
    in context: OperationContext
  ) -> Int? { server.range.contains(page.id + 1) ? page.id + 1 : nil }

  func fetchPage(
    using paging: PaginatedPaging<Int, String>, in context: OperationContext,
    with continuation: OperationContinuation<String, PageServer.Failed>
  ) async throws(PageServer.Failed) -> String { try await server.page(paging) }
}

typealias NumberState = PaginatedState<Int, String, any Error>
typealias NumberStore = OperationStore<NumberState>

extension PaginatedPages<Int, String> {
  /// Pages that a caller writes.
  static func written(_ ids: some Sequence<Int>) -> Self {
    Self(ids.map { PaginatedPage(id: $0, value: "\($0)w") })
  }
}

extension OperationDefaults {
  /// Defaults without retries and without automatic runs.
  static func quiet(isDeduplicated: Bool = true) -> OperationDefaults {
    OperationDefaults(
      retryLimit: 0, isDeduplicated: isDeduplicated, runsAutomatically: false)
  }
}

/// Returns a store of a server's pages that has fetched the pages of a range.
func numbers(
  _ server: PageServer, there: ClosedRange<Int>? = nil, isDeduplicated: Bool = true
) async throws -> NumberStore {
  let store = OperationClient(defaults: .quiet(isDeduplicated: isDeduplicated))
    .store(for: Numbers(server: server, initialPageId: there?.lowerBound ?? 0))
  for _ in 0..<(there?.count ?? 0) { try await store.fetchNextPage() }
  return store
}

/// Waits for a condition that other tasks make true.
enum Settled {
  static func when(_ condition: () -> Bool) async {
    while !condition() { await Task.yield() }
  }
}

/// The events that a subscriber has received, in order.
final class ReceivedEvents<State: OperationState>: Sendable {
  private let storage = Mutex<[OperationEvent<State>]>([])

  var events: [OperationEvent<State>] { storage.withLock { $0 } }

  var handler: @Sendable (OperationEvent<State>) -> Void {
    { event in self.storage.withLock { $0.append(event) } }
  }

  /// Describes the events, and the states with the given closure.
  func lines(_ line: (State) -> String) -> [String] {
    events.map { event in
      switch event {
      case .stateChanged(let state): line(state)
      case .runStarted: "started"
      case .yielded: "yielded"
      case .runEnded(.success, _): "ended"
      case .runEnded(.failure(let error), _): "failed: \(error)"
      }
    }
  }
}

extension PaginatedPages<Int, String> {
  /// The values of the pages, in order.
  var elementValues: [String] { (0..<count).map { self[$0].value } }
}

/// The issues that were reported in a scope.
final class ReceivedIssues: Sendable {
  private let storage = Mutex<[OperationIssue]>([])

  var kinds: [OperationIssue.Kind] { storage.withLock { $0.map(\.kind) } }
  var messages: [String] { storage.withLock { $0.map(\.message) } }

  var handler: OperationIssue.Handler {
    { issue in self.storage.withLock { $0.append(issue) } }
  }
}
