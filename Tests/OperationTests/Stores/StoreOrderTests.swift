import Operation
import Synchronization
import Testing

/// Promise 2: commits are heard in their order, none twice, none lost, and the last one is the
/// state.
@Suite("Order") struct StoreOrderTests {
  private func makeStore() -> OperationStore<QueryState<Int, any Error>> {
    OperationStore.detached(query: Query(path: ["order"]) { _ in 0 })
  }

  @Test(
    "Eight threads write, and every subscriber hears each commit once, in order", arguments: 0..<40)
  func eightThreads(_: Int) async {
    let store = makeStore()
    let heard = (0..<3).map { _ in Recorder<Int>() }
    let subscriptions = heard.map { heard in
      store.subscribe { event in
        if let state = event.state { heard.append(state.valueUpdateCount) }
      }
    }
    await onThreads(8) { thread in
      for step in 0..<50 { store.currentValue = thread * 100 + step }
    }
    for heard in heard { #expect(heard.all == Array(0...400)) }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("The last state that a subscriber hears of is the store's", arguments: 0..<200)
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

  @Test("Subscribers are called in the order in which they subscribed, also after some have left")
  func subscribers() {
    let store = makeStore()
    let heard = Recorder<Int>()
    let subscriptions = (0..<20).map { index in
      store.subscribe { event in
        if event.state?.currentValue == 1 { heard.append(index) }
      }
    }
    for index in stride(from: 0, to: 20, by: 3) { subscriptions[index].cancel() }
    let late = store.subscribe { event in
      if event.state?.currentValue == 1 { heard.append(99) }
    }
    store.currentValue = 1
    #expect(heard.all == (0..<20).filter { $0 % 3 != 0 } + [99])
    late.cancel()
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A subscription has heard of the present state when it is made, and of each later one once")
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

  @Test("What happens while a subscriber is told of the present state comes behind that")
  func changeInGreeting() async {
    let store = makeStore()
    store.currentValue = 0
    let (isGreeted, goOn) = (Latch(), ThreadLatch())
    let heard = Recorder<String>()
    await withWatchdog({ "a greeting stalls other threads" }) {
      async let greeting: Void = onThreads(1) { _ in
        let subscription = store.subscribe { event in
          guard let value = event.state?.currentValue else { return }
          heard.append("\(value)")
          if value == 0 {
            isGreeted.open()
            goOn.wait()
          }
          heard.append("\(value) was heard")
        }
        subscription.cancel()
      }
      await isGreeted.wait()
      store.currentValue = 1
      let other = store.subscribe { heard.append("other \($0.state?.currentValue ?? -1)") }
      #expect(heard.all == ["0"])
      goOn.open()
      await greeting
      #expect(heard.all == ["0", "0 was heard", "1", "1 was heard", "other 1"])
      other.cancel()
    }
  }

  @Test(
    "Who subscribes while others write hears of one state and of all later ones", arguments: 0..<100
  )
  func subscribesMeanwhile(_: Int) async {
    let store = makeStore()
    let heard = Recorder<Int>()
    let subscription = Mutex(OperationSubscription.empty)
    await onThreads(3) { thread in
      if thread == 0 {
        let made = store.subscribe { event in
          if let state = event.state { heard.append(state.valueUpdateCount) }
        }
        subscription.withLock { $0 = made }
      } else {
        for step in 0..<20 { store.currentValue = step }
      }
    }
    let counts = heard.all
    #expect(counts == Array((counts.first ?? 0)...40))
    subscription.withLock { $0 }.cancel()
  }

  @Test(
    "A stream that keeps everything hears each commit of eight threads, in order", arguments: 0..<20
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
    "A reader of the newest state sees counts that grow, and ends with the last", arguments: 0..<100
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
