import Dispatch
import Foundation
import Operation
import Synchronization

/// Many tasks that perform random operations on a few hundred stores concurrently, and the checks
/// of the promises.
final class Storm: Sendable {
  struct Result: Sendable {
    var steps = 0
    var stores = 0
    var witnesses = 0
    var failures: [String] = []
  }

  let size: Int
  let requests = StormRequests()
  let clock = ManualClock()
  let pressure = ManualMemoryPressureSource()
  let network = ManualNetworkObserver()
  let storage: MemoryStorage
  private let holder: Mutex<OperationClient?>
  private let stepsLeft: Atomic<Int>
  /// The client is shut down when fewer steps than these are left. The steps left become negative at the end,
  /// so the least number means never.
  private let shutdownStep = Atomic(Int.min)
  private let steps = Atomic(0)
  private let waiting = Atomic(0)
  private let failures = Mutex([String]())
  private let resets = Mutex([ObjectIdentifier: Int]())
  private let traces = Mutex([ObjectIdentifier: StormTrace]())

  init(steps: Int, size: Int = 240) {
    self.size = size
    stepsLeft = Atomic(steps)
    storage = MemoryStorage(clock: clock)
    holder = Mutex(
      OperationClient(
        defaults: OperationDefaults(
          retryLimit: 1, backoff: .constant(.seconds(1)), networkObserver: network,
          memoryPressureSource: pressure),
        clock: clock, retention: .unusedFor(.seconds(20)).limited(to: 150), storage: storage))
  }

  var client: OperationClient {
    guard let client = holder.withLock({ $0 }) else { fatalError("the storm has ended") }
    return client
  }

  func takeStep() -> Bool {
    steps.wrappingAdd(1, ordering: .relaxed)
    return stepsLeft.wrappingSubtract(1, ordering: .relaxed).newValue >= 0
  }

  /// Whether the client is shut down from now on.
  var isShuttingDown: Bool {
    stepsLeft.load(ordering: .relaxed) < shutdownStep.load(ordering: .relaxed)
  }

  func stop() { stepsLeft.store(0, ordering: .relaxed) }
  func began() { waiting.wrappingAdd(1, ordering: .relaxed) }
  func ended() { waiting.wrappingSubtract(1, ordering: .relaxed) }
  func fail(_ message: String) { failures.withLock { $0.append(message) } }

  func trace(_ store: any AnyObject & Sendable, at path: OperationPath) {
    let id = ObjectIdentifier(store)
    traces.withLock { traces in
      if traces[id]?.isAlive != true { traces[id] = StormTrace(store, at: path) }
    }
  }

  func noteReset(of store: AnyObject, _ ticket: Int) {
    resets.withLock { $0[ObjectIdentifier(store)] = max($0[ObjectIdentifier(store)] ?? 0, ticket) }
  }

  func lastReset(of store: AnyObject) -> Int {
    resets.withLock { $0[ObjectIdentifier(store)] ?? 0 }
  }

  /// Runs the workers, and checks the state after them. In every third storm the client is shut down.
  func run(seed: UInt64, workers: Int = 8) async -> Result {
    if seed % 3 == 0 {
      shutdownStep.store(stepsLeft.load(ordering: .relaxed) / 3, ordering: .relaxed)
    }
    let watchdog = watchForStalls()
    defer { watchdog.cancel() }
    let eviction = client.evictWhen(pressure: .critical, from: pressure)
    let count = await work(seed: seed, workers: workers)
    eviction.cancel()
    checkEmpty()
    holder.withLock { $0 = nil }
    await checkReleased()
    return Result(
      steps: steps.load(ordering: .relaxed), stores: traces.withLock { $0.count },
      witnesses: count, failures: failures.withLock { $0 })
  }

  /// Runs the workers, and checks what was received. Returns the number of subscribers at the end.
  private func work(seed: UInt64, workers: Int) async -> Int {
    let model = StormModel(requests, client: client)
    let witnesses = await withTaskGroup(of: [StormWitness].self) { group in
      for index in 0..<workers {
        group.addTask {
          var worker = StormWorker(self, model, seed: seed &* 1_000 &+ UInt64(index))
          return await worker.run()
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    requests.dam.open()
    await endRuns {
      for witness in witnesses { witness.cancelRuns() }
      model.cancelRuns()
    }
    await check(witnesses)
    storage.delay = .zero
    if isShuttingDown {
      await client.shutdown(within: .zero)
    } else {
      await checkSaved()
    }
    for failure in await model.end(isShutDown: isShuttingDown) { fail(failure) }
    for witness in witnesses { witness.subscription.cancel() }
    return witnesses.count
  }

  /// Ends every run in flight.
  private func endRuns(_ cancelRuns: () -> Void) async {
    cancelRuns()
    client.cancel(matching: [])
    // A run that follows a cancelled one ends as well, when the clock is advanced.
    while client.stores(matching: [], where: .running).count > 0 || clock.sleeperCount > 0 {
      await clock.advance(by: .seconds(2))
      cancelRuns()
      client.cancel(matching: [])
      await Task.yield()
    }
    if waiting.load(ordering: .relaxed) != 0 {
      fail("\(waiting.load(ordering: .relaxed)) tasks have not ended")
    }
  }

  /// Checks that the subscribers of a store received the same states in the same order, up to the
  /// present one.
  private func check(_ witnesses: [StormWitness]) async {
    for (_, group) in Dictionary(grouping: witnesses, by: \.store) {
      _ = await becomesTrue { group.allSatisfy { $0.log.all.last == $0.present() } }
      for witness in group where witness.log.all.last != witness.present() {
        fail("a subscriber of \(witness.path) has not received its last state")
      }
      guard let longest = group.max(by: { $0.log.all.count < $1.log.all.count })?.log.all else {
        continue
      }
      for witness in group {
        let received = witness.log.all
        // Both end with the same state. The shorter log is the end of the longer one.
        if Array(longest.suffix(received.count - 1)) != Array(received.suffix(received.count - 1)) {
          fail("two subscribers of \(witness.path) have not received the same states")
        }
      }
    }
  }

  /// Checks that the next client finds the values that this one displays, and no call.
  private func checkSaved() async {
    do { try await client.flush() } catch { fail("what is saved: \(error)") }
    if client.outbox.calls.count > 0 { fail("the outbox has \(client.outbox.calls.count) calls") }
    let next = OperationClient(clock: clock, storage: storage)
    for id in 0..<10 {
      let stores = [client, next].map { $0.store(for: requests.saved(id)) }
      _ = await becomesTrue { !stores.contains { $0.state.isRestoring } }
      let values = stores.map { $0.currentValue?.edits }
      if values[0] != values[1] { fail("of \(stores[0].path) these are saved: \(values)") }
    }
  }

  /// Checks that there are no leases, subscribers and sleepers.
  private func checkEmpty() {
    for store in client.stores(matching: []) {
      if store.leaseCount != 0 { fail("\(store.path) has \(store.leaseCount) leases") }
      if store.subscriberCount != 0 {
        fail("\(store.path) has \(store.subscriberCount) subscribers")
      }
    }
    if clock.sleeperCount != 0 { fail("the clock has \(clock.sleeperCount) sleepers") }
    if network.subscriberCount + requests.news.subscriberCount != 0 {
      fail("a condition or a sequence is still subscribed")
    }
    if pressure.subscriberCount != 0 { fail("the eviction is still subscribed") }
  }

  /// Checks that every store is deallocated.
  private func checkReleased() async {
    _ = await becomesTrue { traces.withLock { !$0.values.contains(where: \.isAlive) } }
    for trace in traces.withLock({ Array($0.values) }) where trace.isAlive {
      fail("the store of \(trace.path) is still retained")
    }
  }

  /// Prints the state of every store, and ends the program, if there is no step for a minute.
  private func watchForStalls() -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    let last = Mutex((steps: -1, since: 0))
    // A sanitizer makes everything slow.
    let environment = ProcessInfo.processInfo.environment
    let pause = 5 * (environment["OPERATION_TEST_PATIENCE"].flatMap(Int.init) ?? 1)
    timer.schedule(deadline: .now() + .seconds(pause), repeating: .seconds(pause))
    timer.setEventHandler { [weak self] in
      guard let self else { return }
      let steps = steps.load(ordering: .relaxed)
      let isStalled = last.withLock { last in
        last = last.steps == steps ? (steps, last.since + 1) : (steps, 0)
        return last.since >= 12
      }
      guard isStalled else { return }
      let encoder = JSONEncoder()
      encoder.outputFormatting = .prettyPrinted
      let snapshot = holder.withLock { $0 }?.snapshot()
      let text = (try? encoder.encode(snapshot)).map { String(decoding: $0, as: UTF8.self) } ?? ""
      FileHandle.standardError.write(
        Data("the storm has stalled after \(steps) steps\n\(text)\n".utf8))
      exit(1)
    }
    timer.activate()
    return timer
  }
}
