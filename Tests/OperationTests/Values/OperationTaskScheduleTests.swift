import Operation
import Testing

@Suite("OperationTask.schedule(after:)", .timeLimit(.minutes(5))) struct OperationTaskScheduleTests
{
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private func store(_ log: EventLog<String>, _ name: String, fails: Bool = false) -> Store {
    let script = Script { attempt, _, _ in
      log.append("\(name) begins")
      await Task.yield()
      log.append("\(name) ends")
      return fails ? .failure(Refused()) : .success(attempt)
    }
    return .detached(query: OpenQuery(script: script))
  }

  /// A script whose attempts wait at a gate.
  private func held(at gate: AsyncGate) -> Script {
    Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
  }

  @Test("A task begins when the task before it has ended, which is started if needed")
  func after() async throws {
    let log = EventLog<String>()
    let first = store(log, "a").runTask()
    let second = store(log, "b").runTask()
    second.schedule(after: first)
    try await second.runIfNeeded()
    #expect(log.values == ["a begins", "a ends", "b begins", "b ends"])
    #expect(first.isFinished)
  }

  @Test("The next task continues even if the task before it fails")
  func afterFailure() async throws {
    let log = EventLog<String>()
    let first = store(log, "a", fails: true).runTask()
    let second = store(log, "b").runTask()
    second.schedule(after: first)
    #expect(try await second.runIfNeeded() == 1)
    await #expect(throws: Refused()) { try await first.runIfNeeded() }
  }

  @Test("A task waits for all tasks of a sequence")
  func afterSeveral() async throws {
    let log = EventLog<String>()
    let before = ["a", "b", "c"].map { store(log, $0).runTask() }
    let last = store(log, "d").runTask()
    last.schedule(after: before)
    try await last.runIfNeeded()
    #expect(log.values.suffix(2) == ["d begins", "d ends"])
    #expect(log.count == 8)
  }

  @Test("A task that another one waits for remains scheduled when its last copy is released")
  func keptByTheOther() async throws {
    let log = EventLog<String>()
    let (one, other) = (store(log, "a"), store(log, "b"))
    let task = other.runTask()
    do {
      let first = one.runTask()
      task.schedule(after: first)
    }
    #expect(one.isLoading)
    try await task.runIfNeeded()
    #expect(log.values == ["a begins", "a ends", "b begins", "b ends"])
    #expect(!one.isLoading && !other.isLoading)
  }

  @Test("A task that is dropped releases the task that it was scheduled after")
  func droppedTogether() {
    let log = EventLog<String>()
    let (one, other) = (store(log, "a"), store(log, "b"))
    do {
      let task = other.runTask()
      task.schedule(after: one.runTask())
      #expect(one.isLoading && other.isLoading)
    }
    #expect(!one.isLoading && !other.isLoading)
    #expect(log.count == 0)
  }

  @Test("A cycle is reported and not added, and both tasks run")
  func cycle() async throws {
    let log = EventLog<String>()
    let first = store(log, "a").runTask()
    let second = store(log, "b").runTask()
    let reported = await issues {
      first.schedule(after: second)
      second.schedule(after: first)
      second.schedule(after: second)
    }
    #expect(reported.issues.map(\.kind) == [.scheduleCycle, .scheduleCycle])
    #expect(reported.issues[0].message.contains("\(first.id)"))
    #expect(reported.issues[0].message.contains("\(second.id)"))
    async let one = first.runIfNeeded()
    async let two = second.runIfNeeded()
    _ = try await (one, two)
    #expect(log.values == ["b begins", "b ends", "a begins", "a ends"])
  }

  @Test("A cycle through a mapped task is found, too")
  func cycleOverMap() async {
    let log = EventLog<String>()
    let first = store(log, "a").runTask()
    let second = store(log, "b").runTask()
    let reported = await issues {
      first.schedule(after: second.map { "\($0)" })
      second.map { $0 + 1 }.schedule(after: first)
    }
    #expect(reported.issues.count == 1)
  }

  @Test("Scheduling a task that was started changes nothing, and causes no cycle later")
  func afterStart() async throws {
    let log = EventLog<String>()
    let first = store(log, "a").runTask()
    try await first.runIfNeeded()
    let second = store(log, "b").runTask()
    let reported = await issues {
      first.schedule(after: second)
      second.schedule(after: first)
    }
    #expect(reported.issues.isEmpty)
    try await second.runIfNeeded()
  }

  @Test("A cancelled task waits for no other one, so that neither retains the other")
  func afterCancellation() {
    func store(_ name: String) -> OperationStore<QueryState<Int, Refused>> {
      .detached(
        query: Query<Int, Refused>(path: [name], failure: Refused.self) {
          _ async throws(Refused) in 1
        }, initialValue: nil)
    }
    let (one, other) = (store("a"), store("b"))
    do {
      let (first, second) = (one.runTask(), other.runTask())
      first.cancel()
      second.schedule(after: first)
      first.schedule(after: second)
      #expect(other.isLoading)
    }
    #expect(!other.isLoading)
  }

  @Test("A task that is cancelled while it waits for another one never runs its request")
  func cancelWhileWaiting() async throws {
    let gate = AsyncGate()
    let (first, second) = (held(at: gate), Script())
    let before = Store.detached(query: OpenQuery(script: first)).runTask()
    let store = Store.detached(query: OpenQuery(script: second))
    let task = store.runTask()
    task.schedule(after: before)
    let holding = Task { try await before.runIfNeeded() }
    let awaiting = Task { try await task.runIfNeeded() }
    await first.contexts.wait(for: 1)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await awaiting.value }
    gate.open()
    _ = try await holding.value
    // A second run of the store ends after everything that the first one could still do.
    _ = try await store.run()
    #expect(second.attempts == 1)
  }

  @Test("A task that was started for one that is cancelled while it waits is cancelled, too")
  func cancelledTogether() async throws {
    let gate = AsyncGate()
    let script = held(at: gate)
    let store = Store.detached(query: OpenQuery(script: script))
    let task = Store.detached(query: OpenQuery(script: Script())).runTask()
    task.schedule(after: store.runTask())
    let call = Task { try await task.runIfNeeded() }
    await script.contexts.wait(for: 1)
    #expect(store.isLoading)
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    #expect(!store.isLoading)
    gate.open()
  }

  @Test("A task that is started for another one has its priority, if it has none of its own")
  func priority() async throws {
    let priorities = EventLog<TaskPriority>()
    let script = Script { attempt, _, _ in
      priorities.append(Task.currentPriority)
      return .success(attempt)
    }
    func task(_ priority: TaskPriority?) -> OperationTask<Int, any Error> {
      Store.detached(query: OpenQuery(script: script))
        .runTask(using: OperationTaskConfiguration(priority: priority))
    }
    let last = task(.high)
    last.schedule(after: task(nil))
    last.schedule(after: task(.low))
    _ = try await Task(priority: .background) { try await last.runIfNeeded() }.value
    let own = [TaskPriority.low, .high].map(\.rawValue)
    #expect(priorities.values.prefix(2).map(\.rawValue).sorted() == own)
  }

  @Test("After a shutdown no task is started for another one")
  func afterShutdown() async throws {
    let client = OperationClient(defaults: .testing)
    await client.shutdown(within: .zero)
    let query = Query<Int, Refused>(path: ["typed"], failure: Refused.self) {
      _ async throws(Refused) in 1
    }
    let (before, task) = (
      client.store(for: query).runTask(), client.store(for: OpenQuery(script: Script())).runTask()
    )
    task.schedule(after: before)
    await #expect(throws: CancellationError.self) { try await task.runIfNeeded() }
    #expect(!before.hasStarted)
  }

  @Test("A restart does not begin a task before the one that it waits for has ended")
  func restarted() async throws {
    let (log, gate) = (EventLog<String>(), AsyncGate())
    let first = Script { attempt, _, _ in
      log.append("a")
      await gate.wait()
      return .success(attempt)
    }
    let store = OperationStore.detached(
      query: OpenQuery(
        script: Script { attempt, _, _ in
          log.append("b")
          return .success(attempt)
        }
      ).deduplicated())
    let task = store.runTask()
    task.schedule(after: OperationStore.detached(query: OpenQuery(script: first)).runTask())
    let run = Task { try await task.runIfNeeded() }
    await log.wait(for: 1)
    let restart = Task { try await store.fetch(restarting: true) }
    while store.leaseCount < 2, log.count < 2 { await Task.yield() }
    for _ in 0..<1_000 { await Task.yield() }
    #expect(log.values == ["a"])
    gate.open()
    #expect(try await (run.value, restart.value) == (1, 1))
    #expect(log.values == ["a", "b"])
  }

  @Test("Chains of tasks run from their beginning to their end", arguments: 0..<100)
  func chains(round: Int) async throws {
    let log = EventLog<String>()
    let tasks = (0..<5).map { store(log, "\($0)").runTask() }
    for (task, before) in zip(tasks.dropFirst(), tasks) { task.schedule(after: before) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in tasks.shuffled() { group.addTask { _ = try await task.runIfNeeded() } }
      try await group.waitForAll()
    }
    #expect(log.values == (0..<5).flatMap { ["\($0) begins", "\($0) ends"] })
  }

  @Test("Thirty thousand tasks, each after the one before it, are released with the last")
  func longChain() {
    let store = store(EventLog(), "never")
    var last: OperationTask<Int, any Error>?
    for _ in 0..<30_000 {
      let task = store.runTask()
      if let last { task.schedule(after: last) }
      last = task
    }
    #expect(store.activeTasks.count == 30_000)
    last = nil
    #expect(store.activeTasks.isEmpty)
    #expect(store.status.isIdle)
  }

  @Test("Three thousand tasks, each after the one before it, run in order when the last is started")
  func longRun() async throws {
    let places = EventLog<Int>()
    let script = Script { attempt, context, _ in
      places.append(context.fixtureNumber)
      return .success(attempt)
    }
    let store = Store.detached(query: OpenQuery(script: script))
    var last: OperationTask<Int, any Error>?
    for place in 0..<3_000 {
      let task = store.runTask(using: .number(place))
      if let last { task.schedule(after: last) }
      last = task
    }
    try await last?.runIfNeeded()
    #expect(places.values == Array(0..<3_000))
  }
}
