import Dispatch
import Operation
import Testing

/// Promise 4: a handler that is passed to `run` receives the events of that run only, each once.
@Suite("A handler of a run") struct StoreHandlerTests {
  private typealias Event = OperationEvent<QueryState<Int, any Error>>
  private let remote = Remote<Int>()

  private func makeStore(
    isDeduplicated: Bool = true
  ) -> OperationStore<QueryState<Int, any Error>> {
    OperationClient(defaults: OperationDefaults(retryLimit: 0, isDeduplicated: isDeduplicated))
      .store(for: remote.query())
  }

  @Test("It receives the events of its run from the start to the end, and nothing before or after")
  func wholeRun() async throws {
    let store = makeStore()
    let received = Recorder<Event>()
    store.currentValue = 1
    async let value = store.run { received.append($0) }
    await remote.wait(forCalls: 1)
    remote.yield(2)
    remote.answer(3)
    _ = try await value
    store.currentValue = 4
    #expect(
      received.names() == [
        "started", "state 1…", "state 2…", "yielded 2", "state 3", "ended 3",
      ])
    #expect(Set(received.all.compactMap(\.run?.id)).count == 1)
  }

  @Test("It receives nothing of a write by another caller, and nothing of another run")
  func otherEvents() async throws {
    let store = makeStore(isDeduplicated: false)
    let received = Recorder<Event>()
    async let value = store.run { received.append($0) }
    await remote.wait(forCalls: 1)
    async let other = store.run()
    await remote.wait(forCalls: 2)
    store.currentValue = 8
    store.invalidate()
    remote.yield(9, from: 1)
    remote.answer(10, to: 1)
    _ = try await other
    remote.answer(2)
    _ = try await value
    #expect(received.names() == ["started", "state nil…", "state 2", "ended 2"])
  }

  @Test("A handler that joins a run receives the start at once, and each later event once")
  func joined() async throws {
    let store = makeStore()
    let first = Recorder<Event>()
    let second = Recorder<Event>()
    async let value = store.run { first.append($0) }
    await remote.wait(forCalls: 1)
    remote.yield(1)
    async let other = store.run { second.append($0) }
    await second.wait(forCount: 1)
    #expect(second.names() == ["started"])
    remote.answer(2)
    _ = try await (value, other)
    #expect(second.names() == ["started", "state 2", "ended 2"])
    #expect(first.names().count { $0 == "ended 2" } == 1)
    #expect(first.all.compactMap(\.run?.id).first == second.all.compactMap(\.run?.id).first)
  }

  @Test("A handler that starts a run that a handle has scheduled receives the start once")
  func joinedScheduled() async throws {
    let store = makeStore()
    let received = Recorder<Event>()
    let task = store.runTask()
    async let value = store.run { received.append($0) }
    await remote.wait(forCalls: 1)
    remote.answer(2)
    _ = try await (value, task.runIfNeeded())
    #expect(received.names() == ["started", "state 2", "ended 2"])
  }

  @Test(
    "It receives the end of a run that is cancelled or reset once, and nothing later",
    arguments: ["cancel", "reset", "task"])
  func cancelled(how: String) async throws {
    let store = makeStore()
    let received = Recorder<Event>()
    let run = Task { try await store.run { received.append($0) } }
    await remote.wait(forCalls: 1)
    switch how {
    case "cancel": store.cancel()
    case "reset": store.resetState()
    default: store.activeTasks[0].cancel()
    }
    await #expect(throws: CancellationError.self) { try await run.value }
    await remote.waitForEnd()
    store.currentValue = 5
    #expect(
      received.names() == ["started", "state nil…", "state nil", "ended CancellationError()"])
  }

  @Test("It receives the end from the request if the failure type has no cancellation")
  func cancelledTyped() async throws {
    let entered = Latch()
    let mayContinue = Latch()
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) -> Int in
      entered.open()
      await mayContinue.wait()
      throw Failed(code: 4)
    }
    let store = OperationClient(defaults: .testing).store(for: query)
    let received = Recorder<OperationEvent<QueryState<Int, Failed>>>()
    let run = Task { () async throws(Failed) -> Int in
      try await store.run { received.append($0) }
    }
    await entered.wait()
    store.cancel()
    #expect(!store.isLoading)
    #expect(received.names().last == "state nil")
    mayContinue.open()
    guard case .failure = await run.result else {
      Issue.record("the run returned a value")
      return
    }
    #expect(received.names().last == "ended Failed(code: 4)")
    #expect(received.names().count { $0.hasPrefix("ended") } == 1)
    #expect(store.error == nil)
  }

  @Test("The handlers of a thousand callers of one run receive each event once")
  func many() async throws {
    let store = makeStore()
    let count = 1_000
    let received = (0..<count).map { _ in Recorder<Event>() }
    let runs = received.map { received in Task { try await store.run { received.append($0) } } }
    await store.settles { $0.leaseCount == count }
    await remote.wait(forCalls: 1)
    remote.yield(1)
    remote.answer(2)
    for run in runs { #expect(try await run.value == 2) }
    #expect(remote.callCount == 1)
    for received in received {
      await received.wait { $0.last?.name == "ended 2" }
      let names = received.names()
      #expect(names.first == "started")
      #expect(names.suffix(4) == ["state 1…", "yielded 1", "state 2", "ended 2"])
      #expect(names.count { $0 == "started" } == 1)
    }
  }

  @Test("After a cancelled call has returned, its handler receives nothing of what was queued")
  func queuedBeforeCancellation() async {
    let store = makeStore()
    let received = Recorder<Event>()
    let (entered, gate) = (AsyncGate(), DispatchSemaphore(value: 0))
    let other = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let subscription = store.subscribe { event in
      guard event.state?.currentValue == 1 else { return }
      entered.open()
      gate.wait()
    }
    let delivering = Task.detached { await onThreads(1) { _ in store.currentValue = 1 } }
    await entered.wait()
    let leaseCount = store.leaseCount
    let run = Task { try await store.run { received.append($0) } }
    await Settled.when { store.leaseCount == leaseCount + 1 }
    run.cancel()
    _ = await run.result
    gate.signal()
    await delivering.value
    #expect(received.names() == [])
    subscription.cancel()
    remote.answer(2)
    _ = await other.result
  }
}
