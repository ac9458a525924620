import Glibc
import Operation
import Synchronization
import Testing

@Suite("Exclusive access") struct ExclusiveAccessTests {
  private let remote = Remote<Int>()

  private func makeStore() -> OperationStore<QueryState<Int, any Error>> {
    let store = OperationStore.detached(query: remote.query())
    store.currentValue = 0
    return store
  }

  @Test("Several writes are one notification, at the end, with the last state")
  func oneNotification() {
    let store = makeStore()
    let (events, subscription) = store.record()
    let result = store.withExclusiveAccess { () -> String in
      store.currentValue = 1
      store.setResult(to: .failure(Failed()))
      store.currentValue = 2
      #expect(store.currentValue == 2)
      #expect(events.count == 1)
      return "done"
    }
    #expect(result == "done")
    #expect(events.names() == ["state 0", "state 2"])
    #expect(store.valueUpdateCount == 3)
    subscription.cancel()
  }

  @Test(
    "What was changed inside before anybody listened is told at the end to who listens then",
    arguments: [false, true])
  func subscribesBehindChange(isReset: Bool) {
    let store = makeStore()
    let (events, subscription) = store.withExclusiveAccess {
      if isReset { store.resetState() } else { store.currentValue = 1 }
      let recorded = store.record()
      #expect(recorded.0.names() == ["state 0"])
      return recorded
    }
    #expect(events.names() == ["state 0", isReset ? "state nil" : "state 1"])
    subscription.cancel()
  }

  @Test(
    "What is done to runs inside is told at the end, too, behind the one change",
    arguments: ["cancel", "reset"])
  func runsInside(means: String) async throws {
    let store = makeStore()
    let (events, subscription) = store.record()
    let heard = Recorder<OperationEvent<QueryState<Int, any Error>>>()
    let run = Task { try await store.run { heard.append($0) } }
    await remote.wait(forCalls: 1)
    let (told, heardBefore) = (events.count, heard.count)
    store.withExclusiveAccess {
      store.currentValue = 1
      if means == "cancel" { store.cancel() } else { store.resetState() }
      #expect(events.count == told)
      #expect(heard.count == heardBefore)
      #expect(!store.isLoading)
    }
    await #expect(throws: CancellationError.self) { try await run.value }
    let shown = means == "cancel" ? "state 1" : "state nil"
    #expect(events.names().dropFirst(told) == [shown, "ended CancellationError()"])
    #expect(heard.names().dropFirst(heardBefore) == [shown, "ended CancellationError()"])
    subscription.cancel()
  }

  @Test(
    "Who waits for a run goes on when it has been told that it was cancelled inside",
    arguments: ["store", "task", "reset"])
  func cancelsBehind(means: String) async throws {
    let order = Recorder<String>()
    let query = Query<Int, any Error>(path: ["cancelled"]) { _ in
      try await withTaskCancellationHandler {
        try await remote.call(OperationContext(), OperationContinuation { _ in })
      } onCancel: {
        order.append("cancelled")
      }
    }
    let cancelled = OperationStore.detached(query: query)
    let run = Task { try await cancelled.run() }
    await remote.wait(forCalls: 1)
    let subscription = cancelled.subscribe { event in
      if case .runEnded = event { order.append("told") }
    }
    cancelled.withExclusiveAccess {
      switch means {
      case "store": cancelled.cancel()
      case "task": cancelled.activeTasks.first?.cancel()
      default: cancelled.resetState()
      }
      order.append("end of access")
    }
    #expect(order.all == ["end of access", "told", "cancelled"])
    await #expect(throws: CancellationError.self) { try await run.value }
    withExtendedLifetime(subscription) {}
  }

  @Test(
    "What a run gives that was cancelled inside reaches nobody, whenever it comes",
    arguments: 0..<50)
  func droppedResult(round: Int) async throws {
    let deaf = Remote<Int>(isDeaf: true)
    let store = OperationStore.detached(query: deaf.query())
    let results = Recorder<Int?>()
    let run = Task { results.append(try? await store.run()) }
    await deaf.wait(forCalls: 1)
    let subscription = store.subscribe { event in
      guard case .runEnded = event else { return }
      // It comes while this is told, before who waits has been told to go on.
      deaf.answer(7)
      while results.count == 0 { sched_yield() }
    }
    await onThreads(1) { _ in
      store.withExclusiveAccess {
        if round.isMultiple(of: 2) { store.cancel() } else { store.resetState() }
      }
    }
    await run.value
    #expect(results.all == [nil])
    #expect(store.currentValue == nil)
    withExtendedLifetime(subscription) {}
  }

  @Test("An invalidated value stays so for others until what takes its place is seen")
  func invalidation() async {
    let store = OperationStore.detached(query: remote.query().neverStale())
    store.currentValue = 1
    store.invalidate()
    let seen = Recorder<Bool>()
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    async let owner: Void = onThreads(1) { _ in
      store.withExclusiveAccess {
        store.currentValue = 2
        seen.append(store.isStale)
        isInside.open()
        mayEnd.wait()
      }
    }
    await isInside.wait()
    #expect(store.currentValue == 1)
    #expect(store.isStale)
    mayEnd.open()
    await owner
    #expect(seen.all == [false])
    #expect(!store.isStale)
  }

  @Test("A store leaves its client without waiting for who has it to himself")
  func leavesClient() async {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: remote.query().neverStale())
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    await withWatchdog({ "clearing waits for exclusive access" }) {
      async let owner: Void = onThreads(1) { _ in
        store.withExclusiveAccess {
          isInside.open()
          mayEnd.wait()
        }
      }
      await isInside.wait()
      client.clearStores()
      mayEnd.open()
      await owner
    }
    #expect(client.stores(matching: []).isEmpty)
  }

  @Test("Access that changes nothing tells nobody")
  func noChange() {
    let store = makeStore()
    let (events, subscription) = store.record()
    store.withExclusiveAccess { _ = store.currentValue }
    #expect(events.count == 1)
    subscription.cancel()
  }

  @Test("Access inside access belongs to it: one notification, and the closure gets the store")
  func nested() {
    let store = makeStore()
    let (events, subscription) = store.record()
    store.withExclusiveAccess { store in
      store.currentValue = 1
      store.withExclusiveAccess { store in store.currentValue = (store.currentValue ?? 0) + 1 }
      #expect(events.count == 1)
      store.currentValue = (store.currentValue ?? 0) + 1
    }
    #expect(events.names() == ["state 0", "state 3"])
    subscription.cancel()
  }

  @Test("Access that throws keeps its writes, and tells them")
  func throwing() {
    let store = makeStore()
    let (events, subscription) = store.record()
    #expect(throws: Failed(code: 1)) {
      try store.withExclusiveAccess {
        store.currentValue = 1
        throw Failed(code: 1)
      }
    }
    #expect(store.currentValue == 1)
    #expect(events.names() == ["state 0", "state 1"])
    store.currentValue = 2
    #expect(events.names().last == "state 2")
    subscription.cancel()
  }

  @Test("Reads of other threads see what was there before, without waiting; their writes wait")
  func otherThreads() async {
    let store = makeStore()
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    let order = Recorder<String>()
    await withWatchdog({ "others wait for exclusive access: \(order.all)" }) {
      async let owner: Void = onThreads(1) { _ in
        store.withExclusiveAccess {
          store.currentValue = 1
          isInside.open()
          mayEnd.wait()
          order.append("access ended")
        }
      }
      await isInside.wait()
      await onThreads(4) { _ in
        #expect(store.currentValue == 0)
        #expect(store.state.currentValue == 0)
        #expect(store.valueUpdateCount == 1)
        #expect(!store.isLoading)
        #expect(store.status.isSuccess)
      }
      let isWriting = Latch()
      async let writer: Void = onThreads(1) { _ in
        isWriting.open()
        store.currentValue = 2
        order.append("written")
      }
      await isWriting.wait()
      mayEnd.open()
      _ = await (owner, writer)
    }
    #expect(order.all == ["access ended", "written"])
    #expect(store.currentValue == 2)
    #expect(store.valueUpdateCount == 3)
  }

  @Test("A run that ends meanwhile waits, and is shown after the writes")
  func runEndsMeanwhile() async throws {
    let store = makeStore()
    let (events, subscription) = store.record()
    async let value = store.run()
    await remote.wait(forCalls: 1)
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    async let owner: Void = onThreads(1) { _ in
      store.withExclusiveAccess {
        isInside.open()
        mayEnd.wait()
        store.currentValue = 1
      }
    }
    await isInside.wait()
    remote.answer(9)
    mayEnd.open()
    await owner
    #expect(try await value == 9)
    await events.wait { $0.last?.name == "ended 9" }
    #expect(events.names().suffix(3) == ["state 1…", "state 9", "ended 9"])
    subscription.cancel()
  }

  @Test("Access may cancel, reset, invalidate, subscribe and schedule")
  func everything() {
    let store = makeStore()
    let inner = Mutex(OperationSubscription.empty)
    store.withExclusiveAccess {
      _ = store.runTask()
      store.cancel()
      store.invalidate()
      inner.withLock { $0 = store.subscribe { _ in } }
      store.resetState()
      store.currentValue = 5
    }
    #expect(store.currentValue == 5)
    #expect(store.subscriberCount == 1)
    inner.withLock { $0 }.cancel()
    #expect(!store.isLoading)
  }

  @Test("Eight threads that count with exclusive access lose nothing", arguments: 0..<50)
  func counting(_: Int) async {
    let store = makeStore()
    let (events, subscription) = store.record()
    await onThreads(8) { _ in
      for _ in 0..<20 {
        store.withExclusiveAccess { store.currentValue = (store.currentValue ?? 0) + 1 }
      }
    }
    #expect(store.currentValue == 160)
    #expect(events.all.compactMap { $0.state?.currentValue } == Array(0...160))
    subscription.cancel()
  }
}
