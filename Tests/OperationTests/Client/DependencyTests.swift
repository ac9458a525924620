import Foundation
import Synchronization
import Testing

@testable import Operation

/// A request that reads others by number, as a mutable table defines.
private struct Reader: QueryRequest, Hashable {
  let id: Int
  let world: World

  var path: OperationPath { ["reader", id] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    world.began.append(id)
    await world.gates.value[id]?.wait()
    var sum = world.values.value[id, default: 1]
    for other in world.edges.value[id, default: []] {
      sum += try await context.ensure(Reader(id: other, world: world).neverStale())
    }
    return sum
  }
}

private final class World: Sendable, Hashable {
  let began = EventLog<Int>()
  let edges = Monitor<[Int: [Int]]>([:])
  let values = Monitor<[Int: Int]>([:])
  let gates = Monitor<[Int: AsyncGate]>([:])

  static func == (lhs: World, rhs: World) -> Bool { lhs === rhs }
  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

@Suite(.timeLimit(.minutes(5))) struct DependencyTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let world = World()

  private func reader(_ id: Int) -> Reader { Reader(id: id, world: world) }

  /// Runs and observes the stores of some numbers, until all have run once.
  private func observe(_ ids: [Int]) async -> [OperationSubscription] {
    for id in ids { await client.prefetch(reader(id).neverStale()) }
    return ids.map { id in client.store(for: reader(id).neverStale()).subscribe { _ in } }
  }

  /// Waits until observed stores are idle. To observe another store could start a run of it.
  private func untilIdle(_ ids: [Int]) async {
    for store in ids.map({ client.store(for: reader($0)) }) {
      for await isLoading in store.changes(of: \.isLoading) where !isLoading { break }
    }
  }

  @Test("An invalidation of a diamond runs each request once, dependencies first")
  func diamond() async throws {
    world.edges.update { $0 = [1: [0], 2: [0], 3: [1, 2]] }
    let subscriptions = await observe([0, 1, 2, 3])
    #expect(client.store(for: reader(3)).currentValue == 5)
    world.values.update { $0[0] = 10 }
    let before = world.began.count
    client.invalidate(reader(0))
    await world.began.wait(for: before + 4)
    await untilIdle([0, 1, 2, 3])
    let order = Array(world.began.values[before...])
    #expect(order.count == 4 && Set(order) == [0, 1, 2, 3])
    #expect(order.first == 0 && order.last == 3)
    #expect(client.store(for: reader(3)).currentValue == 23)
    withExtendedLifetime(subscriptions) {}
  }

  @Test("A request runs after what it reads through one without subscribers")
  func behindUnobserved() async throws {
    world.edges.update { $0 = [1: [0], 2: [1]] }
    let subscriptions = await observe([0, 2])
    let gate = AsyncGate()
    world.gates.update { $0[0] = gate }
    let before = world.began.count
    client.invalidate(reader(0))
    await world.began.wait(for: before + 1)
    for _ in 0..<1_000 { await Task.yield() }
    #expect(world.began.values[before...] == [0])
    gate.open()
    await world.began.wait(for: before + 3)
    await untilIdle([0, 2])
    #expect(world.began.values[before...] == [0, 2, 1])
    withExtendedLifetime(subscriptions) {}
  }

  @Test("A store without subscribers is marked, and runs when it is fetched")
  func unobserved() async throws {
    world.edges.update { $0 = [1: [0], 2: [1]] }
    let subscriptions = await observe([2])
    world.values.update { $0[0] = 10 }
    let gate = AsyncGate()
    world.gates.update { $0[0] = gate }
    let before = world.began.count
    client.invalidate(reader(0))
    #expect(client.store(for: reader(1)).isStale)
    gate.open()
    await world.began.wait(for: before + 3)
    await untilIdle([2])
    #expect(world.began.values[before...] == [2, 1, 0])
    #expect(client.store(for: reader(2)).currentValue == 12)
    subscriptions[0].cancel()
    client.invalidate(reader(0))
    #expect([0, 1, 2].allSatisfy { client.store(for: reader($0)).isStale })
    #expect(world.began.count == before + 3)
    #expect(try await client.ensure(reader(2)) == 12)
    #expect(world.began.count == before + 6)
  }

  @Test("The edges are those of the last run")
  func lastRun() async throws {
    world.edges.update { $0 = [1: [0]] }
    let subscriptions = await observe([0, 1])
    world.edges.update { $0 = [:] }
    try await client.fetch(reader(1))
    let before = world.began.count
    client.invalidate(reader(0))
    await world.began.wait(for: before + 1)
    await untilIdle([0, 1])
    #expect(world.began.values[before...] == [0])
    #expect(!client.store(for: reader(1).neverStale()).isStale)
    withExtendedLifetime(subscriptions) {}
  }

  @Test("Two invalidations during a run start one further run of it and of its reader")
  func twice() async throws {
    world.edges.update { $0 = [1: [0]] }
    let subscriptions = await observe([0, 1])
    let gate = AsyncGate()
    world.gates.update { $0[0] = gate }
    let before = world.began.count
    client.invalidate(reader(0))
    await world.began.wait(for: before + 1)
    client.invalidate(reader(0))
    client.invalidate(reader(0))
    gate.open()
    await world.began.wait(for: before + 4)
    await untilIdle([0, 1])
    let order = Array(world.began.values[before...])
    #expect(order.count { $0 == 0 } == 2 && order.count { $0 == 1 } <= 2, "\(order)")
    withExtendedLifetime(subscriptions) {}
  }

  @Test("A cycle ends every run in it with an error that names its paths", arguments: 1...4)
  func cycle(length: Int) async throws {
    world.edges.update { edges in
      for id in 0..<length { edges[id] = [(id + 1) % length] }
    }
    let stores = (0..<length).map { client.store(for: reader($0).retry(limit: 3)) }
    await #expect(throws: OperationDependencyError.self) { try await stores[0].run() }
    for store in stores {
      guard case .cycle(let paths)? = store.error as? OperationDependencyError else {
        Issue.record("\(store.path) ended with \(store.status)")
        continue
      }
      #expect(Set(paths) == Set(stores.map(\.path)))
    }
    #expect(world.began.count == length, "a cycle is not retried")
  }

  @Test("A run that catches the error of its cycle fails with it")
  func caughtError() async throws {
    let query = Query<Int, any Error>(path: ["self"]) { context in
      let itself = Query<Int, any Error>(path: ["self"]) { _ in 0 }
      return (try? await context.ensure(itself)) ?? 7
    }
    await #expect(throws: OperationDependencyError.cycle([["self"]])) {
      try await client.fetch(query)
    }
    #expect(client.hub.hasNoDependencies)
  }

  @Test("value(of:) reads without a fetch, and adds a dependency; a request may read its own value")
  func valueOf() async throws {
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }
    let query = Query<Int, any Error>(path: ["sum"]) { context in
      let before = context.value(of: Query<Int, any Error>(path: ["sum"]) { _ in 0 }) ?? 0
      return before + (context.value(of: source) ?? 100)
    }
    #expect(try await client.fetch(query) == 100)
    client.store(for: source).currentValue = 5
    #expect(try await client.fetch(query) == 105)
    let store = client.store(for: query.neverStale())
    client.invalidate(source)
    #expect(store.isStale)
    #expect(try await client.ensure(query) == 110)
  }

  @Test("A cycle that value(of:) closes ends the run that closed it")
  func cycleOfValues() async throws {
    let box = Monitor<Query<Int, any Error>?>(nil)
    defer { box.update { $0 = nil } }
    let first = Query<Int, any Error>(path: ["first"]) { context in
      guard let second = box.value else { return 0 }
      return context.value(of: second) ?? 1
    }
    let second = Query<Int, any Error>(path: ["second"]) { try await $0.ensure(first) }
    try await client.fetch(second)
    box.update { $0 = second }
    await #expect(throws: OperationDependencyError.self) { try await client.fetch(first) }
  }

  @Test("A request with a failure of its own reports the cycle that it closes")
  func typedFailure() async throws {
    struct Typed: QueryRequest, Hashable {
      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<Int, Failed>
      ) async throws(Failed) -> Int {
        (try? await context.ensure(self)) ?? 3
      }
    }
    let (issues, value) = try await issues { try await client.fetch(Typed()) }
    #expect(value == 3)
    #expect(issues.map(\.kind) == [.dependencyCycle])
  }

  @Test("Without a client the other request runs without a store")
  func withoutClient() async throws {
    let other = Query<Int, any Error>(path: ["other"]) { _ in 4 }
    let query = Query<Int, any Error>(path: ["query"]) { context in
      try await context.ensure(other) + (context.value(of: other) ?? 10)
    }
    #expect(try await query.run() == 14)
    #expect(try await OperationStore.detached(query: query).run() == 14)
  }

  @Test("ensure waits for a run in flight, also of a request without deduplication")
  func ensureJoins() async throws {
    let gate = AsyncGate()
    let began = EventLog<Void>()
    let query = Query<Int, any Error>(path: ["slow"]) { _ in
      began.append(())
      await gate.wait()
      return began.count
    }.deduplicated { _, _ in false }
    let store = client.store(for: query)
    async let first = store.run()
    await began.wait(for: 1)
    async let second = client.ensure(query)
    while store.leaseCount < 2 { await Task.yield() }
    async let prefetch: Void = client.prefetch(query)
    async let matching: Void = client.ensure(matching: ["slow"])
    while store.leaseCount < 4 { await Task.yield() }
    gate.open()
    #expect(try await first == 1)
    #expect(try await second == 1)
    await prefetch
    try await matching
    #expect(began.count == 1)
  }

  @Test(
    "When all stores are removed, no dependency is left, even if a run ends later")
  func cleared() async throws {
    world.edges.update { $0 = [1: [0], 2: [1, 0]] }
    try await client.fetch(reader(2))
    #expect(!client.hub.hasNoDependencies)
    client.clearStores()
    #expect(client.hub.hasNoDependencies)
    let gate = AsyncGate()
    let query = Query<Int, any Error>(path: ["late"]) { [world] context in
      _ = try await context.ensure(Reader(id: 0, world: world))
      world.began.append(-1)
      await gate.wait()
      return 1
    }
    let before = world.began.count
    async let late = client.fetch(query)
    await world.began.wait(for: before + 2)
    client.clearStores()
    gate.open()
    _ = try await late
    #expect(client.hub.hasNoDependencies)
  }

  @Test("A dependency on a store that is inserted after the note is not lost")
  func insertedAfterNote() async throws {
    let clock = BlockingClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let inserted = ThreadLatch()
    clock.isArmed.store(true, ordering: .sequentiallyConsistent)
    let thread = Thread {
      // It asks the clock when it has found out that nothing reads the path.
      _ = client.store(for: HookedQuery(), initialValue: 5)
      inserted.open()
    }
    thread.start()
    clock.entered.wait()
    // The path is evaluated for the note, and then for the look-up.
    let evaluations = Atomic(0)
    let source = HookedQuery {
      if evaluations.wrappingAdd(1, ordering: .relaxed).newValue == 2 {
        clock.mayContinue.open()
        inserted.wait()
      }
    }
    let reader = client.store(
      for: Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) + 1 }
        .stale(after: .seconds(3_600)))
    _ = try await reader.fetch()
    #expect(!reader.isStale)
    client.invalidate(HookedQuery())
    #expect(reader.isStale)
  }
}

/// A query that calls a function whenever its path is evaluated.
private struct HookedQuery: QueryRequest {
  var onPath: @Sendable () -> Void = {}

  var path: OperationPath {
    onPath()
    return ["hooked"]
  }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int { 1 }
}

/// A clock at which one thread waits.
private final class BlockingClock: OperationClock {
  let isArmed = Atomic(false)
  let (entered, mayContinue) = (ThreadLatch(), ThreadLatch())
  private let base = SystemClock()

  func now() -> Date {
    if isArmed.exchange(false, ordering: .sequentiallyConsistent) {
      entered.open()
      mayContinue.wait()
    }
    return base.now()
  }

  func elapsed() -> Duration { base.elapsed() }

  func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }
}
