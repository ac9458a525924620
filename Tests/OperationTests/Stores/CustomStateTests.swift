import FoundationEssentials
@testable import Operation
import Testing

/// A custom state that cancels tasks itself: the newest run replaces the others.
private struct LatestState: OperationState {
  typealias StateValue = Int
  typealias OperationValue = Int
  typealias StatusValue = Int

  var currentValue = 0
  let initialValue = 0
  var valueUpdateCount = 0
  var valueLastUpdatedAt: Date?
  var error: (any Error)?
  var errorUpdateCount = 0
  var errorLastUpdatedAt: Date?
  var tasks: [OperationTask<Int, any Error>] = []

  var isLoading: Bool { !tasks.isEmpty }

  mutating func scheduleFetchTask(_ task: inout OperationTask<Int, any Error>) {
    if let others = task.context.othersBeforeFirst {
      tasks.first?.schedule(after: others)
    } else {
      for earlier in tasks { earlier.cancel() }
    }
    task.configuration.name = "latest"
    tasks.append(task)
    // A programming error, which is reported.
    if task.context.waitsForItself { task.schedule(after: tasks) }
  }

  mutating func update(with result: Result<Int, any Error>, using context: OperationContext) {
    switch result {
    case .success(let value):
      currentValue = value
      valueUpdateCount += 1
      valueLastUpdatedAt = context.operationClock.now()
      error = nil
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = context.operationClock.now()
    }
  }

  mutating func update(
    with result: Result<Int, any Error>, for task: OperationTask<Int, any Error>
  ) {
    update(with: result, using: task.context)
  }

  mutating func finishFetchTask(_ task: OperationTask<Int, any Error>) {
    tasks.removeAll { $0.id == task.id }
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    for task in tasks { task.cancel() }
    self = LatestState()
    return ResetEffect()
  }
}

extension LatestState: EditableState {
  mutating func show(_ value: Int, updates: Int) {
    currentValue = value
    valueUpdateCount += updates
  }
}

extension OperationContext {
  fileprivate var waitsForItself: Bool {
    get { self[WaitsForItselfKey.self] }
    set { self[WaitsForItselfKey.self] = newValue }
  }

  fileprivate var othersBeforeFirst: [OperationTask<Int, any Error>]? {
    get { self[OthersKey.self] }
    set { self[OthersKey.self] = newValue }
  }

  private enum OthersKey: Key {
    static var defaultValue: [OperationTask<Int, any Error>]? { nil }
  }

  private enum WaitsForItselfKey: Key {
    static var defaultValue: Bool { false }
  }
}

private struct LatestQuery: StatefulOperationRequest {
  typealias State = LatestState
  typealias Value = Int
  typealias Failure = any Error

  let remote: Query<Int, any Error>
  var path: OperationPath { ["latest"] }

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    try await remote.run(isolation: isolation, in: context, with: continuation)
  }
}

@Suite("Custom states") struct CustomStateTests {
  private let remote = Remote<Int>()

  private func makeStore() -> OperationStore<LatestState> {
    OperationStore.detached(
      operation: LatestQuery(remote: remote.query()), initialState: LatestState())
  }

  @Test("A scheduling error of a state is reported without the lock of its store")
  func report() async throws {
    let store = makeStore()
    var context = OperationContext()
    context.waitsForItself = true
    let loading = Recorder<Bool>()
    let messages = Recorder<String>()
    let task = OperationIssue.withHandler({ issue in
      loading.append(store.isLoading)
      messages.append(issue.message)
    }) {
      store.runTask(using: context)
    }
    #expect(loading.all == [true])
    #expect(messages.all.first?.contains("[\"latest\"]") == true)
    remote.answer(1)
    #expect(try await task.runIfNeeded() == 1)
  }

  @Test("A state may schedule a task that is awaited after one that waits for a run of its store")
  func scheduleAwaited() async throws {
    let store = makeStore()
    let task = store.runTask()
    // As a run that follows an invalidation waits for the answer of another store.
    let later = makeStore().runTask()
    later.node.addDependency(
      on: TaskDependency(node: makeStore().runTask().node) {
        store.isLoading ? task.dependency : nil
      } wait: {
      })
    // A run that awaits the first one.
    let outer = makeStore().runTask()
    outer.schedule(after: task)
    var context = OperationContext()
    context.othersBeforeFirst = [later]
    let (found, newer) = await issues { store.runTask(using: context) }
    #expect(found.map(\.kind) == [.scheduleCycle])
    #expect(store.tasks.count == 2)
    withExtendedLifetime(newer) {}
  }

  @Test("A state may cancel tasks during a transition of the machine of its store")
  func latest() async throws {
    let store = makeStore()
    let first = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let second = Task { try await store.run() }
    await #expect(throws: CancellationError.self) { try await first.value }
    await remote.wait(forCalls: 2)
    #expect(store.tasks.count == 1)
    remote.answer(2, to: 1)
    #expect(try await second.value == 2)
    #expect(store.currentValue == 2)
    #expect(store.status.isSuccess)
  }

  @Test("A reset of a state that cancels its tasks ends them, and restores the initial state")
  func reset() async throws {
    let store = makeStore()
    let (events, observedStore) = (Recorder<Int>(), store)
    let subscription = store.subscribe { event in
      if let state = event.state { events.append(state.tasks.count) }
    }
    let run = Task { try await observedStore.run() }
    await remote.wait(forCalls: 1)
    remote.yield(4)
    store.resetState()
    await #expect(throws: CancellationError.self) { try await run.value }
    await remote.waitForCancellation()
    #expect(store.currentValue == 0)
    #expect(!store.isLoading)
    #expect(events.all.last == 0)
    subscription.cancel()
  }

  @Test("A change that a state makes to a task applies, such as a change of its name")
  func changesTask() {
    let store = makeStore()
    #expect(store.runTask().configuration.name == "latest")
  }

  @Test("An edit of a custom state is displayed, above each new value, until its work fails")
  func edits() async throws {
    let store = makeStore()
    store.currentValue = 1
    await #expect(throws: Failed.self) {
      try await store.optimistically {
        $0 += 10
      } while: {
        #expect(store.currentValue == 11 && store.valueUpdateCount == 2)
        store.currentValue = 2
        #expect(store.currentValue == 12)
        throw Failed()
      }
    }
    #expect(store.currentValue == 2 && store.valueUpdateCount == 2)
    await store.optimistically {
      $0 += 10
    } while: {
    }
    #expect(store.currentValue == 12 && !store.isOptimistic)
  }

  @Test("A run of a custom state, which need not display it, waits for a connection")
  func offline() async throws {
    let network = ManualNetworkObserver(.disconnected)
    var defaults = OperationDefaults.testing
    defaults.networkObserver = network
    let clock = ManualClock()
    let store = OperationClient(defaults: defaults, clock: clock).store(
      for: LatestQuery(remote: remote.query()).networkMode(.online), initialState: LatestState())
    let run = Task.immediate { try await store.run() }
    await clock.settle()
    #expect(remote.callCount == 0 && store.isLoading && !store.isPaused)
    network.set(.connected)
    remote.answer(1)
    #expect(try await run.value == 1)
  }

  @Test("Custom states have the same value if count and date are the same, and dates confirm it")
  func facts() {
    var (state, other) = (LatestState(), LatestState())
    other.currentValue = 1
    #expect(state.hasSameValue(as: other) && !state.isConfirmed)
    other.valueLastUpdatedAt = Date(timeIntervalSince1970: 1)
    #expect(!state.hasSameValue(as: other) && other.isConfirmed)
    state.valueUpdateCount = 1
    state.valueLastUpdatedAt = other.valueLastUpdatedAt
    #expect(!state.hasSameValue(as: other))
  }

  @Test("Of many runs on many threads, one remains, and all others end", arguments: 0..<100)
  func many(_: Int) async throws {
    let store = makeStore()
    let tasks = (0..<12).map { _ in Task { try await store.run() } }
    await store.settles { $0.leaseCount == 1 && $0.tasks.count == 1 }
    store.resetState()
    for task in tasks {
      // A task may begin only now. Then its run is the one that remains.
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(store.leaseCount == 0)
    #expect(!store.isLoading)
  }
}
