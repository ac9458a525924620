import Operation
import Synchronization
import Testing

/// Promise 2: commits are notified in their order, none twice, none lost, and the last one is the
/// state.
@Suite("Order") struct StoreOrderTests {
  private func makeStore() -> OperationStore<QueryState<Int, any Error>> {
    OperationStore.detached(query: Query(path: ["order"]) { _ in 0 })
  }

  @Test(
    "Eight threads write, and every subscriber receives each commit once, in order",
    arguments: 0..<40)
  func eightThreads(_: Int) async {
    let store = makeStore()
    let received = (0..<3).map { _ in Recorder<Int>() }
    let subscriptions = received.map { received in
      store.subscribe { event in
        if let state = event.state { received.append(state.valueUpdateCount) }
      }
    }
    await onThreads(8) { thread in
      for step in 0..<50 { store.currentValue = thread * 100 + step }
    }
    for received in received { #expect(received.all == Array(0...400)) }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("The last state that a subscriber receives is the store's", arguments: 0..<200)
  func lastIsState(_: Int) async {
    let store = makeStore()
    let last = Mutex<Int?>(nil)
    let subscription = store.subscribe { event in
      if let state = event.state { last.withLock { $0 = state.currentValue } }
    }
    await onThreads(2) { thread in
      for step in 0..<5 { store.currentValue = thread * 10 + step }
    }
    #expect(last.withLock { $0 } == store.currentValue)
    subscription.cancel()
  }

  @Test("Subscribers are called in the order of their subscriptions, even after cancellations")
  func subscribers() {
    let store = makeStore()
    let received = Recorder<Int>()
    let subscriptions = (0..<20).map { index in
      store.subscribe { event in
        if event.state?.currentValue == 1 { received.append(index) }
      }
    }
    for index in stride(from: 0, to: 20, by: 3) { subscriptions[index].cancel() }
    let late = store.subscribe { event in
      if event.state?.currentValue == 1 { received.append(99) }
    }
    store.currentValue = 1
    #expect(received.all == (0..<20).filter { $0 % 3 != 0 } + [99])
    late.cancel()
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A subscriber receives the current state before subscribe returns, and each later one once")
  func initialState() async {
    let store = makeStore()
    store.currentValue = 3
    let (events, subscription) = store.record()
    #expect(events.names() == ["state 3"])
    store.currentValue = 4
    #expect(events.names() == ["state 3", "state 4"])
    subscription.cancel()
    store.currentValue = 5
    #expect(events.count == 2)
  }

  @Test("A change while a subscriber receives the current state is notified after that state")
  func changeInGreeting() async {
    let store = makeStore()
    store.currentValue = 0
    let (isNotified, mayContinue) = (Latch(), ThreadLatch())
    let received = Recorder<String>()
    await withWatchdog({ "a first notification blocks other threads" }) {
      async let firstNotification: Void = onThreads(1) { _ in
        let subscription = store.subscribe { event in
          guard let value = event.state?.currentValue else { return }
          received.append("\(value)")
          if value == 0 {
            isNotified.open()
            mayContinue.wait()
          }
          received.append("\(value) was received")
        }
        subscription.cancel()
      }
      await isNotified.wait()
      store.currentValue = 1
      let other = store.subscribe { received.append("other \($0.state?.currentValue ?? -1)") }
      #expect(received.all == ["0"])
      mayContinue.open()
      await firstNotification
      #expect(received.all == ["0", "0 was received", "1", "1 was received", "other 1"])
      other.cancel()
    }
  }

  @Test(
    "A subscription while other threads write receives one state and all later ones",
    arguments: 0..<100
  )
  func subscribesMeanwhile(_: Int) async {
    let store = makeStore()
    let received = Recorder<Int>()
    let subscription = Mutex(OperationSubscription.empty)
    await onThreads(3) { thread in
      if thread == 0 {
        let made = store.subscribe { event in
          if let state = event.state { received.append(state.valueUpdateCount) }
        }
        subscription.withLock { $0 = made }
      } else {
        for step in 0..<20 { store.currentValue = step }
      }
    }
    let counts = received.all
    #expect(counts == Array((counts.first ?? 0)...40))
    subscription.withLock { $0 }.cancel()
  }

  @Test(
    "A stream that buffers everything receives each commit of eight threads, in order",
    arguments: 0..<20
  )
  func stream(_: Int) async {
    let store = makeStore()
    var iterator = store.states(buffering: .all).makeAsyncIterator()
    await onThreads(8) { thread in
      for step in 0..<25 { store.currentValue = thread * 100 + step }
    }
    for count in 0...200 { #expect(await iterator.next()?.valueUpdateCount == count) }
  }

  @Test(
    "A reader of the newest state receives increasing counts, and the last one at the end",
    arguments: 0..<100
  )
  func newestWins(_: Int) async {
    let store = makeStore()
    let reader = Task {
      var last = -1
      for await state in store.states {
        #expect(state.valueUpdateCount > last)
        last = state.valueUpdateCount
        if last == 80 { break }
      }
      return last
    }
    await onThreads(4) { thread in
      for step in 0..<20 { store.currentValue = thread * 100 + step }
    }
    #expect(await reader.value == 80)
  }

  @Test("The awaiter of a run finds its value in the state", arguments: 0..<200)
  func commitBeforeAwaiters(round: Int) async throws {
    let store = OperationStore.detached(query: Query(path: ["order"]) { _ in round })
    let subscription = store.subscribe { _ in }
    let value = try await store.run()
    #expect(store.currentValue == value)
    #expect(!store.isLoading)
    subscription.cancel()
  }
}
