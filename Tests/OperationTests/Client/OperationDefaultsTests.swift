import Operation
import Testing

@Suite("Defaults of a client") struct OperationDefaultsTests {
  private let remote = Remote<Int>()
  private let clock = ManualClock()

  @Test("The standard defaults retry three times, after one, two and four seconds at most")
  func standard() async throws {
    let store = OperationClient(clock: clock).store(for: remote.query())
    let task = Task { try await store.run() }
    for attempt in 0..<4 {
      await remote.wait(forCalls: attempt + 1)
      #expect(remote.context(of: attempt).operationRetryIndex == attempt)
      #expect(remote.context(of: attempt).operationMaxRetries == 3)
      #expect(remote.context(of: attempt).isLastRetryAttempt == (attempt == 3))
      remote.fail(Failed(code: attempt), call: attempt)
      guard attempt < 3 else { break }
      await clock.sleepers(atLeast: 1)
      #expect(store.error == nil)
      await clock.advance(by: .seconds(1 << attempt))
    }
    await #expect(throws: Failed(code: 3)) { try await task.value }
    #expect(store.errorUpdateCount == 1)
  }

  @Test("The defaults for tests do not retry, and are otherwise the same")
  func testing() async throws {
    #expect(OperationDefaults.testing.retryLimit == 0)
    #expect(OperationDefaults.testing.isDeduplicated)
    #expect(OperationDefaults.testing.runsAutomatically)
    let store = OperationClient(defaults: .testing, clock: clock).store(for: remote.query())
    let task = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.fail(Failed(code: 1))
    await #expect(throws: Failed(code: 1)) { try await task.value }
    #expect(remote.callCount == 1)
  }

  @Test("A modifier of the request replaces the default, and does not multiply it")
  func modifier() async throws {
    let store = OperationClient(clock: clock)
      .store(for: remote.query().backoff(.noBackoff).retry(limit: 1))
    let task = Task { try await store.run() }
    for attempt in 0..<2 {
      await remote.wait(forCalls: attempt + 1)
      remote.fail(Failed(code: attempt), call: attempt)
    }
    await #expect(throws: Failed(code: 1)) { try await task.value }
    #expect(remote.callCount == 2)
  }

  @Test("Custom defaults set the retries, the deduplication and the automatic runs")
  func own() async {
    let defaults = OperationDefaults(
      retryLimit: 0, isDeduplicated: false, runsAutomatically: false,
      setup: { context, kind in context.operationMark = kind.rawValue })
    let store = OperationClient(defaults: defaults).store(for: remote.query())
    #expect(store.context.operationMark == "query")
    let subscription = store.subscribe { _ in }
    #expect(!store.isLoading)
    let tasks = (0..<2).map { _ in Task { try await store.run() } }
    await remote.wait(forCalls: 2)
    #expect(store.activeTasks.count == 2)
    for task in tasks { task.cancel() }
    subscription.cancel()
  }

  @Test("A negative limit is reported, and taken as zero")
  func negative() {
    let issues = Recorder<OperationIssue>()
    OperationIssue.withHandler({ issues.append($0) }) {
      _ = OperationClient(defaults: OperationDefaults(retryLimit: -1))
    }
    #expect(!issues.all.isEmpty)
    #expect(issues.all.allSatisfy { $0.kind == .invalidValue && $0.message.contains("-1") })
  }
}

extension OperationContext {
  fileprivate var operationMark: String {
    get { self[MarkKey.self] }
    set { self[MarkKey.self] = newValue }
  }

  private enum MarkKey: Key { static var defaultValue: String { "" } }
}
