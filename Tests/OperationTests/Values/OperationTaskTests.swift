import Operation
import Testing

@Suite("OperationTask", .timeLimit(.minutes(5))) struct OperationTaskTests {
  private func store(
    _ script: Script = Script()
  ) -> OperationStore<QueryState<Int, any Error>> {
    .detached(query: OpenQuery(script: script))
  }

  @Test("A scheduled task is in the state, runs once, and is removed from the state at its end")
  func life() async throws {
    let script = Script()
    let store = store(script)
    let task = store.runTask()
    #expect(store.isLoading)
    #expect(store.activeTasks.ids == [task.id])
    #expect(!task.hasStarted && !task.isRunning && !task.isFinished && !task.isCancelled)
    #expect(task.finishedResult == nil)
    #expect(script.attempts == 0)
    #expect(try await task.runIfNeeded() == 1)
    #expect(task.hasStarted && task.isFinished && !task.isRunning && !task.isCancelled)
    #expect(try task.finishedResult?.get() == 1)
    #expect(!store.isLoading)
    #expect(try await task.runIfNeeded() == 1)
    #expect(script.attempts == 1)
  }

  @Test("The tasks of a state keep their order, whichever of them has ended", arguments: [4, 40])
  func order(count: Int) async throws {
    let store = store()
    var tasks = (0..<count).map { _ in store.runTask() }
    var ended = 0
    while !tasks.isEmpty {
      try await tasks.remove(at: tasks.count / 3).runIfNeeded()
      ended += 1
      #expect(store.activeTasks.ids == tasks.map(\.id) && store.valueUpdateCount == ended)
    }
    #expect(!store.isLoading)
  }

  @Test("A task that is dropped before its start leaves no trace in the state")
  func dropped() {
    let script = Script()
    let store = store(script)
    do {
      let task = store.runTask()
      let copy = task
      #expect(store.activeTasks.ids == [copy.id])
    }
    #expect(!store.isLoading)
    #expect(store.activeTasks.isEmpty)
    #expect(store.status.isIdle)
    #expect(store.valueUpdateCount == 0 && store.errorUpdateCount == 0)
    #expect(store.leaseCount == 0)
    #expect(script.attempts == 0)
  }

  @Test("A task with a typed failure is dropped without a trace, too")
  func droppedTyped() {
    let store = OperationStore<QueryState<Int, Refused>>
      .detached(query: TypedQuery(script: Script()))
    do { _ = store.runTask() }
    #expect(store.activeTasks.isEmpty && store.status.isIdle && store.error == nil)
  }

  @Test("A mapped task is the same task with another value, and keeps it scheduled")
  func map() async throws {
    let store = store()
    let mapped = store.runTask().map { "<\($0)>" }
    #expect(store.activeTasks.ids == [mapped.id])
    #expect(try await mapped.runIfNeeded() == "<1>")
    #expect(try mapped.finishedResult?.get() == "<1>")
    #expect(mapped.hasStarted && mapped.isFinished)
  }

  @Test("The closure of a mapped task is called for results, but not to read whether it has ended")
  func mapCalls() async throws {
    let calls = Counter()
    let mapped = store().runTask().map { value in
      calls.increment()
      return value
    }
    _ = try await mapped.runIfNeeded()
    #expect(mapped.isFinished && !mapped.isRunning)
    #expect(calls.value == 1)
    #expect(try mapped.finishedResult?.get() == 1)
    #expect(calls.value == 2)
  }

  @Test("The cancellation of a mapped task cancels the task that it maps")
  func mapCancels() async {
    let store = store()
    let task = store.runTask()
    task.map { $0 + 1 }.cancel()
    #expect(task.isCancelled)
    await #expect(throws: CancellationError.self) { try await task.runIfNeeded() }
  }

  @Test("A task that is cancelled before its start never runs, and throws CancellationError")
  func cancelBeforeStart() async {
    let script = Script()
    let store = store(script)
    let task = store.runTask()
    task.cancel()
    #expect(task.isCancelled && !store.isLoading)
    await #expect(throws: CancellationError.self) { try await task.runIfNeeded() }
    #expect(script.attempts == 0)
    #expect(store.error == nil && store.status.isIdle)
  }

  @Test("A cancelled task with a typed failure ends with the result of its request")
  func cancelTyped() async throws {
    let script = Script { _, _, _ in .failure(Refused(attempt: Task.isCancelled ? 1 : 0)) }
    let store = OperationStore<QueryState<Int, Refused>>.detached(query: TypedQuery(script: script))
    let task = store.runTask()
    task.cancel()
    await #expect(throws: Refused(attempt: 1)) { try await task.runIfNeeded() }
    #expect(store.error == nil && store.status.isIdle)
  }

  @Test("A change of the configuration applies to the run")
  func configuration() async throws {
    let (names, priorities) = (EventLog<String?>(), EventLog<TaskPriority>())
    let script = Script { attempt, _, _ in
      names.append(Task.name)
      priorities.append(Task.currentPriority)
      return .success(attempt)
    }
    var task = store(script).runTask(using: .number(1))
    #expect(task.context.fixtureNumber == 1)
    task.configuration.name = "named"
    task.configuration.priority = .high
    task.context.fixtureNumber = 2
    try await task.runIfNeeded()
    #expect(names.values == ["named"] && priorities.values == [.high])
    #expect(script.contexts.values.map(\.fixtureNumber) == [2])
  }

  @Test("A context of another origin in a configuration overrides that of the store, too")
  func foreignConfiguration() async throws {
    let clock = ManualClock()
    let script = Script(failures: 2)
    let request = OpenQuery(script: script).retry(limit: 2).backoff(.noBackoff)
    let store = OperationClient(defaults: .testing, clock: clock).store(for: request)
    var task = store.runTask()
    task.configuration = OperationTaskConfiguration(name: "named", context: .number(7))
    #expect(try await task.runIfNeeded() == 3)
    let context = try #require(script.contexts.values.first)
    #expect(context.fixtureNumber == 7)
    #expect(context.operationMaxRetries == 2)
    #expect(context.operationClock as? ManualClock === clock)
    #expect(context.operationRun?.id == task.id)
  }

  @Test("Hundreds of callers of one task share its run", arguments: [1, 300])
  func awaiters(count: Int) async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = store(script)
    let task = store.runTask()
    await withTaskGroup(of: Int?.self) { group in
      for _ in 0..<count { group.addTask { try? await task.runIfNeeded() } }
      await script.contexts.wait(for: 1)
      gate.open()
      for await value in group { #expect(value == 1) }
    }
    #expect(script.attempts == 1)
    #expect(store.leaseCount == 0)
  }

  @Test("A task that has ended does not retain its store")
  func endedTask() async throws {
    var store: OperationStore<QueryState<Int, any Error>>? = store()
    weak let released = store
    let task = try #require(store?.runTask())
    store = nil
    #expect(released != nil)
    try await task.runIfNeeded()
    // The run releases the store shortly after it has resumed its callers.
    for _ in 0..<100_000 where released != nil { await Task.yield() }
    #expect(released == nil)
    withExtendedLifetime(task) {}
  }
}
