import FoundationEssentials
import Operation
import Synchronization
import Testing

@Suite("A store") struct StoreBasicsTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_000))
  private let remote = Remote<Int>()

  private func makeStore(
    _ defaults: OperationDefaults = .testing
  ) -> OperationStore<QueryState<Int, any Error>> {
    OperationClient(defaults: defaults, clock: clock).store(for: remote.query())
  }

  @Test("A run returns its value and stores it in the state, with the date of the clock")
  func run() async throws {
    let store = makeStore()
    #expect(store.status.isIdle)
    #expect(store.currentValue == nil)
    async let value = store.run()
    await remote.wait(forCalls: 1)
    #expect(store.status.isLoading)
    #expect(store.isLoading)
    #expect(store.activeTasks.count == 1)
    await clock.advance(by: .seconds(5))
    remote.answer(7)
    #expect(try await value == 7)
    #expect(store.currentValue == 7)
    #expect(store.status.isSuccess)
    #expect(store.valueUpdateCount == 1)
    #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 1_005))
    #expect(store.activeTasks.isEmpty)
  }

  @Test("A failure keeps the value, and a value removes the failure")
  func failure() async throws {
    let store = makeStore()
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.fail(Failed(code: 3))
    await #expect(throws: Failed(code: 3)) { try await run.value }
    #expect(store.currentValue == 1)
    #expect(store.error as? Failed == Failed(code: 3))
    #expect(store.errorUpdateCount == 1)
    #expect(store.errorLastUpdatedAt == clock.now())
    #expect(store.status.isFailure)
    store.currentValue = 2
    #expect(store.error == nil)
    #expect(store.status.isSuccess)
  }

  @Test("A failure keeps its type from the request to the caller, the error and the status")
  func typedFailure() async {
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) -> Int in
      throw Failed(code: 9)
    }
    let store = OperationClient(defaults: .testing).store(for: query)
    do throws(Failed) {
      try await store.run()
      Issue.record("the run did not fail")
    } catch {
      #expect(error.code == 9)
    }
    let error: Failed? = store.error
    #expect(error?.code == 9)
    #expect(store.status == .result(.failure(Failed(code: 9))))
  }

  @Test("A result that is set counts like that of a run, with the date of the passed context")
  func setResult() async {
    let store = makeStore()
    store.setResult(to: .success(4))
    #expect(store.valueUpdateCount == 1)
    #expect(store.valueLastUpdatedAt == clock.now())
    var context = OperationContext()
    context.operationClock = ManualClock(now: Date(timeIntervalSince1970: 5))
    store.setResult(to: .failure(Failed()), using: context)
    #expect(store.errorLastUpdatedAt == Date(timeIntervalSince1970: 5))
    #expect(store.currentValue == 4)
    store.setResult(to: .success(nil))
    #expect(store.currentValue == nil)
    #expect(store.error == nil)
  }

  @Test("A reset restores the initial value of the store, and starts no run")
  func reset() {
    let store = OperationClient(clock: clock).store(for: remote.query(), initialValue: 5)
    store.currentValue = 6
    store.setResult(to: .failure(Failed()))
    let (_, subscription) = store.record()
    store.cancel()
    let calls = remote.callCount
    store.resetState()
    #expect(store.currentValue == 5)
    #expect(store.initialValue == 5)
    #expect(store.error == nil)
    #expect(store.valueUpdateCount == 0)
    #expect(store.valueLastUpdatedAt == nil)
    #expect(!store.isLoading)
    #expect(remote.callCount == calls)
    subscription.cancel()
  }

  @Test("The first subscriber of a stale store starts a run, and the second one does not")
  func automaticRun() async {
    let store = makeStore()
    let first = store.subscribe { _ in }
    let second = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    #expect(remote.context(of: 0).operationRun?.cause == .subscriber)
    #expect(store.leaseCount == 2)
    #expect(store.subscriberCount == 2)
    remote.answer(1)
    await store.settles { !$0.isLoading }
    #expect(remote.callCount == 1)
    #expect(store.leaseCount == 0)
    first.cancel()
    second.cancel()
    #expect(store.subscriberCount == 0)
  }

  @Test("A fresh store starts a run for a new first subscriber only after its stale time")
  func staleAfter() async {
    let store = OperationClient(defaults: .testing, clock: clock)
      .store(for: remote.query().stale(after: .seconds(10)))
    #expect(store.isStale)
    store.currentValue = 1
    #expect(!store.isStale)
    store.subscribe { _ in }.cancel()
    await clock.advance(by: .seconds(9))
    store.subscribe { _ in }.cancel()
    #expect(remote.callCount == 0)
    #expect(!store.isLoading)
    await clock.advance(by: .seconds(1))
    #expect(store.isStale)
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    #expect(store.isLoading)
    subscription.cancel()
  }

  @Test("A value that is never stale becomes stale by an invalidation, and fresh by the next value")
  func neverStale() {
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    #expect(store.isStale)
    store.currentValue = 1
    #expect(!store.isStale)
    store.invalidate()
    #expect(store.isStale)
    store.setResult(to: .failure(Failed()))
    #expect(store.isStale)
    store.currentValue = 2
    #expect(!store.isStale)
  }

  @Test("A predicate decides whether the value is stale, and may read the store")
  func staleWhen() {
    let read = Monitor<@Sendable () -> Int?>({ nil })
    let store = OperationClient(defaults: .testing)
      .store(for: remote.query().staleWhen { state, _ in read.value() == state.currentValue })
    store.currentValue = 3
    #expect(!store.isStale)
    read.update { $0 = { store.currentValue } }
    #expect(store.isStale)
    read.update { $0 = { nil } }
  }

  @Test("A detached store has no client and no defaults, and starts no run by itself")
  func detached() async throws {
    let store = OperationStore.detached(query: remote.query(), initialValue: 2)
    let subscription = store.subscribe { _ in }
    #expect(store.context.operationClient == nil)
    #expect(store.currentValue == 2)
    #expect(!store.isLoading)
    async let value = store.fetch()
    await remote.wait(forCalls: 1)
    remote.answer(3)
    #expect(try await value == 3)
    subscription.cancel()
    let other = OperationStore.detached(
      operation: remote.query(), initialState: QueryState(initialValue: 1))
    #expect(other.currentValue == 1)
  }

  @Test("A detached store that is given the context of a run does not belong to that run")
  func detachedInRun() async throws {
    let contexts = Recorder<OperationContext>()
    let query = Query<Int, any Error>(path: ["outer"]) { context in
      contexts.append(context)
      return 1
    }
    try await query.run()
    let store = OperationStore.detached(query: remote.query(), initialContext: contexts.all[0])
    #expect(contexts.all[0].operationRun != nil)
    #expect(store.context.operationRun == nil)
  }

  @Test("A context that is passed to a run overrides the store's, which a caller can change")
  func context() async throws {
    enum Region: OperationContext.Key { static var defaultValue: String { "eu" } }
    enum Tenant: OperationContext.Key { static var defaultValue: Int { 0 } }
    let query = Query(path: ["context"]) { "\($0[Region.self]) \($0[Tenant.self])" }
    let store = OperationClient(defaults: .testing).store(for: query)
    store.context[Region.self] = "us"
    var context = OperationContext()
    context[Tenant.self] = 7
    #expect(try await store.run() == "us 0")
    #expect(try await store.run(using: context) == "us 7")
    let configuration = OperationTaskConfiguration(name: "named", context: context)
    #expect(try await store.fetch(using: configuration) == "us 7")
  }

  @Test("A yield is displayed before the run ends, and the last value with its end")
  func yields() async throws {
    let store = makeStore()
    async let value = store.run()
    await remote.wait(forCalls: 1)
    remote.yield(1)
    #expect(store.currentValue == 1)
    #expect(store.isLoading)
    remote.yield(error: Failed())
    #expect(store.error as? Failed == Failed())
    remote.answer(2)
    #expect(try await value == 2)
    #expect(store.valueUpdateCount == 2)
    #expect(store.errorUpdateCount == 1)
  }

  @Test("A yield after the end of the run is reported with the path and the type, and dropped")
  func lateYield() async throws {
    let store = makeStore()
    async let value = store.run()
    await remote.wait(forCalls: 1)
    remote.answer(2)
    _ = try await value
    let issues = Recorder<OperationIssue>()
    OperationIssue.withHandler({ issues.append($0) }) { remote.yield(9) }
    #expect(issues.all.map(\.kind) == [.lateYield])
    #expect(issues.all.first?.message.contains("[\"remote\"]") == true)
    #expect(issues.all.first?.message.contains("Int") == true)
    #expect(store.currentValue == 2)
  }

  @Test("A yield of a run that was cancelled is dropped without a report")
  func yieldAfterCancel() async throws {
    let store = makeStore()
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    let issues = Recorder<OperationIssue>()
    OperationIssue.withHandler({ issues.append($0) }) { remote.yield(9) }
    #expect(issues.all.isEmpty)
    #expect(store.currentValue == nil)
  }
}
