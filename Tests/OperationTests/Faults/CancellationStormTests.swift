import Operation
import Testing

/// Ten thousand runs that are cancelled at random moments.
@Suite("Faults: cancellations", .timeLimit(.minutes(5))) struct CancellationStormTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  /// The results of the callers.
  private struct Tally: Sendable {
    var values = 0
    var cancellations = 0
    var others: [String] = []
    /// The number of callers that were not cancelled and have no value.
    var lost = 0
    var ended: [Int]
  }

  private static let runCount = 10_000
  private let clock = ManualClock()
  private let requests = LiveCount()
  private let gate = AsyncGate()
  private let committed = Monitor([OperationPath: Int]())

  private func query(_ id: Int) -> Query<Int, any Error> {
    Query(path: ["storm", id]) { context, continuation in
      let probe = requests.makeProbe()
      defer { withExtendedLifetime(probe) {} }
      switch id % 5 {
      case 0: break
      case 1: continuation.yield(id)
      case 2: try await clock.sleep(for: .milliseconds(id))
      case 3: for _ in 0..<id { await Task.yield() }
      default: await gate.wait()
      }
      return id
    }
  }

  @Test(
    "Each awaiter of ten thousand randomly cancelled runs resumes once, and no run remains",
    arguments: [1, 2] as [UInt64])
  func storm(seed: UInt64) async {
    let client = OperationClient(defaults: .testing, clock: clock, retention: .forever)
    let stores = (0..<50).map { client.store(for: query($0)) }
    let subscriptions = stores.map { store in
      store.subscribe { event in
        if case .runEnded(.success, _) = event {
          committed.update { $0[store.path, default: 0] += 1 }
        }
      }
    }
    for subscription in subscriptions.dropFirst(25) { subscription.cancel() }
    let tally = Monitor(Tally(ended: Array(repeating: 0, count: Self.runCount)))
    await withWatchdog {
      "\(tally.value.values + tally.value.cancellations) ended, seed \(seed)"
    } _: {
      await withTaskGroup { group in
        for lane in 0..<4 {
          group.addTask { await runs(lane, seed &* 4 &+ UInt64(lane), stores, tally) }
        }
        group.addTask { await tick(until: tally) }
      }
    }
    let result = tally.value
    #expect(result.ended.allSatisfy { $0 == 1 }, "seed \(seed)")
    #expect(result.values + result.cancellations == Self.runCount, "seed \(seed)")
    #expect(result.values > 100 && result.cancellations > 100, "there are results of both kinds")
    #expect(result.others.isEmpty)
    #expect(result.lost == 0, "a caller that was not cancelled has a value, seed \(seed)")
    gate.open()
    for (id, store) in stores.enumerated() {
      await store.settles { !$0.isLoading && $0.leaseCount == 0 }
      #expect(store.currentValue == (store.valueUpdateCount == 0 ? nil : id))
      #expect(store.status.isSuccess != store.status.isIdle)
      #expect(store.errorUpdateCount == 0, "a cancellation is no error")
      #expect(store.subscriberCount == (id < 25 ? 1 : 0))
    }
    #expect(await eventually { requests.value == 0 && client.activity == OperationActivity() })
    #expect(await eventually { clock.sleeperCount == 0 })
    for (id, store) in stores.prefix(25).enumerated() where id % 5 != 1 {
      #expect(
        await eventually { committed.value[store.path, default: 0] == store.valueUpdateCount })
    }
    for subscription in subscriptions { subscription.cancel() }
  }

  /// Makes a quarter of the runs, and cancels most of them some time later.
  private func runs(
    _ lane: Int, _ seed: UInt64, _ stores: [Store], _ tally: Monitor<Tally>
  ) async {
    var random = SplitMix(seed: seed)
    var open: [Task<Void, Never>] = []
    await withTaskGroup { group in
      for number in 0..<Self.runCount / 4 {
        let store = stores[Int.random(in: 0..<stores.count, using: &random)]
        let index = 4 * number + lane
        // A run that waits at the gate must be cancelled, because the gate opens only at the end.
        let mustCancel = (store.path.last?.value as? Int ?? 0) % 5 == 4
        let task = Task { await run(store, index, tally) }
        group.addTask { await task.value }
        if mustCancel || Int.random(in: 0..<3, using: &random) > 0 { open.append(task) }
        for _ in 0..<Int.random(in: 0..<4, using: &random) { await Task.yield() }
        while open.count > Int.random(in: 0..<40, using: &random) {
          open.remove(at: Int.random(in: open.indices, using: &random)).cancel()
        }
      }
      for task in open { task.cancel() }
    }
  }

  private func run(_ store: Store, _ index: Int, _ tally: Monitor<Tally>) async {
    let result: Result<Int, any Error>
    do { result = .success(try await store.run()) } catch { result = .failure(error) }
    let isCancelled = Task.isCancelled
    tally.update { tally in
      tally.ended[index] += 1
      switch result {
      case .success: tally.values += 1
      case .failure(is CancellationError):
        tally.cancellations += 1
        if !isCancelled { tally.lost += 1 }
      case .failure(let error): tally.others.append("\(error)")
      }
    }
  }

  /// Advances the clock until every caller has resumed.
  private func tick(until tally: Monitor<Tally>) async {
    while tally.value.values + tally.value.cancellations < Self.runCount {
      await clock.advance(by: .milliseconds(5))
      await Task.yield()
    }
  }
}
