import FoundationEssentials
import Operation
import Synchronization
import Testing

struct Player: Sendable, Equatable { let id: Int }

struct PlayerQuery: QueryRequest, Hashable {
  let id: Int

  func fetch(
    in context: QueryContext, with continuation: QueryContinuation<Player>
  ) async throws -> Player {
    Player(id: id)
  }
}

@Suite struct Smoke {
  @Test("A query runs") func runs() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: PlayerQuery(id: 3))
    #expect(try await store.run() == Player(id: 3))
    #expect(store.currentValue == Player(id: 3))
    #expect(store.status.isSuccess)
    #expect(client.store(for: PlayerQuery(id: 3).retry(limit: 2)) === store)
    let values = Mutex<[Int?]>([])
    let s = store.subscribe { event in values.withLock { $0.append(event.state?.currentValue?.id) } }
    store.currentValue = Player(id: 9)
    #expect(values.withLock { $0 }.count > 1)
    s.cancel()
    for await value in store.values {
      print(value as Any)
      break
    }
  }

  @Test("Retry with manual clock") func retry() async throws {
    struct Failed: Error {}
    let clock = ManualClock()
    let attempts = Atomic(0)
    let client = OperationClient(clock: clock)
    let store = client.store(
      for: Query(path: ["a"]) { context in
        attempts.wrappingAdd(1, ordering: .relaxed)
        if !context.isLastRetryAttempt { throw Failed() }
        return 3
      }.retry(limit: 2))
    let task = Task { try await store.run() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(2))
    #expect(try await task.value == 3)
    #expect(attempts.load(ordering: .relaxed) == 3)
  }
  @Test("Ten thousand") func many() async throws {
    let clock = ManualClock()
    let client = OperationClient(clock: clock)
    let runs = Atomic(0)
    let store = client.store(
      for: Query(path: ["a"]) { context in
        runs.wrappingAdd(1, ordering: .relaxed)
        return 3
      }.delay(for: .seconds(1)))
    let tasks = (0..<10_000).map { _ in Task { try await store.run() } }
    while store.leaseCount < 10_000 { await Task.yield() }
    for task in tasks.prefix(5_000) { task.cancel() }
    #expect(store.leaseCount == 5_000)
    await clock.advance(by: .seconds(1))
    for task in tasks.suffix(5_000) { #expect(try await task.value == 3) }
    #expect(runs.load(ordering: .relaxed) == 1)
  }
}
