import Foundation
import Operation
import Synchronization
import Testing

/// Promise 1: no handler is called under a lock, and a slow one blocks no other thread.
@Suite("Re-entrancy") struct StoreReentrancyTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private func makeStore(_ path: OperationPath = ["counter"]) -> Store {
    OperationClient(defaults: .testing).store(for: Query(path: path) { _ in 42 }.neverStale())
  }

  @Test("A handler may read, write, subscribe, run, cancel, reset and invalidate its own store")
  func ownStore() async throws {
    let store = makeStore()
    store.currentValue = 0
    let done = Latch()
    let values = Recorder<Int?>()
    let own = Monitor<OperationSubscription?>(nil)
    let subscription = store.subscribe { event in
      guard let value = event.state?.currentValue else { return }
      values.append(value)
      switch value {
      case 1: store.currentValue = (store.currentValue ?? 0) + 1
      case 2:
        own.update { $0 = store.subscribe { _ in } }
        store.withExclusiveAccess { store.currentValue = 3 }
      case 3:
        own.value?.cancel()
        store.cancel()
        _ = store.runTask()
        store.invalidate()
        store.setResult(to: .failure(Failed()))
        store.resetState()
        store.currentValue = 4
      case 4:
        Task {
          _ = try await store.run()
          done.open()
        }
      default: break
      }
    }
    store.currentValue = 1
    await done.wait()
    #expect(store.currentValue == 42)
    #expect(values.all.compactMap { $0 }.contains(4))
    subscription.cancel()
    #expect(store.subscriberCount == 0)
  }

  @Test("A handler that cancels itself and another one receives nothing more, nor does the other")
  func cancels() {
    let store = makeStore()
    store.currentValue = 0
    let own = Monitor(OperationSubscription.empty)
    let other = Monitor(OperationSubscription.empty)
    let ownCount = Atomic(0)
    let otherCount = Atomic(0)
    own.update {
      $0 = store.subscribe { event in
        ownCount.wrappingAdd(1, ordering: .relaxed)
        guard event.state?.currentValue == 1 else { return }
        own.value.cancel()
        other.value.cancel()
      }
    }
    other.update {
      $0 = store.subscribe { _ in otherCount.wrappingAdd(1, ordering: .relaxed) }
    }
    store.currentValue = 1
    store.currentValue = 2
    #expect(ownCount.load(ordering: .relaxed) == 2)
    #expect(otherCount.load(ordering: .relaxed) == 1)
    #expect(store.subscriberCount == 0)
  }

  @Test("A handler that is cancelled while another is called is released when all have been called")
  func releases() {
    /// Under the lock of the store its deinit would never return.
    final class Held: Sendable {
      let store: Store
      init(_ store: Store) { self.store = store }
      deinit { store.currentValue = (store.currentValue ?? 0) + 100 }
    }
    let store = makeStore()
    store.currentValue = 0
    let other = Monitor(OperationSubscription.empty)
    let received = Recorder<Int?>()
    let first = store.subscribe { event in
      guard event.state?.currentValue == 1 else { return }
      other.value.cancel()
      #expect(store.subscriberCount == 2)
    }
    weak var held: Held?
    do {
      let object = Held(store)
      held = object
      other.update {
        $0 = store.subscribe { event in
          withExtendedLifetime(object) { received.append(event.state?.currentValue) }
        }
      }
    }
    let last = store.subscribe { received.append($0.state?.currentValue.map { $0 + 10 }) }
    store.currentValue = 1
    #expect(held == nil)
    #expect(received.all == [0, 10, 11, 111])
    store.currentValue = 2
    #expect(received.all == [0, 10, 11, 111, 12])
    withExtendedLifetime((first, last)) {}
  }

  @Test("A handler that subscribes in a call receives the current state right after the call")
  func subscribesInside() {
    let store = makeStore()
    store.currentValue = 0
    let received = Recorder<Int?>()
    let inner = Monitor<OperationSubscription?>(nil)
    let outer = store.subscribe { event in
      guard event.state?.currentValue == 1, inner.value == nil else { return }
      let subscription = store.subscribe { received.append($0.state?.currentValue) }
      inner.update { $0 = subscription }
      #expect(received.all.isEmpty)
    }
    store.currentValue = 1
    store.currentValue = 2
    #expect(received.all == [1, 2])
    outer.cancel()
    inner.value?.cancel()
  }

  @Test("A run starts for the first subscriber if the store is stale after its first notification")
  func firstCall() {
    let client = OperationClient(defaults: .testing)
    let gate = AsyncGate()
    /// Subscribes with a handler that acts in its first call. Returns the number of leases.
    func leases(
      _ name: String, isNeverStale: Bool, _ act: @escaping @Sendable (Store) -> Void
    ) -> Int {
      let query = Query<Int, any Error>(path: [name]) { _ in
        await gate.wait()
        return 42
      }
      let store =
        isNeverStale ? client.store(for: query.neverStale()) : client.store(for: query)
      store.currentValue = 1
      let hasActed = Atomic(false)
      let subscription = store.subscribe { _ in
        if !hasActed.exchange(true, ordering: .relaxed) { act(store) }
      }
      defer { subscription.cancel() }
      return store.leaseCount
    }
    #expect(leases("good", isNeverStale: true) { _ in } == 0)
    #expect(leases("reset", isNeverStale: true) { $0.resetState() } == 0)
    #expect(leases("invalidated", isNeverStale: true) { $0.invalidate() } == 1)
    #expect(leases("stale", isNeverStale: false) { _ in } == 1)
    #expect(leases("written", isNeverStale: false) { $0.currentValue = 2 } == 1)
    gate.open()
  }

  @Test("Handlers of two stores that write to each other end, and both stores agree")
  func twoStores() {
    let first = makeStore(["first"])
    let second = makeStore(["second"])
    first.currentValue = 0
    second.currentValue = 0
    let forth = first.subscribe { event in
      if let value = event.state?.currentValue, value < 100 { second.currentValue = value + 1 }
    }
    let back = second.subscribe { event in
      if let value = event.state?.currentValue, value < 100 { first.currentValue = value + 1 }
    }
    #expect((first.currentValue ?? 0) + (second.currentValue ?? 0) >= 199)
    forth.cancel()
    back.cancel()
  }

  @Test("A slow handler blocks no read and no write of other threads")
  func slowHandler() async {
    let store = makeStore()
    store.currentValue = 0
    let isInside = Latch()
    let mayContinue = ThreadLatch()
    let subscription = store.subscribe { event in
      // No other caller writes this value, so the handler waits once.
      guard event.state?.currentValue == -1 else { return }
      isInside.open()
      mayContinue.wait()
    }
    let isDone = Latch()
    await withWatchdog({ "a slow handler blocks other threads" }) {
      async let slow: Void = onThreads(1) { _ in store.currentValue = -1 }
      await isInside.wait()
      await onThreads(4) { index in
        _ = store.currentValue
        store.currentValue = 10 + index
        _ = store.state
        _ = store.isStale
        store.withExclusiveAccess { store.currentValue = (store.currentValue ?? 0) + 1 }
        store.subscribe { _ in }.cancel()
        store.resetState()
        store.currentValue = 7
        isDone.open()
      }
      #expect(store.currentValue == 7)
      mayContinue.open()
      await slow
    }
    #expect(isDone.isOpen)
    subscription.cancel()
  }

  @Test("A slow handler of the notification of exclusive access blocks no writer that waited")
  func slowHandlerOfExclusiveAccess() async {
    let store = makeStore()
    store.currentValue = 0
    let isInside = Latch()
    let mayEnd = ThreadLatch()
    let isSlow = Latch()
    let isWriting = Monitor(0)
    let mayContinue = ThreadLatch()
    let subscription = store.subscribe { event in
      guard event.state?.currentValue == 1 else { return }
      isSlow.open()
      mayContinue.wait()
    }
    await withWatchdog({ "a writer waits for the handler that exclusive access called" }) {
      async let owner: Void = onThreads(1) { _ in
        store.withExclusiveAccess {
          store.currentValue = 1
          isInside.open()
          mayEnd.wait()
        }
      }
      await isInside.wait()
      let done = Monitor(0)
      async let writers: Void = onThreads(3) { _ in
        isWriting.update { $0 += 1 }
        store.currentValue = 2
        done.update { $0 += 1 }
      }
      await isWriting.wait { $0 == 3 }
      mayEnd.open()
      await isSlow.wait()
      // The thread that delivers is in the handler, and no other thread waits for it.
      await done.wait { $0 >= 2 }
      #expect(store.currentValue == 2)
      mayContinue.open()
      _ = await (owner, writers)
    }
    subscription.cancel()
  }

  @Test(
    "Handlers that perform every operation on two stores, on eight threads, end", arguments: 0..<25)
  func storm(round: Int) async {
    let stores = [makeStore(["first"]), makeStore(["second"])]
    let log = Mutex<[Int: String]>([:])
    let work = Mutex(2_000)
    let note: @Sendable (Int, String) -> Void = { thread, what in
      log.withLock { $0[thread] = what }
    }
    let act: @Sendable (Int, Int) -> Void = { thread, seed in
      let left = work.withLock { left in
        left -= 1
        return left
      }
      guard left > 0 else { return }
      let store = stores[seed % 2]
      note(thread, "step \(seed % 10)")
      switch seed % 10 {
      case 0: store.currentValue = seed
      case 1: _ = store.state
      case 2: store.subscribe { _ in _ = store.currentValue }.cancel()
      case 3: store.cancel()
      case 4: store.resetState()
      case 5: store.invalidate()
      case 6: Task { try await store.run() }
      case 7: _ = store.runTask()
      case 8: store.withExclusiveAccess { store.currentValue = seed }
      default: store.setResult(to: .failure(Failed(code: seed)))
      }
      note(thread, "after step \(seed % 10)")
    }
    await withWatchdog({ "round \(round): \(log.withLock { $0 })" }) {
      let subscriptions = stores.flatMap { store in
        (0..<3).map { index in
          store.subscribe { event in
            guard event.state != nil else { return }
            act(100 + index, round &+ index &* 7 &+ (event.state?.valueUpdateCount ?? 0))
          }
        }
      }
      await onThreads(8) { thread in
        for step in 0..<40 { act(thread, thread &* 31 &+ step &* 17 &+ round) }
      }
      work.withLock { $0 = 0 }
      for subscription in subscriptions { subscription.cancel() }
      for store in stores {
        store.cancel()
        // A task that was started may still deliver, and subscribe and cancel in its handler.
        await store.settles { $0.leaseCount == 0 && $0.subscriberCount == 0 }
      }
    }
  }

  @Test("A clock that is read for the age of a value may read its store")
  func clockLooks() {
    let clock = ActingClock()
    let store = OperationClient(defaults: .testing, clock: clock)
      .store(for: Query(path: ["aged"]) { _ in 42 }.stale(after: .seconds(10)))
    store.currentValue = 1
    let seen = Recorder<Int?>()
    clock.setAction { [weak store] in seen.append(store?.currentValue) }
    #expect(!store.isStale)
    #expect(seen.all.first == 1)
    clock.setAction(nil)
  }
}

/// A clock that stands still, and performs an action before it returns the date.
private final class ActingClock: OperationClock {
  private let base = ManualClock()
  private let action = Mutex<(@Sendable () -> Void)?>(nil)

  func setAction(_ new: (@Sendable () -> Void)?) { action.withLock { $0 = new } }

  func now() -> Date {
    action.withLock { $0 }?()
    return base.now()
  }

  func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }
}
