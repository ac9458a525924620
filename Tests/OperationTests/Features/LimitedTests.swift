import Operation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct LimitedTests {
  /// The number of requests in flight, and its maximum.
  private final class Meter: Sendable {
    private let counts = Mutex((now: 0, most: 0))
    let begun = EventLog<Int>()

    var most: Int { counts.withLock { $0.most } }

    func begin(_ id: Int) {
      counts.withLock { counts in
        counts.now += 1
        counts.most = max(counts.most, counts.now)
      }
      begun.append(id)
    }

    func end() { counts.withLock { $0.now -= 1 } }
  }

  private let client = OperationClient(defaults: .testing)
  private let meter = Meter()

  private func query(_ id: Int, until gate: AsyncGate) -> Query<Int, any Error> {
    Query(path: ["limited", id]) { [meter] _ in
      meter.begin(id)
      defer { meter.end() }
      await gate.wait()
      return id
    }
  }

  @Test("At most the limit of runs is in flight, and the others start in the order of their calls")
  func order() async throws {
    let gates = (0..<10).map { _ in AsyncGate() }
    let tasks = gates.indices.map { id in
      client.store(for: query(id, until: gates[id]).limited(to: 4, in: "api")).runTask()
    }
    let runs = tasks.map { task in
      _ = Task { try await task.runIfNeeded() }
      return task
    }
    await meter.begun.wait(for: 4)
    let first = Set(meter.begun.values)
    for id in first { gates[id].open() }
    await meter.begun.wait(for: 8)
    for gate in gates { gate.open() }
    for run in runs { _ = try await run.runIfNeeded() }
    #expect(meter.most <= 4)
    #expect(meter.begun.count == 10)
  }

  @Test("All concurrent calls begin") func concurrent() async throws {
    let gate = AsyncGate()
    let calls = Mutation(path: ["calls"]) { [meter] (id: Int, _) in
      meter.begin(id)
      await gate.wait()
      return id
    }.limited(to: 2, in: "calls")
    let store = client.store(for: calls)
    let tasks = (0..<6).map { store.mutateTask(with: $0) }
    let results = tasks.map { task in Task { try await task.runIfNeeded() } }
    await meter.begun.wait(for: 2)
    gate.open()
    for result in results { _ = try await result.value }
    #expect(meter.begun.count == 6)
  }

  @Test("A cancelled run is removed from the queue, and the next one begins")
  func cancelled() async throws {
    let gates = (0..<3).map { _ in AsyncGate() }
    let stores = gates.indices.map {
      client.store(for: query($0, until: gates[$0]).limited(to: 1, in: "one"))
    }
    let first = Task { try await stores[0].fetch() }
    await meter.begun.wait(for: 1)
    let second = Task { try await stores[1].fetch() }
    while stores[1].leaseCount == 0 { await Task.yield() }
    let third = Task { try await stores[2].fetch() }
    while stores[2].leaseCount == 0 { await Task.yield() }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    gates[0].open()
    await meter.begun.wait(for: 2)
    gates[2].open()
    #expect(try await first.value == 0)
    #expect(try await third.value == 2)
    #expect(meter.begun.values == [0, 2])
  }

  @Test("A run that the store does not need leaves the queue", .timeLimit(.minutes(1)))
  func unneeded() async throws {
    let client = OperationClient(defaults: OperationDefaults(retryLimit: 0))
    let gates = [AsyncGate(), AsyncGate()]
    let knob = Knob(Recorder())
    let store = client.store(
      for: query(0, until: gates[0]).controlled(by: knob).limited(to: 1, in: "one"))
    let subscription = store.subscribe { _ in }
    await meter.begun.wait(for: 1)
    // The run for the subscriber is in flight.
    knob.controls.rerun()
    gates[0].open()
    gates[1].open()
    #expect(
      try await client.fetch(query(1, until: gates[1]).limited(to: 1, in: "one")) == 1)
    #expect(meter.begun.values == [0, 1])
    subscription.cancel()
  }

  @Test("A lower limit applies until its run has ended, and then the others begin at once")
  func lowered() async throws {
    let gates = (0..<4).map { _ in AsyncGate() }
    var runs: [Task<Int, any Error>] = []
    for id in gates.indices {
      let store = client.store(
        for: query(id, until: gates[id]).limited(to: id == 1 ? 1 : 4, in: "api"))
      runs.append(Task { try await store.fetch() })
      while !store.isLoading { await Task.yield() }
    }
    await meter.begun.wait(for: 1)
    gates[0].open()
    await meter.begun.wait(for: 2)
    #expect(meter.begun.values == [0, 1])
    gates[1].open()
    await meter.begun.wait(for: 4)
    gates[2].open()
    gates[3].open()
    for run in runs { _ = try await run.value }
    #expect(meter.most == 2)
  }

  @Test("A limit below one is reported, and one is used", arguments: [0, -3])
  func badLimit(limit: Int) async throws {
    let (issues, request) = await issues {
      query(1, until: AsyncGate()).limited(to: limit, in: "bad")
    }
    #expect(issues.map(\.kind) == [.invalidValue])
    #expect(client.store(for: request).path == ["limited", 1])
  }

  @Test("A run may await one that waits for the other place of its scope")
  func awaitsQueued() async throws {
    let gates = (0..<2).map { _ in AsyncGate() }
    gates[1].open()
    let last = client.store(for: query(2, until: gates[1]).limited(to: 2, in: "two"))
    let first = Query<Int, any Error>(path: ["first"]) { [meter] _ in
      meter.begun.append(0)
      await meter.begun.wait(for: 2)
      return try await last.run()
    }.limited(to: 2, in: "two")
    let hasEnded = Monitor(false)
    let run = Task {
      defer { hasEnded.update { $0 = true } }
      return try await client.fetch(first)
    }
    await meter.begun.wait(for: 1)
    let other = Task {
      try await client.fetch(query(1, until: gates[0]).limited(to: 2, in: "two"))
    }
    while last.leaseCount == 0, !hasEnded.value { await Task.yield() }
    gates[0].open()
    #expect(try await run.value == 2)
    #expect(try await other.value == 1)
  }
}
