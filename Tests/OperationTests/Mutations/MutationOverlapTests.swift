import FoundationEssentials
import Operation
import Testing

/// The displayed state of a mutation whose calls overlap.
@Suite struct MutationOverlapTests {
  private let desk = MutationDesk()
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 0))

  private func client() -> OperationClient { OperationClient(defaults: .testing, clock: clock) }

  /// Starts calls that wait at the desk, in the order of the names.
  private func begin(_ names: [String], _ store: CallStore) async -> [Task<String, any Error>] {
    desk.close()
    var calls: [Task<String, any Error>] = []
    for name in names {
      calls.append(Task { try await store.mutate(with: name) })
      await Settled.when { desk.begun.last == name }
    }
    return calls
  }

  /// Cancels a call, and expects that it ends with the cancellation.
  private func cancel(_ call: Task<String, any Error>) async {
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
  }

  /// Returns a mutation that yields before it waits at the desk.
  private func yielding() -> Mutation<String, String> {
    let desk = desk
    return Mutation(path: ["yielding"]) { name, _, continuation in
      continuation.yield("half \(name)")
      return try await desk.take(name)
    }
  }

  @Test("A late failure of an older call is only in the history, and the newer value is kept")
  func lateFailure() async throws {
    let store = client().store(for: Call(desk: desk))
    desk.refuse("a")
    let calls = await begin(["a", "b"], store)
    desk.answer("b")
    #expect(try await calls[1].value == "done b")
    desk.answer("a")
    await #expect(throws: MutationDesk.Refused(name: "a")) { try await calls[0].value }
    #expect(store.currentValue == "done b" && store.error == nil && store.status.isSuccess)
    #expect(store.lines == ["a failed", "b: done b"] && store.errorUpdateCount == 0)
  }

  @Test("A call that was dropped from the history does not write the state")
  func outsideHistory() async throws {
    let store = client().store(for: Call(desk: desk).maxHistory(length: 2))
    let calls = await begin(["a", "b", "c"], store)
    for index in [1, 2, 0] {
      desk.answer(["a", "b", "c"][index])
      _ = try await calls[index].value
    }
    #expect(store.lines == ["b: done b", "c: done c"])
    #expect(store.currentValue == "done c" && store.valueUpdateCount == 1)
  }

  @Test("A value that an older call yields is in the history, and is not displayed")
  func olderYield() async throws {
    let desk = desk
    let store = client().store(
      for: Mutation<String, String>(path: ["late"]) { name, _, continuation in
        _ = try await desk.take(name)
        continuation.yield("half \(name)")
        return try await desk.take("\(name) again")
      })
    let calls = await begin(["a", "b"], store)
    desk.answer("a")
    await desk.waiting("a again", "b")
    #expect(try store.history[0].currentResult?.get() == "half a")
    #expect(store.currentValue == nil && store.valueUpdateCount == 0)
    // Without the newer call the older one is displayed again.
    await cancel(calls[1])
    #expect(store.currentValue == nil)
    desk.open()
    #expect(try await calls[0].value == "done a again")
    #expect(store.currentValue == "done a again")
  }

  @Test("When the newest call is cancelled, the one before is displayed with its own date")
  func newestCancelled() async throws {
    let store = client().store(for: Call(desk: desk))
    let calls = await begin(["a", "b", "c"], store)
    await clock.advance(by: .seconds(5))
    desk.answer("a")
    _ = try await calls[0].value
    await clock.advance(by: .seconds(5))
    #expect(store.currentValue == nil && store.lines[0] == "a: done a")
    await cancel(calls[2])
    #expect(store.currentValue == nil)
    await cancel(calls[1])
    #expect(store.currentValue == "done a" && store.lines == ["a: done a"])
    #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 5))
    desk.open()
  }

  @Test(
    "When the newest call is cancelled, the value that it has yielded is removed",
    arguments: [true, false])
  func newestCancelledAfterYield(isFailure: Bool) async throws {
    let store = client().store(for: yielding())
    if isFailure { desk.refuse("a") }
    let calls = await begin(["a", "b"], store)
    #expect(store.currentValue == "half b")
    desk.answer("a")
    _ = await calls[0].result
    #expect(store.currentValue == "half b" && store.error == nil)
    await cancel(calls[1])
    #expect(store.currentValue == (isFailure ? "half a" : "done a"))
    #expect((store.error != nil) == isFailure && !store.isLoading)
    desk.open()
  }

  @Test("A write is not replaced by an earlier call when a later one is cancelled")
  func write() async throws {
    let store = client().store(for: Call(desk: desk))
    let calls = await begin(["a", "b"], store)
    desk.answer("a")
    _ = try await calls[0].value
    store.currentValue = "written"
    await cancel(calls[1])
    #expect(store.currentValue == "written" && store.lines == ["a: done a"])
    desk.open()
  }

  @Test("A task that is not started covers no call, and a started one is the last call")
  func startedLater() async throws {
    let store = client().store(for: Call(desk: desk))
    let task = store.mutateTask(with: "a")
    let calls = await begin(["b"], store)
    let unstarted = store.mutateTask(with: "c")
    let running = Task { try await task.runIfNeeded() }
    await desk.waiting("a", "b")
    desk.answer("a")
    #expect(try await running.value == "done a")
    #expect(store.currentValue == "done a")
    desk.answer("b")
    #expect(try await calls[0].value == "done b")
    #expect(store.currentValue == "done a" && !unstarted.hasStarted)
  }

  @Test("Serialized calls do not overlap: each is displayed when it ends")
  func serialized() async throws {
    let store = client().store(for: Call(desk: desk).serialized(in: "desk"))
    desk.close()
    let first = Task { try await store.mutate(with: "a") }
    await desk.waiting("a")
    let second = Task { try await store.mutate(with: "b") }
    await Settled.when { store.history.count == 2 }
    desk.answer("a")
    _ = try await first.value
    #expect(store.currentValue == "done a")
    await desk.waiting("b")
    desk.open()
    _ = try await second.value
    #expect(store.currentValue == "done b" && store.valueUpdateCount == 2)
  }

  @Test("A call that is scheduled after others is displayed at its end", arguments: [false, true])
  func scheduled(isLimited: Bool) async throws {
    let (client, call) = (client(), Call(desk: desk))
    let store =
      isLimited
      ? client.store(for: call.limited(to: 2, in: "desk")) : client.store(for: call)
    let calls = ["a", "b", "c"].map { store.mutateTask(with: $0) }
    calls[2].schedule(after: calls[0...1])
    #expect(try await calls[2].runIfNeeded() == "done c")
    #expect(store.currentValue == "done c")
  }

  @Test("A reset removes the calls that a later one covers")
  func reset() async throws {
    let store = client().store(for: Call(desk: desk))
    let calls = await begin(["a", "b"], store)
    desk.answer("a")
    _ = try await calls[0].value
    store.resetState()
    await #expect(throws: CancellationError.self) { try await calls[1].value }
    desk.open()
    #expect(store.currentValue == nil && store.status.isIdle && store.history.isEmpty)
    try await store.mutate(with: "c")
    #expect(store.currentValue == "done c")
  }

  @Test("A cancelled call restores the value, also if an older call has yielded since")
  func undoBelowOlderCall() async throws {
    let continuations = Monitor<[Int: OperationContinuation<Int, any Error>]>([:])
    let gate = AsyncGate()
    let store = OperationStore<MutationState<Int, Int, any Error>>.detached(
      mutation: Mutation<Int, Int>(path: ["overlapping"]) { number, _, continuation in
        continuations.update { $0[number] = continuation }
        await gate.wait()
        throw Failed()
      })
    let older = Task { try await store.mutate(with: 0) }
    await continuations.wait { $0.count == 1 }
    let newer = Task { try await store.mutate(with: 1) }
    await continuations.wait { $0.count == 2 }
    continuations.value[1]?.yield(11)
    continuations.value[0]?.yield(10)
    #expect(store.currentValue == 11)
    newer.cancel()
    _ = await newer.result
    #expect(store.currentValue != 11)
    gate.open()
    _ = await older.result
    #expect(store.currentValue != 11)
    continuations.update { $0 = [:] }
  }

  @Test("A failure that is set stays when an older call is cancelled, until the newer one ends")
  func setFailure() async throws {
    let store = client().store(for: yielding())
    let calls = await begin(["a", "b", "c"], store)
    #expect(store.currentValue == "half c")
    store.setResult(to: .failure(MutationDesk.Refused(name: "set")))
    calls[0].cancel()
    await Settled.when { store.history.count == 2 }
    #expect(store.currentValue == "half c")
    #expect(store.error as? MutationDesk.Refused == MutationDesk.Refused(name: "set"))
    desk.answer("c")
    #expect(try await calls[2].value == "done c")
    calls[1].cancel()
    await Settled.when { store.history.count == 1 }
    #expect(store.currentValue == "done c" && store.error == nil)
    desk.open()
  }

  @Test(
    "A displayed result stays when an older call is cancelled and newer ones have started",
    arguments: [true, false])
  func displayedBelowNewerCall(isFailure: Bool) async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    var calls = await begin(["a"], store)
    yields["a"]?.yield("half a")
    calls += await begin(["b"], store)
    if isFailure { yields["b"]?.yield(error: Failed()) } else { yields["b"]?.yield("half b") }
    calls += await begin(["c", "d"], store)
    desk.answer("c")
    _ = try await calls[2].value
    await cancel(calls[0])
    #expect(store.currentValue == (isFailure ? nil : "half b") && (store.error != nil) == isFailure)
    await cancel(calls[1])
    #expect(store.currentValue == nil && store.error == nil)
    desk.open()
  }

  @Test("A displayed yield is displayed again, also if its call has yielded while it was covered")
  func yieldsWhileCovered() async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    let older = await begin(["a"], store)[0]
    yields["a"]?.yield("half a")
    let newer = await begin(["b"], store)[0]
    yields["b"]?.yield("half b")
    yields["a"]?.yield("covered")
    #expect(store.currentValue == "half b")
    #expect(try store.history[0].currentResult?.get() == "covered")
    await cancel(newer)
    #expect(store.currentValue == "half a")
    #expect(try store.history[0].currentResult?.get() == "covered")
    await cancel(older)
    #expect(store.currentValue == nil)
    desk.open()
  }

  @Test("What a call has yielded stays displayed when it has ended with a covered result")
  func yieldOfCoveredEnd() async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    var calls = await begin(["a"], store)
    yields["a"]?.yield("half a")
    calls += await begin(["b"], store)
    yields["b"]?.yield(error: Failed())
    calls += await begin(["c"], store)
    yields["c"]?.yield("half c")
    calls += await begin(["d"], store)
    desk.answer("c")
    _ = try await calls[2].value
    for (index, value) in [(0, "half c"), (1, "half c"), (3, "done c")] {
      await cancel(calls[index])
      #expect(store.currentValue == value && store.error == nil)
    }
    desk.open()
  }

  @Test(
    "A failure that is set stays when a covered call ends and an older one is cancelled",
    arguments: [true, false])
  func setFailureAboveCoveredEnd(isFailure: Bool) async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    var calls = await begin(["a"], store)
    yields["a"]?.yield("half a")
    calls += await begin(["b", "c"], store)
    if isFailure { yields["c"]?.yield(error: Failed()) } else { yields["c"]?.yield("half c") }
    store.setResult(to: .failure(MutationDesk.Refused(name: "set")))
    desk.answer("b")
    _ = try await calls[1].value
    await cancel(calls[0])
    #expect(store.currentValue == (isFailure ? nil : "half c"))
    #expect(store.error as? MutationDesk.Refused == MutationDesk.Refused(name: "set"))
    desk.open()
  }

  @Test("A failure that is set replaces a covered result, also in what cancelled calls restore")
  func setFailureAfterCoveredEnd() async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    var calls = await begin(["a"], store)
    yields["a"]?.yield("half a")
    yields["a"]?.yield(error: Failed())
    calls += await begin(["b", "c"], store)
    desk.answer("b")
    _ = try await calls[1].value
    store.setResult(to: .failure(MutationDesk.Refused(name: "set")))
    yields["c"]?.yield("half c")
    for index in [2, 0] {
      await cancel(calls[index])
    }
    #expect(store.currentValue == nil)
    #expect(store.error as? MutationDesk.Refused == MutationDesk.Refused(name: "set"))
    desk.open()
  }

  @Test("A call's result that is not covered any more hides a failure that was set before")
  func setFailureBelowUncoveredEnd() async throws {
    let yields = Yields(desk)
    let store = client().store(for: yields.mutation)
    var calls = await begin(["a"], store)
    yields["a"]?.yield("half a")
    calls += await begin(["b"], store)
    store.setResult(to: .failure(MutationDesk.Refused(name: "set")))
    calls += await begin(["c"], store)
    desk.answer("b")
    _ = try await calls[1].value
    for index in [2, 0] {
      await cancel(calls[index])
      #expect(store.currentValue == "done b" && store.error == nil)
    }
    desk.open()
  }
}

/// Lets a test yield in the place of the calls of a mutation, which then wait at a desk.
private final class Yields: Sendable {
  private let continuations = Monitor<[String: OperationContinuation<String, any Error>]>([:])
  private let desk: MutationDesk

  init(_ desk: MutationDesk) { self.desk = desk }

  var mutation: Mutation<String, String> {
    Mutation(path: ["yields"]) { [desk, continuations] name, _, continuation in
      continuations.update { $0[name] = continuation }
      defer { continuations.update { $0[name] = nil } }
      return try await desk.take(name)
    }
  }

  subscript(name: String) -> OperationContinuation<String, any Error>? {
    continuations.value[name]
  }
}
