import Foundation
@testable import Operation
import ReactiveStreams
import Synchronization
import Testing

/// What another thread does between two steps of one thread, of which each has a lock of its own.
@Suite(.timeLimit(.minutes(5))) struct BetweenLocksTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("A run that is cancelled as it ends leaves the dependencies of the value that stays")
  func cancelledAtEnd() async throws {
    let (number, returnCount) = (Monitor(1), Monitor(0))
    let sources = (0..<3).map { id in Query<Int, any Error>(path: ["source", id]) { _ in id } }
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      let value = try await context.ensure(sources[number.value])
      returnCount.update { $0 += 1 }
      return value
    }
    let store = client.store(for: reader.neverStale())
    for _ in 0..<500 {
      number.update { $0 = 1 }
      try await store.run()
      number.update { $0 = 2 }
      let count = returnCount.value
      let run = Task { try await store.run() }
      await onThreads(1) { _ in
        while returnCount.value == count {}
        run.cancel()
      }
      _ = await run.result
      #expect(await eventually { !store.isLoading })
      client.invalidate(sources[store.currentValue ?? 0])
      #expect(store.isStale)
    }
  }

  @Test(
    "A restart of a run whose request has returned, and whose result was not committed, calls it again"
  )
  func restartBeforeCommit() async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      if attempt == 1 { await gate.wait() }
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let node = try #require(script.contexts.values[0].runNode)
    let second = Monitor<Task<Int, any Error>?>(nil)
    await onThreads(1) { _ in
      store.withExclusiveAccess {
        gate.open()
        // Its result is committed after this access.
        while node.isInRequest {}
        second.update { $0 = Task.immediate { try await store.fetch(restarting: true) } }
      }
    }
    #expect(try await second.value?.value == 2)
    #expect(try await first.value == 2)
  }

  @Test("A restart never returns what a request has returned before it")
  func restartAtEnd() async throws {
    for _ in 0..<1_000 {
      let calls = Monitor(0)
      let query = Query<Int, any Error>(path: ["query"]) { _ in
        calls.update {
          $0 += 1; return $0
        }
      }
      let store = OperationStore.detached(query: query.deduplicated())
      let first = Task { try await store.fetch() }
      let second = Task {
        while calls.value == 0 {}
        return try await store.fetch(restarting: true)
      }
      #expect(try await second.value == 2)
      _ = try await first.value
    }
  }

  @Test("A flush by a handler of the end of a persisted call waits until the call is removed")
  func flushAtEnd() async throws {
    let storage = MemoryStorage()
    let client = outboxProgram(storage)
    let store = client.store(for: CreatePost(server: OutboxServer()).persisted())
    let flush = Monitor<Task<Int, any Error>?>(nil)
    let subscription = store.subscribe { event in
      guard case .runEnded = event else { return }
      let task = Task.immediate {
        try await client.flush()
        return storage.entries.count
      }
      flush.update { $0 = task }
    }
    _ = try await store.mutate(with: "a")
    #expect(try await flush.value?.value == 0)
    subscription.cancel()
  }

  @Test("A call that another thread takes up while it is found to be too old is not dropped")
  func tooOldAndTakenUp() async throws {
    let storage = MemoryStorage()
    try await interruptCalls(["a"], in: storage)
    let clock = HookedClock()
    let server = OutboxServer(waits: true)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    try await client.resumeMutations { _ in }
    let id = try #require(client.outbox.calls.first?.id)
    await clock.base.advance(by: .seconds(100))
    try await client.outbox.load()
    clock.hook.update { $0 = { [outbox = client.outbox] in _ = outbox.retry(id) } }
    try await client.resumeMutations {
      $0.register(CreatePost(server: server).persisted(maxAge: .seconds(50)))
    }
    await server.arrivals.wait(for: 1)
    #expect(client.outbox.calls.count == 1)
    server.gate.open()
  }

  /// A clock that calls a closure once when it is read.
  private struct HookedClock: OperationClock {
    let base = ManualClock(now: outboxStart)
    let hook = Monitor<(@Sendable () -> Void)?>(nil)

    func now() -> Date {
      hook.update { $0.take() }?()
      return base.now()
    }
    func elapsed() -> Duration { base.elapsed() }
    func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }
    func schedule(
      after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> OperationSubscription { base.schedule(after: duration, action) }
  }

  @Test("A store that changes while a reader of the feed follows another one is listed")
  func feedBetweenReaders() async {
    let stores = (0..<1_000).map { id in
      OperationStore.detached(query: Query<Int, any Error>(path: [id]) { _ in 1 })
    }
    for _ in 0..<100 {
      let feed = ChangeFeed()
      let first = feed.begin()
      for store in stores { feed.append(store) }
      let isListed = Monitor(false)
      await onThreads(2) { thread in
        if thread == 0 { return feed.end(first) }
        let second = feed.begin()
        feed.append(stores[999])
        let changes = feed.take(second)
        isListed.update { $0 = !changes.stores.isEmpty }
      }
      #expect(isListed.value)
    }
  }

  @Test("Of two readers of the feed that begin at the same time the last one takes the changes")
  func readersAtOnce() async {
    let store = OperationStore.detached(query: Query<Int, any Error>(path: ["store"]) { _ in 1 })
    for _ in 0..<1_000 {
      let feed = ChangeFeed()
      let readers = Monitor<[OperationTaskID]>([])
      await onThreads(2) { _ in
        let reader = feed.begin()
        readers.update { $0.append(reader) }
      }
      feed.append(store)
      #expect(readers.value.filter { !feed.take($0).stores.isEmpty }.count == 1)
      for reader in readers.value { feed.end(reader) }
    }
  }

  @Test("A store that is created while its path is read, and cleared, knows that it is read")
  func createdBesideReader() async throws {
    let clock = HookedClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) }
    let store = client.store(for: reader.neverStale())
    let gate = ThreadLatch()
    clock.hook.update {
      $0 = {
        Task.detached {
          _ = try? await store.run()
          client.clearStore(with: ["source"])
          gate.open()
        }
        gate.wait()
      }
    }
    let new = Monitor<OperationStore<QueryState<Int, any Error>>?>(nil)
    // The date of the initial value is read before the store is inserted.
    await onThreads(1) { _ in new.update { $0 = client.store(for: source, initialValue: 0) } }
    #expect(store.currentValue == 1 && !store.isStale)
    new.value?.invalidate()
    #expect(store.isStale)
  }

  /// The host of a client, which calls a closure before the client learns that a store was released.
  private final class ReleaseHost: StoreHost {
    let client: OperationClient
    let hook = Monitor<(@Sendable () -> Void)?>(nil)

    init(_ client: OperationClient) { self.client = client }

    func stores(at path: OperationPath) -> [OpaqueOperationStore] { client.stores(at: path) }
    func hasStore(at path: OperationPath) -> Bool { client.hasStore(at: path) }
    func hasStore(_ id: ObjectIdentifier, at path: OperationPath) -> Bool {
      client.hasStore(id, at: path)
    }
    func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {
      client.useChanged(of: store, change)
    }
    func wasReleased(_ id: ObjectIdentifier, at path: OperationPath) {
      hook.update { $0.take() }?()
      client.wasReleased(id, at: path)
    }
  }

  @Test("A store that is being released does not clash with one of another type")
  func clashBesideRelease() async throws {
    let clock = ManualClock()
    let storage = MemoryStorage()
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)), storage: storage)
    let host = ReleaseHost(client)
    client.hub.connect(to: host)
    let text = Query<String, any Error>(path: ["shared"]) { _ in "" }
    let last = Monitor<OperationStore<QueryState<String, any Error>>?>(client.store(for: text))
    await clock.advance(by: .seconds(600))
    let issues = Recorder<OperationIssue.Kind>()
    host.hook.update {
      $0 = {
        OperationIssue.withHandler({ issues.append($0.kind) }) {
          let number = Query<Int, any Error>(path: ["shared"]) { _ in 1 }
          client.store(for: number.persisted()).currentValue = 7
        }
      }
    }
    last.update { $0 = nil }
    #expect(issues.all.isEmpty)
    try await client.flush()
    #expect(storage.entries.count == 1)
    #expect(client.stores(matching: []).map(\.path) == [["shared"]])
    withExtendedLifetime(host) {}
  }

  /// A driver that calls a closure once when it is asked for the run that its tasks wait for.
  private final class HookedDriver: TaskDriver {
    let hook = Monitor<(@Sendable () -> Void)?>(nil)

    var serialRun: TaskNode? {
      hook.update { $0.take() }?()
      return nil
    }
    func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool {
      false
    }
    func releaseLease(on id: OperationTaskID) {}
    func cancel(_ id: OperationTaskID) {}
  }

  @Test("A run that begins to wait for a task while that is scheduled after it finds the cycle")
  func waitBesideSchedule() {
    let driver = HookedDriver()
    let (scheduled, later, run) = (TaskNode(), TaskNode(), TaskNode())
    let other = TaskNode(driver: driver)
    @Sendable func wait(for node: TaskNode) -> RunWait? {
      CurrentWork.$value.withValue(run) { RunWait(for: node) }
    }
    run.beginRequest()
    later.addDependency(on: TaskDependency(node: scheduled) {})
    let waits = Monitor([wait(for: other)])
    // The schedule has read what the run waits for, and has found no cycle.
    driver.hook.update { $0 = { waits.update { $0.append(wait(for: scheduled)) } } }
    scheduled.addDependency(on: TaskDependency(node: run) {})
    #expect(waits.value.map { $0?.cycle == nil } == [true, false])
    #expect(scheduled.dependencies.map(\.isConfirmed) == [true])
    for wait in waits.value { wait?.end() }
    run.endRequest()
  }

  @Test("A task that begins while it is scheduled after another one does not wait for that one")
  func launchBesideSchedule() async throws {
    let driver = HookedDriver()
    let (later, other) = (TaskNode(), TaskNode(driver: driver))
    let query = Query<Int, any Error>(path: ["number"]) { _ in 1 }
    let task = client.store(for: query).runTask()
    later.addDependency(on: TaskDependency(node: task.node) {})
    let value = Monitor<Task<Int, any Error>?>(nil)
    driver.hook.update {
      $0 = { value.update { $0 = Task.immediate { try await task.runIfNeeded() } } }
    }
    task.node.addDependency(on: TaskDependency(node: other) { await AsyncGate().wait() })
    #expect(try await value.value?.value == 1)
  }

  private struct SetUpQuery: QueryRequest {
    var onSetUp: @Sendable () -> Void = {}
    var path: OperationPath { ["set up"] }

    func setup(context: inout OperationContext) { onSetUp() }
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int { 1 }
  }

  @Test("A reset leaves what a store has that is created meanwhile saved as it is there")
  func resetBesideCreation() async throws {
    let storage = MemoryStorage()
    let client = OperationClient(defaults: .testing, clock: ManualClock(), storage: storage)
    let other = SetUpQuery().persisted()
    // Between the look-up of the store and the removal of what is saved.
    client.reset(SetUpQuery { client.store(for: other).currentValue = 7 }.persisted())
    try await client.flush()
    #expect(client.store(for: other).currentValue == nil)
    #expect(storage.entries.isEmpty)
  }

  @Test("No event is missed after a read of the statistics, also beside the first one")
  func firstStatistics() async {
    for _ in 0..<2_000 {
      let client = OperationClient(defaults: .testing, clock: ManualClock())
      let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
      await onThreads(4) { _ in
        _ = client.statistics
        Task.immediate { try await store.run() }
      }
      // The end of a run can be delivering the events of these threads.
      let isComplete = await eventually {
        let counts = client.statistics.total
        return counts.runs + counts.joins == 4
      }
      #expect(isComplete)
    }
  }
}
