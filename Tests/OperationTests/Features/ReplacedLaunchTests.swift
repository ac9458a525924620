import Dispatch
import Testing

@testable import Operation

/// A launch that a restart has replaced does not affect the current launch.
@Suite(.timeLimit(.minutes(5))) struct ReplacedLaunchTests {
  private let clock = ManualClock()
  private let gate = AsyncGate()
  private let other = OpenQuery(script: Script(), path: ["other"]).neverStale()

  private func client(_ network: ManualNetworkObserver? = nil) -> OperationClient {
    var defaults = OperationDefaults.testing
    defaults.networkObserver = network
    return OperationClient(defaults: defaults, clock: clock)
  }

  @Test("A run does not depend on a value that only a replaced launch has read") func dependencies()
    async throws
  {
    let client = client()
    try await client.fetch(other)
    let script = Script { [gate, other] attempt, context, _ in
      if attempt == 1 {
        _ = context.value(of: other)
        await gate.wait()
      }
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated().neverStale())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    #expect(try await store.fetch(restarting: true) == 2)
    gate.open()
    #expect(try await first.value == 2)
    await clock.settle()
    client.invalidate(other)
    #expect(!store.isStale)
  }

  @Test("A restarted run that is cancelled in its queue leaves no dependency")
  func cancelledInQueue() async throws {
    let network = ManualNetworkObserver()
    let client = client(network)
    try await client.fetch(other)
    let script = Script { [gate, other] attempt, context, _ in
      if attempt == 2 {
        _ = context.value(of: other)
        await gate.wait()
      }
      return .success(attempt)
    }
    let request = OpenQuery(script: script).deduplicated().neverStale().networkMode(.online)
    let store = client.store(for: request.serialized(in: "queue"))
    #expect(try await store.fetch() == 1)
    let second = Task { try await store.fetch() }
    await script.contexts.wait(for: 2)
    network.set(.disconnected)
    let third = Task { try await store.fetch(restarting: true) }
    while !store.isPaused { await Task.yield() }
    gate.open()
    await clock.settle()
    store.cancel()
    _ = await (second.result, third.result)
    await clock.settle()
    client.invalidate(other)
    #expect(!store.isStale)
  }

  @Test("A retry of a replaced launch is not displayed") func retry() async throws {
    let client = client()
    let script = Script { [gate] attempt, _, _ in
      if attempt == 1 { return .failure(Refused(attempt: attempt)) }
      await gate.wait()
      return .success(attempt)
    }
    let hasRestarted = EventLog<Bool>()
    let request = OpenQuery(script: script).deduplicated().retry(
      limit: 1,
      when: { [weak client] _ in
        let store = client?.store(with: ["open"])?.base as? OperationStore<OpenQuery.State>
        if let store, let task = store.activeTasks.first { _ = store.restart(task.core) }
        hasRestarted.append(store != nil)
        return true
      })
    let store = client.store(for: request.backoff(.constant(.seconds(60))))
    let run = Task { try await store.fetch() }
    await script.contexts.wait(for: 2)
    await clock.settle()
    #expect(hasRestarted.values == [true])
    #expect(store.retry == nil)
    gate.open()
    #expect(try await run.value == 2)
  }

  @Test("A yield of a replaced launch after the end of its run is not reported")
  func lateYield() async throws {
    let client = client()
    let hasYielded = EventLog<Int>()
    let script = Script { [gate] attempt, _, yield in
      if attempt == 1 {
        await gate.wait()
        yield(.success(0))
        hasYielded.append(0)
      }
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated())
    let (reports, _) = await issues {
      let first = Task { try await store.fetch() }
      await script.contexts.wait(for: 1)
      _ = try? await store.fetch(restarting: true)
      _ = await first.result
      #expect(store.currentValue == 2)
      gate.open()
      await hasYielded.wait(for: 1)
    }
    #expect(reports.isEmpty)
  }

  @Test("A launch that is replaced while it waits for a connection does not call its request")
  func offline() async throws {
    let network = ManualNetworkObserver()
    let client = client(network)
    let script = Script { [gate] attempt, _, _ in
      if attempt == 1 { await gate.wait() }
      return .success(attempt)
    }
    // The failure of this query cannot be a cancellation.
    let store = client.store(
      for: TypedQuery(script: script).deduplicated().networkMode(.online))
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    network.set(.disconnected)
    let second = Task { try await store.fetch(restarting: true) }
    while !store.isPaused { await Task.yield() }
    let third = Task { try await store.fetch(restarting: true) }
    while store.leaseCount < 3 { await Task.yield() }
    gate.open()
    await clock.settle()
    #expect(script.attempts == 1)
    network.set(.connected)
    #expect(try await (first.value, second.value, third.value) == (2, 2, 2))
  }

  @Test("A restarted run that is cancelled lets another one answer the invalidation")
  func answer() async throws {
    let client = OperationClient(defaults: OperationDefaults(retryLimit: 0), clock: clock)
    let script = Script { [gate] attempt, _, _ in
      if (2...4).contains(attempt) { await gate.wait() }
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).deduplicated().neverStale())
    try await store.fetch()
    let subscription = store.subscribe { _ in }
    let old = Task { try await store.fetch() }
    await script.contexts.wait(for: 2)
    store.invalidate()
    let answering = Task { try await store.fetch() }
    await script.contexts.wait(for: 3)
    let restarting = Task { try await store.fetch(restarting: true) }
    await script.contexts.wait(for: 4)
    answering.cancel()
    restarting.cancel()
    _ = await (answering.result, restarting.result)
    #expect(store.activeTasks.count == 1)
    gate.open()
    #expect(try await old.value == 2)
    // The run that follows for the subscriber.
    await script.contexts.wait(for: 5)
    for await state in store.states where !state.isLoading { break }
    #expect(store.currentValue == 5 && !store.isStale)
    subscription.cancel()
  }

  @Test("A restart after an invalidation calls the request of the run in flight again")
  func restartAfterInvalidation() async throws {
    let script = Script { [gate] attempt, _, _ in
      if attempt == 1 { await gate.wait() }
      return .success(attempt)
    }
    let store = client().store(for: OpenQuery(script: script).deduplicated().neverStale())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    store.invalidate()
    #expect(try await store.fetch(restarting: true) == 2)
    #expect(store.currentValue == 2 && !store.isStale && script.attempts == 2)
    gate.open()
    #expect(try await first.value == 2)
    await clock.settle()
    #expect(store.currentValue == 2 && !store.isStale)
  }

  @Test("Of a run from before an invalidation and one from after it, a restart takes the later one")
  func restartOfLaterRun() async throws {
    let gates = [AsyncGate(), AsyncGate()]
    let script = Script { attempt, _, _ in
      if attempt <= 2 { await gates[attempt - 1].wait() }
      return .success(attempt)
    }
    let store = client().store(for: OpenQuery(script: script).deduplicated().neverStale())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    store.invalidate()
    let second = Task { try await store.fetch() }
    await script.contexts.wait(for: 2)
    #expect(try await store.fetch(restarting: true) == 3)
    gates.forEach { $0.open() }
    #expect(try await second.value == 3)
    // The result of the oldest run is displayed when it arrives, and is out of date.
    #expect(try await first.value == 1)
    #expect(store.currentValue == 1 && store.isStale)
  }

  @Test("A restart after an invalidation joins no run whose request was not called before it")
  func restartOfPausedRun() async throws {
    let network = ManualNetworkObserver(.disconnected)
    let script = Script()
    let store = client(network).store(
      for: OpenQuery(script: script).deduplicated().neverStale().networkMode(.online))
    let first = Task { try await store.fetch() }
    await Settled.when { store.isPaused }
    store.invalidate()
    let second = Task.immediate { try await store.fetch(restarting: true) }
    #expect(store.activeTasks.count == 2)
    network.set(.connected)
    _ = try await (first.value, second.value)
    #expect(script.attempts == 2 && !store.isLoading)
  }

  @Test("A caller that is cancelled already restarts no request")
  func cancelledCaller() async throws {
    let script = Script { [gate] attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = client().store(for: OpenQuery(script: script).deduplicated())
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    let second = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await store.fetch(restarting: true)
    }
    await #expect(throws: CancellationError.self) { try await second.value }
    await clock.settle()
    gate.open()
    #expect(try await first.value == 1)
    #expect(script.attempts == 1)
  }

  /// Restarts the run in flight of a store on a thread of its own, and cancels it before its next launch begins,
  /// when the launch before has ended.
  private func cancelDuringRestart<State>(
    of store: OperationStore<State>, _ gate: AsyncGate, _ clock: ManualClock,
    by restart: @escaping @Sendable () -> Void
  ) async {
    let (states, isSettled) = (Monitor(0), DispatchSemaphore(value: 0))
    let subscription = store.subscribe { event in
      guard case .stateChanged = event else { return }
      let count = states.update {
        $0 += 1; return $0
      }
      // The first one is the present state, and the second one that of the restart.
      guard count == 2 else { return }
      gate.open()
      Task.detached {
        await clock.settle()
        isSettled.signal()
      }
      isSettled.wait()
      store.cancel()
    }
    await onThreads(1) { _ in restart() }
    subscription.cancel()
  }

  @Test(
    "A run that is cancelled as it is restarted, and whose request has returned, leaves its queue"
  )
  func cancelledInRestart() async throws {
    let (gate, clock, events) = (AsyncGate(), ManualClock(), EventLog<String>())
    let client = OperationClient(defaults: .testing, clock: clock)
    let script = Script { attempt, _, _ in
      if attempt == 1 { await gate.wait() }
      return .success(attempt)
    }
    let request = OpenQuery(script: script).deduplicated().neverStale().serialized(in: "queue")
    let store = client.store(for: request)
    let reading = client.hub.events.subscribe { event in
      if case .runEnded(_, let outcome, _) = event.occurrence { events.append("\(outcome)") }
    }
    let first = Task { try await store.fetch() }
    await script.contexts.wait(for: 1)
    await cancelDuringRestart(of: store, gate, clock) {
      _ = Task.immediate { try? await store.fetch(restarting: true) }
    }
    await #expect(throws: CancellationError.self) { try await first.value }
    let other = client.store(
      for: OpenQuery(script: Script(), path: ["other"]).serialized(in: "queue"))
    let second = Task.immediate { try await other.fetch() }
    await clock.settle()
    #expect(other.currentValue == 1)
    #expect(events.values == ["cancelled", "success"])
    second.cancel()
    reading.cancel()
  }

  @Test(
    "A call that is cancelled as it is restarted, and whose request has returned, leaves the outbox"
  )
  func cancelledCallInRestart() async throws {
    let (storage, clock) = (MemoryStorage(), ManualClock(now: outboxStart))
    let client = outboxProgram(storage, clock: clock)
    let server = OutboxServer(waits: true)
    let change = CreatePost(server: server).deduplicated(by: { _, _ in true }).persisted()
    let store = client.store(for: change)
    let first = Task { try await store.mutate(with: "a") }
    await server.arrivals.wait(for: 1)
    await cancelDuringRestart(of: store, server.gate, clock) {
      _ = Task.immediate { try? await store.fetch(restarting: true) }
    }
    await #expect(throws: CancellationError.self) { try await first.value }
    await clock.settle()
    try await client.flush()
    #expect(client.outbox.calls.isEmpty && storage.entries.isEmpty)
  }
}
