import Testing

@testable import Operation

/// A reader that does not await its sources depends on the order alone: it must run after them.
@Suite("The order of readers", .timeLimit(.minutes(5))) struct ReaderOrderTests {
  private typealias Number = Query<Int, any Error>
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  /// Returns a query for the value of a server. The calls after the first one wait at gates.
  private func source(
    _ server: Monitor<Int>, _ calls: EventLog<Int>, gates: [AsyncGate]
  ) -> Number {
    Number(path: ["source"]) { _ in
      let answer = server.value
      let count = calls.append(answer)
      if count > 1, count - 2 < gates.count { await gates[count - 2].wait() }
      return answer
    }
  }

  private func reader(of path: OperationPath) -> Number {
    Number(path: ["reader of \(path)"]) { context in
      await Task.yield()
      return context.value(of: Number(path: path) { _ in 0 }) ?? 0
    }
  }

  /// Returns the stores of a source and of its reader. Both have run, and are observed.
  private func observed(
    _ source: Number
  ) async throws -> (Store, Store, [OperationSubscription]) {
    let store = client.store(for: source.neverStale())
    let readerStore = client.store(for: reader(of: source.path).neverStale())
    try await store.run()
    try await readerStore.run()
    return (store, readerStore, [store.subscribe { _ in }, readerStore.subscribe { _ in }])
  }

  @Test(
    "A reader runs after the run that follows an invalidation, even if another one is in flight",
    arguments: [false, true])
  func behindRunInFlight(isItselfAnAnswer: Bool) async throws {
    let (server, calls, gates) = (Monitor(1), EventLog<Int>(), [AsyncGate(), AsyncGate()])
    let (store, readerStore, subscriptions) = try await observed(
      source(server, calls, gates: gates))
    let refetch = isItselfAnAnswer ? nil : Task { try await store.run() }
    if isItselfAnAnswer { store.invalidate() }
    await calls.wait(for: 2)
    server.update { $0 = 2 }
    store.invalidate()
    #expect(readerStore.isStale)
    gates[0].open()
    await calls.wait(for: 3)
    _ = try await refetch?.value
    // Not whether it is loading: it is not between two of its runs.
    #expect(readerStore.isStale)
    gates[1].open()
    await store.settles { $0.currentValue == 2 && !$0.isLoading }
    await readerStore.settles { !$0.isLoading && !$0.isStale }
    #expect(readerStore.currentValue == 2)
    withExtendedLifetime(subscriptions) {}
  }

  @Test("A reader does not wait for a run that is cancelled, or whose store lost its subscribers")
  func withoutAnswer() async throws {
    let (server, calls, gates) = (Monitor(1), EventLog<Int>(), [AsyncGate(), AsyncGate()])
    let (store, readerStore, subscriptions) = try await observed(
      source(server, calls, gates: gates))
    for isCancelled in [true, false] {
      store.invalidate()
      await calls.wait(for: isCancelled ? 2 : 3)
      store.invalidate()
      #expect(readerStore.isLoading)
      if isCancelled { store.cancel() } else { subscriptions[0].cancel() }
      gates[isCancelled ? 0 : 1].open()
      await readerStore.settles { !$0.isLoading }
    }
    subscriptions[1].cancel()
  }

  @Test("A reader does not wait for an older run of what it reads, if that is not observed")
  func unobserved() async throws {
    let (server, calls, gates) = (Monitor(1), EventLog<Int>(), [AsyncGate()])
    let (store, readerStore, subscriptions) = try await observed(
      source(server, calls, gates: gates))
    subscriptions[0].cancel()
    let old = Task { try await store.run() }
    await calls.wait(for: 2)
    store.invalidate()
    await readerStore.settles { !$0.isLoading && !$0.isStale }
    #expect(store.isLoading && readerStore.valueUpdateCount == 2)
    gates[0].open()
    _ = try await old.value
    subscriptions[1].cancel()
  }

  @Test("The dependencies of a run are released if no run follows")
  func nothingFollows() async throws {
    let root = Number(path: ["root"]) { _ in 1 }
    let (calls, gate) = (EventLog<Int>(), AsyncGate())
    let source = Number(path: ["source"]) { context in
      let value = context.value(of: root) ?? 0
      if calls.append(value) == 2 { await gate.wait() }
      return value
    }
    try await client.fetch(root)
    let rootSubscription = client.store(for: root.neverStale()).subscribe { _ in }
    let (store, _, subscriptions) = try await observed(source)
    store.invalidate()
    await calls.wait(for: 2)
    client.invalidate(root)
    #expect(!store.read { $0.freshness.followUpDependencies.isEmpty })
    subscriptions[0].cancel()
    gate.open()
    await store.settles { !$0.isLoading }
    #expect(store.read { $0.freshness.followUpDependencies.isEmpty })
    withExtendedLifetime((rootSubscription, subscriptions)) {}
  }

  @Test("Readers of readers run last, however many threads invalidate", arguments: 0..<20)
  func chain(_ round: Int) async throws {
    let server = Monitor(0)
    let first = Number(path: ["source"]) { _ in
      let value = server.value
      await Task.yield()
      return value
    }
    let middle = reader(of: ["source"])
    let stores = [
      OpaqueOperationStore(client.store(for: first.neverStale())),
      OpaqueOperationStore(client.store(for: middle.neverStale())),
      OpaqueOperationStore(client.store(for: reader(of: middle.path).neverStale())),
    ]
    for store in stores { try await store.run() }
    let subscriptions = stores.map { $0.subscribe { _ in } }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<10 {
            server.update { $0 += 1 }
            client.invalidate(first)
            await Task.yield()
          }
        }
      }
    }
    #expect(
      await eventually {
        stores.allSatisfy { !$0.isLoading && !$0.isStale && $0.currentValue as? Int? == 40 }
      })
    withExtendedLifetime(subscriptions) {}
  }
}
