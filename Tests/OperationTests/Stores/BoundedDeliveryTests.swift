import Dispatch
import Operation
import Synchronization
import Testing

/// The deliveries of one thread for others, and the queue of a subscriber to the newest state.
@Suite("Bounded delivery", .timeLimit(.minutes(5))) struct BoundedDeliveryTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private let store = Store.detached(query: Query<Int, any Error>(path: ["number"]) { _ in 0 })

  @Test("A write returns, even if its delivery causes an endless series of writes")
  func writeReturns() async {
    let isOver = Atomic(false)
    let delivered = Atomic(0)
    let store = store
    await withTaskGroup(of: Void.self) { group in
      let subscription = store.subscribe { event in
        guard case .stateChanged(let state) = event, let value = state.currentValue else { return }
        delivered.store(value, ordering: .relaxed)
        if !isOver.load(ordering: .relaxed), value < 500_000 { store.currentValue = value + 1 }
      }
      store.currentValue = 1
      // A task of the library takes over the delivery, and continues it.
      let seen = delivered.load(ordering: .relaxed)
      #expect(seen < 500_000)
      let later = min(seen + 1_000, 500_000)
      while delivered.load(ordering: .relaxed) < later { await Task.yield() }
      isOver.store(true, ordering: .relaxed)
      while delivered.load(ordering: .relaxed) != store.currentValue { await Task.yield() }
      subscription.cancel()
      await group.waitForAll()
    }
  }

  @Test("Every event arrives once and in order, whichever thread delivers it")
  func order() async {
    let store = store
    let values = Mutex<[Int]>([])
    let subscription = store.subscribe { event in
      guard case .stateChanged(let state) = event, let value = state.currentValue else { return }
      values.withLock { $0.append(value) }
      if value < 5_000 { store.currentValue = value + 1 }
    }
    store.currentValue = 1
    while values.withLock({ $0.last }) != 5_000 { await Task.yield() }
    #expect(values.withLock { $0 } == Array(1...5_000))
    subscription.cancel()
  }

  @Test("Every change of the stores of a client arrives once and in order, however many there are")
  func stores() async {
    let client = OperationClient(defaults: .testing, clock: ManualClock(), retention: .forever)
    let (added, count) = (EventLog<OperationPath>(), 12_000)
    let subscription = client.subscribe { change in
      for store in change.storesAdded {
        let next = added.append(store.path)
        if next < count { _ = client.store(for: Query<Int, any Error>(path: [next]) { _ in 0 }) }
      }
    }
    _ = client.store(for: Query<Int, any Error>(path: [0]) { _ in 0 })
    await added.wait(for: count)
    #expect(added.values == (0..<count).map { [$0] })
    subscription.cancel()
  }

  @Test("A blocked reader of states has one state queued, and gets the newest")
  func coalescing() async {
    let (isBlocked, mayContinue) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let calls = Atomic(0)
    let store = store
    let states = store.states.map { state in
      if calls.wrappingAdd(1, ordering: .relaxed).newValue == 2 {
        isBlocked.signal()
        mayContinue.wait()
      }
      return state.currentValue
    }
    var iterator = states.makeAsyncIterator()
    let writer = DispatchQueue(label: "writer")
    writer.async { store.currentValue = 1 }
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        isBlocked.wait()
        continuation.resume()
      }
    }
    for value in 2...10_000 { store.currentValue = value }
    mayContinue.signal()
    await withCheckedContinuation { continuation in writer.async { continuation.resume() } }
    while let value = await iterator.next(), value != 10_000 {}
    #expect(calls.load(ordering: .relaxed) == 3, "the first state, the blocked one, the newest")
  }

  @Test("A subscriber to events receives each of them beside a subscriber to the newest state")
  func mixed() async throws {
    let store = store
    let events = Mutex<[String]>([])
    let subscription = store.subscribe { event in
      let name =
        switch event {
        case .stateChanged(let state): "state \(state.currentValue ?? -1) \(state.isLoading)"
        case .runStarted: "started"
        case .yielded: "yielded"
        case .runEnded: "ended"
        }
      events.withLock { $0.append(name) }
    }
    var newest = store.values.makeAsyncIterator()
    try await store.run()
    subscription.cancel()
    #expect(
      events.withLock { $0 } == [
        "state -1 false", "started", "state -1 true", "state 0 false", "ended",
      ])
    while let value = await newest.next(), value != 0 {}
  }

  @Test(
    "A caller of higher priority raises the priority of the run that it joins",
    arguments: ["store", "task", "no store"])
  func priority(caller: String) async throws {
    let started = EventLog<Int>()
    let query = Query<Int, any Error>(path: ["prioritized"]) { _ in
      started.append(0)
      while Task.currentPriority < .high, !Task.isCancelled { await Task.yield() }
      return Int(Task.currentPriority.rawValue)
    }.deduplicated()
    let store = Store.detached(query: query)
    let low = Task(priority: .background) {
      try await caller == "no store" ? query.run() : store.run()
    }
    // The task begins when the other tests leave time for it.
    await started.wait(for: 1)
    let high = Task(priority: .high) {
      switch caller {
      case "store": try await store.run()
      case "task": try await store.runTask().runIfNeeded()
      default: try await query.run()
      }
    }
    try await withTaskCancellationHandler {
      #expect(try await high.value >= Int(TaskPriority.high.rawValue))
      _ = try await low.value
    } onCancel: {
      store.cancel()
      low.cancel()
    }
  }

  @Test("A manual clock waits for a task that continues a delivery")
  func settles() async {
    let clock = ManualClock()
    let store = OperationClient(defaults: .quiet(), clock: clock)
      .store(for: Query<Int, any Error>(path: ["number"]) { _ in 0 })
    let delivered = Atomic(0)
    let subscription = store.subscribe { event in
      guard case .stateChanged(let state) = event, let value = state.currentValue else { return }
      delivered.store(value, ordering: .relaxed)
      if value < 15_000 { store.currentValue = value + 1 }
    }
    store.currentValue = 1
    await clock.settle()
    #expect(delivered.load(ordering: .relaxed) == 15_000)
    subscription.cancel()
  }
}
