import Testing

@testable import Operation

/// Runs that wait for each other although each was begun by another caller.
@Suite(.timeLimit(.minutes(5))) struct JoinedCycleTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>
  private typealias Shared = ModifiedOperation<
    Query<Int, any Error>, DeduplicationModifier<Query<Int, any Error>>
  >

  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  /// Requests of a circle, of which each awaits the next one when all are being called.
  private struct Circle: Sendable {
    let length: Int
    let begun = EventLog<Int>()
    let gate = AsyncGate()

    func query(
      _ id: Int, awaiting next: @escaping @Sendable () async throws -> Int
    ) -> Query<Int, any Error> {
      Query(path: ["member", id]) { _ in
        begun.append(id)
        await gate.wait()
        return try await next()
      }
    }

    /// Calls all at once, and returns the cycles that they end with.
    func cycles(
      _ call: @escaping @Sendable (Int) async throws -> Int
    ) async -> [[OperationPath]?] {
      let calls = (0..<length).map { id in Task { try await call(id) } }
      await begun.wait(for: length)
      gate.open()
      var cycles: [[OperationPath]?] = []
      for call in calls {
        do {
          _ = try await call.value
          cycles.append(nil)
        } catch {
          guard case .cycle(let paths) = error as? OperationDependencyError else {
            Issue.record("\(error)")
            continue
          }
          cycles.append(paths)
        }
      }
      return cycles
    }

    /// All members, from each of them on.
    var expected: [[OperationPath]] {
      (0..<length).map { first in
        (0..<length).map { ["member", (first + $0) % length] }
      }
    }
  }

  @Test("Runs of stores that join each other end with the cycle", arguments: 2...4)
  func stores(length: Int) async {
    let circle = Circle(length: length)
    let stores = Monitor<[OperationStore<QueryState<Int, any Error>>]>([])
    stores.update {
      $0 = (0..<length).map { id in
        client.store(
          for: circle.query(id) { try await stores.value[(id + 1) % length].run() })
      }
    }
    for cycle in await circle.cycles({ try await stores.value[$0].run() }) {
      #expect(cycle.map(circle.expected.contains) == true)
    }
    for store in stores.value { #expect(store.leaseCount == 0) }
    stores.update { $0 = [] }
  }

  @Test("Shared runs without a client that join each other end with the cycle", arguments: 2...4)
  func withoutClient(length: Int) async {
    let circle = Circle(length: length)
    let requests = Monitor<[Shared]>([])
    requests.update {
      $0 = (0..<length).map { id in
        circle.query(id) { try await requests.value[(id + 1) % length].run() }.deduplicated()
      }
    }
    for cycle in await circle.cycles({ try await requests.value[$0].run() }) {
      #expect(cycle.map(circle.expected.contains) == true)
    }
    requests.update { $0 = [] }
  }

  @Test("Tasks that are joined in each other's requests end with the cycle")
  func tasks() async {
    let circle = Circle(length: 2)
    let tasks = Monitor<[OperationTask<Int, any Error>]>([])
    tasks.update {
      $0 = (0..<2).map { id in
        client.store(for: circle.query(id) { try await tasks.value[1 - id].runIfNeeded() })
          .runTask()
      }
    }
    for cycle in await circle.cycles({ try await tasks.value[$0].runIfNeeded() }) {
      #expect(cycle.map(circle.expected.contains) == true)
    }
    tasks.update { $0 = [] }
  }

  @Test("Runs of two serial scopes that each wait for the other scope end with the cycle")
  func serialScopes() async throws {
    let circle = Circle(length: 2)
    let inner = ["a", "b"].map { scope in
      client.store(
        for: Mutation<Int, Int>(path: ["inner", scope]) { number, _ in number }
          .serialized(in: scope))
    }
    let outer = ["a", "b"].enumerated().map { id, scope in
      client.store(
        for: circle.query(id) { try await inner[1 - id].mutate(with: 1) }.serialized(in: scope))
    }
    let cycles = await circle.cycles { try await outer[$0].run() }
    // The run that ends with the cycle leaves its scope, so that the other one can continue.
    #expect(cycles.contains { $0?.count == 4 })
    for store in inner { #expect(try await store.mutate(with: 2) == 2) }
  }

  @Test("A run that is joined may await one that does not wait for it, many at a time")
  func noCycle() async throws {
    let gate = AsyncGate()
    let leaf = client.store(
      for: Query<Int, any Error>(path: ["leaf"]) { _ in
        await gate.wait()
        return 1
      })
    let middle = client.store(
      for: Query<Int, any Error>(path: ["middle"]) { _ in try await leaf.run() })
    let readers = (0..<20).map { id in
      client.store(
        for: Query<Int, any Error>(path: ["reader", id]) { _ in
          async let first = middle.run()
          async let second = leaf.run()
          return try await first + second
        })
    }
    let calls = readers.map { reader in Task { try await reader.run() } }
    while leaf.leaseCount < 21 { await Task.yield() }
    gate.open()
    for call in calls { #expect(try await call.value == 2) }
  }

  enum Wait: CaseIterable {
    case run, task, ensure
  }

  @Test("A run that no longer awaits another one may be awaited by it", arguments: Wait.allCases)
  func endedWait(kind: Wait) async throws {
    let (gate, begun) = (AsyncGate(), EventLog<Int>())
    let stores = Monitor<[OperationStore<QueryState<Int, any Error>>]>([])
    let second = client.store(
      for: Query<Int, any Error>(path: ["second"]) { _ in
        begun.append(2)
        await gate.wait()
        return try await stores.value[0].run()
      })
    let last = AsyncGate()
    let first = client.store(
      for: Query<Int, any Error>(path: ["first"]) { _ in
        let wait = Task {
          switch kind {
          case .run: _ = try await second.run()
          case .task: _ = try await second.runTask().runIfNeeded()
          case .ensure: try await second.ensure()
          }
        }
        await begun.wait(for: 1)
        while second.leaseCount < 2 { await Task.yield() }
        wait.cancel()
        _ = await wait.result
        begun.append(1)
        await last.wait()
        return 1
      })
    stores.update { $0 = [first] }
    async let value = second.run()
    async let other = first.run()
    await begun.wait(for: 2)
    gate.open()
    while first.leaseCount < 2 { await Task.yield() }
    last.open()
    #expect(try await value == 1)
    #expect(try await other == 1)
    stores.update { $0 = [] }
  }

  @Test(
    "A run that waits behind one whose request has not returned is part of the cycle",
    arguments: [false, true])
  func occupiedScope(isCancelled: Bool) async throws {
    let stores = Monitor<[String: Store]>([:])
    let (begun, gate, ended) = (EventLog<Int>(), AsyncGate(), EventLog<Bool>())
    let first = client.store(
      for: Query<Int, any Error>(path: ["first"]) { _ in
        // Not cancelled with the run.
        let result = await Task { try await stores.value["second"]?.run() ?? 0 }.result
        ended.append(true)
        return try result.get()
      }.serialized(in: "scope"))
    let second = client.store(
      for: Query<Int, any Error>(path: ["second"]) { _ in
        begun.append(1)
        await gate.wait()
        return try await stores.value["third"]?.run() ?? 0
      })
    let third = client.store(
      for: Query<Int, any Error>(path: ["third"]) { _ in 3 }.serialized(in: "scope"))
    stores.update { $0 = ["second": second, "third": third] }
    let call = Task { try await first.run() }
    await begun.wait(for: 1)
    if isCancelled { first.cancel() }
    gate.open()
    await ended.wait(for: 1)
    _ = await call.result
    #expect(try await third.run() == 3)
    stores.update { $0 = [:] }
  }

  @Test("A run that has ended is awaited by none that was scheduled after it")
  func endedDependency() async throws {
    let next = Monitor<OperationTask<Int, any Error>?>(nil)
    let (begun, gate, results) = (EventLog<Int>(), AsyncGate(), EventLog<Int?>())
    let first = client.store(
      for: Query<Int, any Error>(path: ["first"]) { _ in
        begun.append(1)
        await gate.wait()
        // Not cancelled with the run.
        results.append(await Task { try? await next.value?.runIfNeeded() }.value)
        return 1
      })
    let (task, later) = (
      first.runTask(), client.store(for: Query<Int, any Error>(path: ["next"]) { _ in 5 }).runTask()
    )
    later.schedule(after: task)
    next.update { $0 = later }
    let call = Task { try await task.runIfNeeded() }
    await begun.wait(for: 1)
    first.cancel()
    _ = await call.result
    gate.open()
    await results.wait(for: 1)
    #expect(results.values == [5])
    next.update { $0 = nil }
  }

  @Test("What a replaced launch awaits is no part of a cycle")
  func replacedLaunch() async throws {
    let stores = Monitor<[Store]>([])
    let (launches, begun) = (EventLog<Int>(), EventLog<Int>())
    let (first, second) = (AsyncGate(), AsyncGate())
    stores.update {
      $0 = [
        client.store(
          for: Query<Int, any Error>(path: ["first"]) { _ in
            // Not cancelled with the launch.
            if launches.append(1) == 1 {
              return try await Task { try await stores.value[1].run() }.value
            }
            await first.wait()
            return 7
          }),
        client.store(
          for: Query<Int, any Error>(path: ["second"]) { _ in
            begun.append(1)
            await second.wait()
            return try await stores.value[0].run() + 1
          }),
      ]
    }
    let call = Task { try await stores.value[0].run() }
    await begun.wait(for: 1)
    let restarting = Task { try await stores.value[0].fetch(restarting: true) }
    await launches.wait(for: 2)
    let joined = Task { try await stores.value[1].run() }
    while stores.value[1].leaseCount < 2 { await Task.yield() }
    second.open()
    while stores.value[0].leaseCount < 3, stores.value[1].isLoading { await Task.yield() }
    first.open()
    #expect(try await (call.value, restarting.value) == (7, 7))
    #expect(try await joined.value == 8)
    stores.update { $0 = [] }
  }

  @Test("A task is not scheduled after a run that awaits it")
  func scheduledAgainstWait() async throws {
    let task = Monitor<OperationTask<Int, any Error>?>(nil)
    let outer = client.store(
      for: Query<Int, any Error>(path: ["outer"]) { _ in
        try await task.value?.runIfNeeded() ?? 0
      }
    ).runTask()
    // Runs of the inner store wait for one of another store first.
    let (begun, gate) = (EventLog<Int>(), AsyncGate())
    let first = client.store(
      for: Query<Int, any Error>(path: ["first"]) { _ in
        begun.append(1)
        await gate.wait()
        return 1
      }
    ).runTask()
    let inner = client.store(
      for: Mutation<Int, Int>(path: ["inner"]) { number, _ in number }
    ).mutateTask(with: 2)
    inner.schedule(after: first)
    task.update { $0 = inner.mapError { $0 as any Error } }
    let call = Task { try await outer.runIfNeeded() }
    await begun.wait(for: 1)
    let (found, _) = await issues { inner.node.addDependency(on: outer.dependency) }
    #expect(found.map(\.kind) == [.scheduleCycle])
    gate.open()
    #expect(try await call.value == 2)
    task.update { $0 = nil }
  }

  @Test("The cycle of a shared run names its path, also when its first caller has left")
  func pathOfSharedRun() async throws {
    let request = Monitor<Shared?>(nil)
    let (begun, gate, yielded) = (EventLog<Int>(), AsyncGate(), EventLog<Int>())
    request.update {
      $0 = Query<Int, any Error>(path: ["shared"]) { _, continuation in
        begun.append(1)
        while yielded.count == 0 {
          continuation.yield(0)
          await Task.yield()
        }
        await gate.wait()
        return try await request.value?.run() ?? 0
      }.deduplicated()
    }
    let first = Task { try await request.value?.run() }
    await begun.wait(for: 1)
    // It has joined the run when it receives a yield.
    let second = Task {
      try await request.value?.run(with: OperationContinuation { _ in yielded.append(1) })
    }
    await yielded.wait(for: 1)
    first.cancel()
    _ = await first.result
    gate.open()
    await #expect(throws: OperationDependencyError.cycle([["shared"]])) { try await second.value }
    request.update { $0 = nil }
  }

  @Test("A shutdown in a request does not await a run that has joined it")
  func shutdown() async throws {
    let (begun, gate) = (EventLog<Int>(), AsyncGate())
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let inner = client.store(
      for: Query<Int, any Error>(path: ["inner"]) { [client] _ in
        begun.append(1)
        await gate.wait()
        // Returns although the clock is not advanced.
        return await client.shutdown(within: .seconds(60)).cancelledRuns.count
      })
    let outer = client.store(
      for: Query<Int, any Error>(path: ["outer"]) { _ in try await inner.run() })
    let first = Task { try await inner.run() }
    await begun.wait(for: 1)
    let second = Task { try await outer.run() }
    while inner.leaseCount < 2 { await Task.yield() }
    gate.open()
    for call in [first, second] {
      await #expect(throws: CancellationError.self) { try await call.value }
    }
    client.clearStores(matching: [])
  }
}
