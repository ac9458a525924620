import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Operation

@Suite struct MatchingTests {
  // No store runs automatically, so that the tests cause every notification.
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))

  private func list(_ id: Int) -> OperationStore<QueryState<[Int], any Error>> {
    client.store(for: Query(path: ["lists", id]) { _ in [id] })
  }

  @Test("Stores match by prefix, by type of state, and by path")
  func matching() async throws {
    let (first, second) = (list(1), list(2))
    let name = client.store(for: Query(path: ["name"]) { _ in "name" })
    let lists = client.stores(matching: ["lists"], of: QueryState<[Int], any Error>.self)
    #expect(
      Set(lists.map { ObjectIdentifier($0) }) == [
        ObjectIdentifier(first), ObjectIdentifier(second),
      ])
    #expect(lists[["lists", 2]] === second)
    #expect(lists[["lists", 3]] == nil)
    #expect(client.stores(matching: []).count == 3)
    #expect(client.stores(matching: ["lists"], of: QueryState<String, any Error>.self).isEmpty)
    #expect(
      client.stores(matching: ["name"])[["name"]].map { ObjectIdentifier($0.base) }
        == ObjectIdentifier(name))
  }

  @Test("Stores match by being stale, running or observed")
  func filters() async throws {
    let store = client.store(for: Query(path: ["lists", 1]) { _ in [1] }.neverStale())
    let other = list(2)
    #expect(client.stores(matching: ["lists"], where: .stale).count == 2)
    try await store.run()
    #expect(client.stores(matching: ["lists"], where: .stale).map(\.path) == [other.path])
    let subscription = store.subscribe { _ in }
    #expect(client.stores(matching: ["lists"], where: .observed).map(\.path) == [store.path])
    #expect(client.stores(matching: [], where: [.observed, .stale]).isEmpty)
    let task = other.runTask()
    #expect(client.stores(matching: [], where: .running).map(\.path) == [other.path])
    subscription.cancel()
    try await task.runIfNeeded()
  }

  @Test("A subscriber is notified of stores that are added or removed below a path, in order, once")
  func changes() {
    let log = Mutex<[String]>([])
    let subscription = client.subscribe(matching: ["lists"]) { change in
      let added = change.storesAdded.map { "+\($0.path)" }
      let removed = change.storesRemoved.map { "-\($0.path)" }.sorted()
      log.withLock { $0 += added + removed }
    }
    _ = list(1)
    _ = list(1)
    _ = client.store(for: Query(path: ["name"]) { _ in "" })
    _ = list(2)
    client.clearStores(matching: ["lists"])
    client.clearStore(with: ["name"])
    subscription.cancel()
    _ = list(1)
    #expect(
      log.withLock { $0 } == [
        #"+["lists", 1]"#, #"+["lists", 2]"#, #"-["lists", 1]"#, #"-["lists", 2]"#,
      ])
  }

  @Test("The stores of a change are found by their paths")
  func changedStores() {
    let log = Mutex<[OperationStoreChange]>([])
    let subscription = client.subscribe { change in log.withLock { $0.append(change) } }
    let store = list(1)
    client.clearStores(matching: ["lists"])
    subscription.cancel()
    let changes = log.withLock { $0 }
    #expect(changes.map { $0.storesAdded[store.path]?.path == store.path } == [true, false])
    #expect(changes.map { $0.storesRemoved[store.path]?.path == store.path } == [false, true])
    #expect(changes.first?.storesAdded[["lists", 2]] == nil)
  }

  @Test("A store that was removed continues to work, and its path gets a new one")
  func cleared() async throws {
    let store = list(1)
    try await store.run()
    client.clearStores(matching: ["lists"])
    #expect(client.store(with: ["lists", 1]) == nil)
    let new = list(1)
    #expect(new !== store)
    #expect(new.currentValue == nil)
    #expect(store.currentValue == [1])
  }

  @Test("withStores notifies the subscribers of each store once")
  func exclusive() {
    let stores = [list(1), list(2)]
    let notificationCount = Mutex(0)
    let subscriptions = stores.map { store in
      store.subscribe { _ in notificationCount.withLock { $0 += 1 } }
    }
    let before = notificationCount.withLock { $0 }
    client.withStores(matching: ["lists"], of: QueryState<[Int], any Error>.self) { stores in
      for store in stores {
        store.currentValue = [7]
        store.currentValue = [8]
      }
    }
    #expect(notificationCount.withLock { $0 } - before == 2)
    #expect(stores.allSatisfy { $0.currentValue == [8] })
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("Subscribers are notified when the exclusive access to all stores has ended")
  func notifiedAfterAccess() async {
    let stores = [list(1), list(2)]
    let (began, gate) = (Monitor(false), DispatchSemaphore(value: 0))
    let isLate = Monitor(false)
    let subscriptions = (0..<2).map { index in
      stores[index].subscribe { event in
        guard began.value, event.state?.currentValue == [8] else { return }
        // Another thread writes the other store meanwhile.
        let other = stores[1 - index]
        Thread.detachNewThread {
          other.currentValue = [9]
          gate.signal()
        }
        if gate.wait(timeout: .now() + .seconds(20)) == .timedOut { isLate.update { $0 = true } }
      }
    }
    began.update { $0 = true }
    await onThreads(1) { [client] _ in
      client.withStores(matching: ["lists"], of: QueryState<[Int], any Error>.self) { stores in
        for store in stores { store.currentValue = [8] }
      }
    }
    #expect(!isLate.value)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("withStores has exclusive access to any number of stores")
  func manyStores() {
    let stores = (0..<20_000).map { list($0) }
    client.withStores(matching: ["lists"], of: QueryState<[Int], any Error>.self) { stores in
      for store in stores { store.currentValue = [1] }
    }
    #expect(stores.allSatisfy { $0.currentValue == [1] })
  }

  /// The time of an invalidation of some stores in exclusive access, for each of them.
  private func invalidationTime(count: Int) async throws -> Duration {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let bases = (0..<count).map { id in Query<Int, any Error>(path: ["base", id]) { _ in id } }
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      bases.reduce(0) { $0 + (context.value(of: $1) ?? 1) }
    }
    try await client.fetch(reader)
    return client.withStores(matching: ["base"], of: QueryState<Int, any Error>.self) { _ in
      processorTime { client.invalidate(matching: ["base"]) } / count
    }
  }

  @Test("An invalidation in exclusive access costs each of many stores what it costs one of few")
  func invalidationInAccess() async throws {
    let few = try await invalidationTime(count: 200)
    let many = try await invalidationTime(count: 4_000)
    #expect(many < few * 5, "200: \(few), 4,000: \(many)")
  }
}
