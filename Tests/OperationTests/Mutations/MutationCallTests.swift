import Operation
import Synchronization
import Testing

/// Calls of mutations, and what does not start one.
@Suite struct MutationCallTests {
  private let desk = MutationDesk()

  private func store(_ defaults: OperationDefaults = .standard) -> CallStore {
    OperationClient(defaults: defaults, clock: ManualClock()).store(for: Call(desk: desk))
  }

  @Test("A retry takes the arguments of the latest call, whether it failed or not")
  func retryLatest() async throws {
    let store = store()
    desk.refuse("b")
    try await store.mutate(with: "a")
    await #expect(throws: MutationDesk.Refused(name: "b")) { try await store.mutate(with: "b") }
    #expect(try await store.retryLatest() == "done b")
    #expect(try await store.fetch() == "done b")
    #expect(try await store.run() == "done b")
    #expect(desk.begun == ["a", "b", "b", "b", "b"] && store.history.count == 5)
  }

  @Test("A retry of a mutation that was never called throws")
  func noArguments() async {
    let store = store()
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    #expect(store.error == nil && store.status.isIdle)
    await #expect(throws: MutationError.noArguments) { try await store.fetch() }
    await #expect(throws: MutationError.noArguments) { try await Call(desk: desk).run() }
    #expect(store.history.isEmpty && desk.begun.isEmpty)
  }

  @Test("A typed mutation that was never called throws in a retry, too")
  func typedNoArguments() async throws {
    let store = OperationClient().store(for: TypedCall(desk: desk))
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    desk.refuse("a")
    do throws(MutationDesk.Refused) {
      try await store.mutate(with: "a")
      Issue.record("A refused call did not throw.")
    } catch {
      #expect(error.name == "a" && store.error == error)
    }
    #expect(try await store.retryLatest() == "done a")
  }

  @Test("A retry while calls are in flight takes the arguments of the latest one")
  func retryWhileInFlight() async throws {
    let store = store()
    desk.close()
    let calls = [Task { try await store.mutate(with: "a") }]
    await desk.waiting("a")
    let second = Task { try await store.mutate(with: "b") }
    await desk.waiting("a", "b")
    let retry = Task { try await store.retryLatest() }
    await desk.waiting("a", "b", "b")
    #expect(store.lines == ["a …", "b …", "b …"])
    second.cancel()
    desk.open()
    #expect(try await retry.value == "done b")
    for call in calls { #expect(try await call.value == "done a") }
    #expect(store.lines == ["a: done a", "b: done b"])
    #expect(try await store.retryLatest() == "done b")
  }

  @Test("By default calls are not deduplicated, not run by a subscriber and not retried")
  func defaults() async throws {
    let store = store()
    let subscription = store.subscribe { _ in }
    store.invalidate()
    #expect(!store.isLoading && desk.begun.isEmpty)
    try await store.mutate(with: "a")
    store.invalidate()
    #expect(!store.isLoading)
    desk.close()
    desk.refuse("b", times: 2)
    let calls = [1, 2].map { _ in Task { try await store.mutate(with: "b") } }
    await desk.waiting("b", "b")
    desk.open()
    for call in calls {
      await #expect(throws: MutationDesk.Refused(name: "b")) { try await call.value }
    }
    #expect(desk.begun == ["a", "b", "b"])
    subscription.cancel()
  }

  @Test("A mutation with a retry makes its attempts within one entry of the history")
  func retry() async throws {
    let clock = ManualClock()
    let store = OperationClient(clock: clock).store(for: Call(desk: desk).retry(limit: 2))
    desk.refuse("a", times: 2)
    let call = Task { try await store.mutate(with: "a") }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    await clock.sleepers(atLeast: 1)
    #expect(store.lines == ["a …"])
    await clock.advance(by: .seconds(2))
    #expect(try await call.value == "done a")
    #expect(desk.begun == ["a", "a", "a"] && store.lines == ["a: done a"])
  }

  @Test("The client's default can retry mutations, too")
  func defaultRetry() async throws {
    let store = store(OperationDefaults(backoff: .noBackoff, mutationRetryLimit: 1))
    desk.refuse("a")
    #expect(try await store.mutate(with: "a") == "done a")
    #expect(desk.begun == ["a", "a"])
  }

  @Test("A deduplicated mutation compares arguments")
  func deduplicated() async throws {
    let store = OperationClient().store(for: Call(desk: desk).deduplicated())
    desk.close()
    var calls: [Task<String, any Error>] = []
    for name in ["a", "a", "b"] {
      calls.append(Task { try await store.mutate(with: name) })
      await Settled.when { store.leaseCount == calls.count }
    }
    await desk.waiting("a", "b")
    calls.append(Task { try await store.fetch() })
    await Settled.when { store.leaseCount == 4 }
    #expect(store.lines == ["a …", "b …"])
    desk.open()
    #expect(try await calls[0].value == "done a")
    #expect(try await calls[1].value == "done a")
    #expect(try await calls[2].value == "done b")
    #expect(try await calls[3].value == "done b")
    #expect(desk.begun.sorted() == ["a", "b"])
  }

  @Test("A mutation is run without a store with its arguments and its modifiers")
  func withoutAStore() async throws {
    let request = Call(desk: desk).retry(limit: 1).backoff(.noBackoff)
    desk.refuse("a")
    #expect(try await request.run(with: "a") == "done a")
    #expect(desk.begun == ["a", "a"])
    desk.refuse("b")
    await #expect(throws: MutationDesk.Refused(name: "b")) {
      try await TypedCall(desk: desk).run(with: "b")
    }
  }

  @Test("A mutation without arguments can be called, and called again by a retry")
  func voidArguments() async throws {
    let count = Atomic(0)
    let store = OperationClient().store(
      for: Mutation<Void, Int>(path: ["void"]) { _, _ in
        count.wrappingAdd(1, ordering: .relaxed).newValue
      })
    #expect(try await store.mutate(with: ()) == 1)
    #expect(try await store.retryLatest() == 2)
    #expect(store.history.count == 2)
  }

  @Test("A store displays what a call yields, and the attempt is in flight until the call ends")
  func yields() async throws {
    let desk = desk
    let store = OperationClient().store(
      for: Mutation<String, String>(path: ["yielding"]) { name, _, continuation in
        continuation.yield("half \(name)")
        return try await desk.take(name)
      })
    desk.close()
    let events = ReceivedEvents<CallState>()
    let call = Task { try await store.mutate(with: "a", handler: events.handler) }
    await desk.waiting("a")
    #expect(store.currentValue == "half a" && store.lines == ["a …"])
    #expect(try store.history[0].currentResult?.get() == "half a")
    desk.open()
    #expect(try await call.value == "done a")
    #expect(
      events.lines { $0.currentValue ?? "nothing" } == [
        "started", "nothing", "half a", "yielded", "done a", "ended",
      ])
    #expect(store.lines == ["a: done a"])
  }

  @Test("A yield after the end of a call is reported and changes nothing")
  func lateYield() async throws {
    let leak = Mutex<OperationContinuation<String, any Error>?>(nil)
    let store = OperationClient().store(
      for: Mutation<String, String>(path: ["late"]) { name, _, continuation in
        leak.withLock { $0 = continuation }
        return name
      })
    try await store.mutate(with: "a")
    let issues = ReceivedIssues()
    OperationIssue.withHandler(issues.handler) { leak.withLock { $0 }?.yield("late") }
    #expect(issues.kinds == [.lateYield] && issues.messages.first?.contains("late") == true)
    #expect(store.currentValue == "a" && store.lines == ["a: a"])
  }
}
