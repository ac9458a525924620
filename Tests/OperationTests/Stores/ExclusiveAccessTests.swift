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

  @Test("Several writes cause one notification, at the end, with the last state")
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
    "A subscriber inside access is notified at the end, also of a change before its subscription",
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
    "The end of a run that is cancelled or reset inside access is notified after the one change",
    arguments: ["cancel", "reset"])
  func runsInside(means: String) async throws {
    let store = makeStore()
    let (events, subscription) = store.record()
    let received = Recorder<OperationEvent<QueryState<Int, any Error>>>()
    let run = Task { try await store.run { received.append($0) } }
    await remote.wait(forCalls: 1)
    let (eventsBefore, receivedBefore) = (events.count, received.count)
    store.withExclusiveAccess {
      store.currentValue = 1
      if means == "cancel" { store.cancel() } else { store.resetState() }
      #expect(events.count == eventsBefore)
      #expect(received.count == receivedBefore)
      #expect(!store.isLoading)
    }
    await #expect(throws: CancellationError.self) { try await run.value }
    let displayed = means == "cancel" ? "state 1" : "state nil"
    #expect(events.names().dropFirst(eventsBefore) == [displayed, "ended CancellationError()"])
    #expect(received.names().dropFirst(receivedBefore) == [displayed, "ended CancellationError()"])
    subscription.cancel()
  }

  @Test(
    "The task of a run that is cancelled inside access is cancelled after its end is notified",
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
      if case .runEnded = event { order.append("notified") }
    }
    cancelled.withExclusiveAccess {
      switch means {
      case "store": cancelled.cancel()
      case "task": cancelled.activeTasks.first?.cancel()
      default: cancelled.resetState()
      }
      order.append("end of access")
    }
    #expect(order.all == ["end of access", "notified", "cancelled"])
    await #expect(throws: CancellationError.self) { try await run.value }
    withExtendedLifetime(subscription) {}
  }

  @Test(
    "The result of a run that was cancelled inside access reaches no caller, whenever it comes",
    arguments: 0..<50)
  func droppedResult(round: Int) async throws {
    let uncancellable = Remote<Int>(ignoresCancellation: true)
    let store = OperationStore.detached(query: uncancellable.query())
    let results = Recorder<Int?>()
    let run = Task { results.append(try? await store.run()) }
    await uncancellable.wait(forCalls: 1)
    let subscription = store.subscribe { event in
      guard case .runEnded = event else { return }
      // The result comes during this notification, before the waiter is resumed.
      uncancellable.answer(7)
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

  @Test("For other threads, a value stays fresh until the failure that outdates it is visible")
  func failure() async {
    let store = OperationStore.detached(query: remote.query().stale(after: .seconds(1_000)))
    store.currentValue = 1
    let seen = Recorder<Bool>()
    let (isInside, mayEnd) = (Latch(), ThreadLatch())
    async let owner: Void = onThreads(1) { _ in
      store.withExclusiveAccess {
        store.setResult(to: .failure(Failed()))
        seen.append(store.isStale)
        isInside.open()
        mayEnd.wait()
      }
    }
    await isInside.wait()
    #expect(!store.isStale)
    mayEnd.open()
    await owner
    #expect(seen.all == [true] && store.isStale)
  }

  @Test("For other threads, a value stays invalidated until its replacement is visible")
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

  @Test("A store is removed from its client without waiting for the owner of exclusive access")
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

  @Test("Access that changes nothing notifies no subscriber")
  func noChange() {
    let store = makeStore()
    let (events, subscription) = store.record()
    store.withExclusiveAccess { _ = store.currentValue }
    #expect(events.count == 1)
    subscription.cancel()
  }

  @Test("Nested access is part of the outer one: one notification, and the closure gets the store")
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

  @Test("Access that throws keeps its writes, and notifies them")
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

  @Test("Other threads read the earlier state without waiting, and their writes wait")
  func otherThreads() async {
    let store = makeStore()
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    let order = Recorder<String>()
    await withWatchdog({ "other threads wait for exclusive access: \(order.all)" }) {
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

  @Test("A run that ends during access waits, and its value is displayed after the writes")
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

  @Test("The owner of exclusive access may cancel, reset, invalidate, subscribe and schedule")
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

  @Test("Eight threads that count with exclusive access lose no update", arguments: 0..<50)
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
