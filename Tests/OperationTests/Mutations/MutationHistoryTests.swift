import FoundationEssentials
import Operation
import TestSupport
import Testing

/// The history of the calls of a mutation.
@Suite struct MutationHistoryTests {
  private let desk = MutationDesk()
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 0))

  private func client() -> OperationClient {
    OperationClient(defaults: .testing, clock: clock)
  }

  private func date(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

  @Test("An attempt has its arguments, its dates, its status, its result and its task")
  func attempts() async throws {
    let store = client().store(for: Call(desk: desk))
    desk.close()
    desk.refuse("b")
    let first = Task { try await store.mutate(with: "a") }
    await desk.waiting("a")
    await clock.advance(by: .seconds(5))
    let second = Task { try await store.mutate(with: "b") }
    await desk.waiting("a", "b")
    #expect(store.lines == ["a …", "b …"] && store.isLoading)
    #expect(store.history.map(\.startDate) == [date(0), date(5)])
    #expect(store.history[0].lastUpdatedAt == nil && store.history[0].task.isRunning)
    await clock.advance(by: .seconds(5))
    desk.answer("a")
    #expect(try await first.value == "done a")
    #expect(store.lines == ["a: done a", "b …"])
    #expect(store.history[0].lastUpdatedAt == date(10) && store.history[1].lastUpdatedAt == nil)
    await clock.advance(by: .seconds(5))
    desk.open()
    await #expect(throws: MutationDesk.Refused(name: "b")) { try await second.value }
    #expect(store.lines == ["a: done a", "b failed"])
    #expect(store.history[1].lastUpdatedAt == date(15) && store.history[1].task.isFinished)
    #expect(try store.history[0].task.finishedResult?.get() == "done a")
    // The later call is displayed, and the value of the earlier one is in the history only.
    #expect(store.currentValue == nil && store.status.isFailure)
  }

  @Test("Concurrent calls are listed oldest first, in whatever order they end")
  func parallel() async throws {
    let store = client().store(for: Call(desk: desk))
    desk.close()
    var calls: [Task<String, any Error>] = []
    for name in ["a", "b", "c"] {
      calls.append(Task { try await store.mutate(with: name) })
      await Settled.when { store.history.count == calls.count }
    }
    await desk.waiting("a", "b", "c")
    for (index, name) in [(2, "c"), (0, "a"), (1, "b")] {
      desk.answer(name)
      #expect(try await calls[index].value == "done \(name)")
      #expect(store.currentValue == "done c")
    }
    #expect(store.lines == ["a: done a", "b: done b", "c: done c"])
    #expect(store.valueUpdateCount == 1 && !store.isLoading)
  }

  @Test("By default the history has at most a hundred attempts")
  func standardLength() async throws {
    let store = client().store(for: Call(desk: desk))
    for index in 0..<130 { try await store.mutate(with: "\(index)") }
    #expect(store.history.count == 100)
    #expect(store.history.first?.arguments == "30" && store.history.last?.arguments == "129")
  }

  @Test("A limited history drops the oldest attempts, also those in flight")
  func length() async throws {
    let store = client().store(for: Call(desk: desk).maxHistory(length: 2))
    desk.close()
    var calls: [Task<String, any Error>] = []
    let names = ["a", "b", "c"]
    for name in names {
      calls.append(Task { try await store.mutate(with: name) })
      await desk.waiting(Array(names.prefix(calls.count)))
    }
    #expect(store.lines == ["b …", "c …"])
    desk.open()
    for call in calls { _ = try await call.value }
    #expect(store.lines == ["b: done b", "c: done c"])
  }

  @Test("With a length of zero only the arguments of the latest call are kept")
  func noHistory() async throws {
    let issues = ReceivedIssues()
    let request = OperationIssue.withHandler(issues.handler) {
      Call(desk: desk).maxHistory(length: -3)
    }
    #expect(issues.kinds == [.invalidValue])
    let store = client().store(for: request)
    try await store.mutate(with: "a")
    #expect(store.history.isEmpty && store.currentValue == "done a")
    try await store.retryLatest()
    #expect(desk.begun == ["a", "a"])
  }

  @Test("Five thousand calls leave a bounded history, and a call costs the same at their end")
  func manyCalls() async throws {
    let store = client().store(for: Call(desk: desk))
    func cost() async throws -> Duration {
      var best = Duration.seconds(1_000)
      for _ in 0..<5 {
        best = min(
          best,
          try await ContinuousClock().measure {
            for _ in 0..<100 { try await store.mutate(with: "") }
          })
      }
      return best
    }
    for _ in 0..<200 { try await store.mutate(with: "") }
    let early = try await cost()
    for _ in 0..<4_000 { try await store.mutate(with: "") }
    let late = try await cost()
    #expect(store.history.count == 100)
    #expect(late < early * 5, "\(early) for the first calls, \(late) for the last ones")
  }

  @Test(
    "Cancelling a call costs the same beside many that are paused or wait for a retry",
    arguments: [false, true])
  func cancelling(isPaused: Bool) async {
    func cost(_ count: Int) async -> Duration {
      var defaults = OperationDefaults.testing
      defaults.networkObserver = ManualNetworkObserver(isPaused ? .disconnected : .connected)
      let begun = EventLog<Int>()
      let mutation = Mutation<Int, Int>(path: ["m"]) { number, _ in
        begun.append(number)
        throw MutationDesk.Refused(name: "")
      }.retry(limit: 1).backoff(.constant(.seconds(3_600)))
      // Not with the manual clock, which searches its sleeps for one that is cancelled.
      let store = OperationClient(defaults: defaults)
        .store(for: mutation.networkMode(isPaused ? .online : .always))
      let tasks = (0..<count).map { store.mutateTask(with: $0) }
      let calls = tasks.map { task in Task { _ = try? await task.runIfNeeded() } }
      if isPaused {
        while !store.isPaused { await Task.yield() }
      } else {
        await begun.wait(for: count)
        while store.retry == nil { await Task.yield() }
      }
      let cost = processorTime { for task in tasks.suffix(100) { task.cancel() } }
      store.cancel()
      for call in calls { await call.value }
      return cost
    }
    let (few, many) = (await cost(250), await cost(4_000))
    #expect(many < few * 5, "\(few) beside 250 calls, \(many) beside 4,000")
  }

  @Test("A cancelled call leaves no attempt, even if it has yielded and a later call has begun")
  func cancelled() async throws {
    let desk = desk
    let store = client().store(
      for: Mutation<String, String>(path: ["yielding"]) { name, _, continuation in
        continuation.yield("half \(name)")
        return try await desk.take(name)
      })
    desk.close()
    let first = Task { try await store.mutate(with: "a") }
    await desk.waiting("a")
    let second = Task { try await store.mutate(with: "b") }
    await desk.waiting("a", "b")
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(store.lines == ["b …"])
    desk.open()
    _ = try await second.value
    #expect(store.lines == ["b: done b"] && store.error == nil)
  }

  @Test("A cancelled call restores the earlier state")
  func cancelRestores() async throws {
    let store = client().store(for: Call(desk: desk))
    try await store.mutate(with: "a")
    desk.close()
    let call = Task { try await store.mutate(with: "b") }
    await desk.waiting("b")
    store.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    #expect(store.lines == ["a: done a"] && store.currentValue == "done a" && !store.isLoading)
    desk.open()
    try await store.retryLatest()
    #expect(store.lines == ["a: done a", "a: done a"])
  }

  @Test("A task that is dropped before it was started leaves no trace")
  func droppedTask() async throws {
    let store = client().store(for: Call(desk: desk))
    func schedule() {
      let task = store.mutateTask(with: "a")
      #expect(store.lines.last == "a …" && !task.hasStarted)
    }
    schedule()
    #expect(store.history.isEmpty && !store.isLoading)
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    #expect(desk.begun.isEmpty)
    try await store.mutate(with: "b")
    schedule()
    try await store.fetch()
    #expect(store.lines == ["b: done b", "b: done b"])
  }

  @Test("A task runs once, and returns its result to every caller that starts it")
  func startedTask() async throws {
    let store = client().store(for: Call(desk: desk))
    let task = store.mutateTask(with: "a")
    #expect(store.history.first?.task.id == task.id)
    #expect(try await task.runIfNeeded() == "done a")
    #expect(try await task.runIfNeeded() == "done a")
    #expect(desk.begun == ["a"] && store.lines == ["a: done a"])
  }

  @Test("A reset removes the attempts and the arguments")
  func reset() async throws {
    let store = client().store(for: Call(desk: desk))
    try await store.mutate(with: "a")
    desk.close()
    let call = Task { try await store.mutate(with: "b") }
    await desk.waiting("b")
    store.resetState()
    await #expect(throws: CancellationError.self) { try await call.value }
    desk.open()
    #expect(store.history.isEmpty && store.currentValue == nil && store.status.isIdle)
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
  }

  @Test(
    "A call that is dropped or cancelled removes no other attempt from the history",
    arguments: 0...2)
  func droppedCall(maxHistory: Int) async throws {
    let store = client().store(for: Call(desk: desk).maxHistory(length: maxHistory))
    try await store.mutate(with: "a")
    try await store.mutate(with: "b")
    let lines = store.lines
    #expect(lines == ["a: done a", "b: done b"].suffix(maxHistory))
    func schedule() {
      let task = store.mutateTask(with: "c")
      #expect(store.lines.last == (maxHistory == 0 ? nil : "c …") && !task.hasStarted)
    }
    schedule()
    #expect(store.lines == lines)
    desk.close()
    let calls = ["d", "e"].map { name in Task { try await store.mutate(with: name) } }
    await desk.waiting("d", "e")
    #expect(store.history.count == maxHistory)
    for call in calls {
      call.cancel()
      await #expect(throws: CancellationError.self) { try await call.value }
    }
    desk.open()
    #expect(store.lines == lines)
  }
}
