import Operation
import Synchronization
import Testing

@Suite struct BatchLoaderTests {
  private let clock = ManualClock()
  private let batches = EventLog<[Int]>()

  private func loader(
    delay: Duration = .milliseconds(10), maxSize: Int = 100, until gate: AsyncGate? = nil
  ) -> BatchLoader<Int, String> {
    BatchLoader(delay: delay, maxSize: maxSize) { [batches] keys in
      batches.append(keys)
      await gate?.wait()
      try Task.checkCancellation()
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "value \($0)") })
    }
  }

  private func query(_ id: Int, _ loader: BatchLoader<Int, String>) -> Query<String, any Error> {
    Query(path: ["batched", id]) { context in try await loader.load(id, in: context) }
  }

  private var client: OperationClient { OperationClient(defaults: .testing, clock: clock) }

  @Test("Keys of one delay are loaded with one call, and each has its own store") func oneCall()
    async throws
  {
    let (client, loader) = (client, loader())
    let tasks = (0..<5).map { id in Task { try await client.fetch(query(id, loader)) } }
    while client.stores(matching: ["batched"], where: .loading).count < 5 { await Task.yield() }
    await clock.sleepers(atLeast: 1)
    for _ in 0..<50 { await Task.yield() }
    await clock.advance(by: .milliseconds(10))
    for (id, task) in tasks.enumerated() { #expect(try await task.value == "value \(id)") }
    #expect(batches.values.flatMap(\.self).sorted() == [0, 1, 2, 3, 4])
    #expect(client.stores(matching: ["batched"]).count == 5)
  }

  @Test("A closure without a stated type returns values") func openType() async {
    let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 2) { _ in [:] }
    await #expect(throws: BatchLoaderError.self) { try await client.fetch(query(1, loader)) }
  }

  @Test("A full batch does not wait for the delay, and ends it") func full() async throws {
    let (client, loader) = (client, loader(delay: .seconds(3_600), maxSize: 2))
    async let first = client.fetch(query(1, loader))
    async let second = client.fetch(query(2, loader))
    #expect(try await [first, second] == ["value 1", "value 2"])
    #expect(batches.values.map { $0.sorted() } == [[1, 2]])
    let hasEnded = await eventually { clock.sleeperCount == 0 }
    #expect(hasEnded)
  }

  @Test("Ten thousand concurrent keys are loaded in batches of the size, one after the other")
  func tenThousand() async throws {
    let inFlight = Mutex((now: 0, most: 0))
    let loader = BatchLoader<Int, Int>(delay: .zero, maxSize: 100) { [batches] keys in
      batches.append(keys)
      inFlight.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      await Task.yield()
      inFlight.withLock { $0.now -= 1 }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for key in 0..<10_000 { group.addTask { try await loader.load(key) } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 9_999 * 5_000)
    #expect(inFlight.withLock { $0.most } == 1)
    #expect(batches.values.allSatisfy { $0.count <= 100 })
    #expect(batches.values.reduce(0) { $0 + $1.count } == 10_000)
  }

  @Test("Each key gets its own value or failure, and an omitted key gets an error that names it")
  func results() async throws {
    let loader = BatchLoader<Int, Int>(
      delay: .zero, maxSize: 3,
      results: { _ in [1: .success(10), 2: .failure(Refused())] })
    let tasks = (1...3).map { key in Task { try await loader.load(key) } }
    #expect(try await tasks[0].value == 10)
    await #expect(throws: Refused()) { try await tasks[1].value }
    await #expect(throws: BatchLoaderError.self) { try await tasks[2].value }
  }

  @Test("A value for a key that was not requested is reported, and dropped")
  func surplus() async throws {
    let loader = BatchLoader<Int, Int>(delay: .zero, maxSize: 1) { _ in [1: 10, 2: 20] }
    let (reports, value) = try await issues { try await loader.load(1) }
    #expect(value == 10)
    #expect(reports.map(\.kind) == [.invalidValue])
    // In place of the one that was requested.
    let other = BatchLoader<Int, Int>(delay: .zero, maxSize: 1) { _ in [2: 20] }
    let (otherReports, _) = await issues {
      await #expect(throws: BatchLoaderError.self) { try await other.load(1) }
    }
    #expect(otherReports.map(\.kind) == [.invalidValue])
  }

  @Test("A batch that throws fails all of its keys, and the next one is loaded") func thrown()
    async throws
  {
    let attempts = Mutex(0)
    let loader = BatchLoader<Int, Int>(delay: .zero, maxSize: 1) { keys in
      let attempt = attempts.withLock {
        $0 += 1
        return $0
      }
      if attempt == 1 { throw Refused() }
      return [keys[0]: attempt]
    }
    let query = Query(path: ["retried"]) { context in try await loader.load(7, in: context) }
      .retry(limit: 1).backoff(.noBackoff)
    #expect(try await client.fetch(query) == 2)
  }

  @Test("A cancelled caller returns at once, and the batch is cancelled with its last caller")
  func cancelled() async throws {
    let gate = AsyncGate()
    let loader = loader(delay: .zero, maxSize: 2, until: gate)
    let first = Task { try await loader.load(1) }
    let second = Task { try await loader.load(2) }
    await batches.wait(for: 1)
    while batches.values.flatMap(\.self).count < 2 {
      if batches.values.first == [1] || batches.values.first == [2] { break }
      await Task.yield()
    }
    first.cancel()
    second.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    await #expect(throws: CancellationError.self) { try await second.value }
    gate.open()
    #expect(try await loader.load(3) == "value 3")
  }

  @Test("A key whose caller is cancelled before the batch begins is not loaded") func removed()
    async throws
  {
    let loader = loader(delay: .seconds(1))
    let context = OperationContext.timed(by: clock)
    let first = Task { try await loader.load(1, in: context) }
    await clock.sleepers(atLeast: 1)
    let second = Task { try await loader.load(2, in: context) }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    for _ in 0..<100 { await Task.yield() }
    await clock.advance(by: .seconds(1))
    #expect(try await second.value == "value 2")
    #expect(batches.values == [[2]])
  }

  @Test("A task that is cancelled already loads no batch") func cancelledBefore() async {
    let loader = loader(delay: .zero, maxSize: 1)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await loader.load(1, in: .timed(by: clock))
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    await clock.settle()
    #expect(batches.values.isEmpty)
  }

  /// A key whose comparison cancels the calling task.
  private struct CancellingKey: Hashable {
    static func == (lhs: Self, rhs: Self) -> Bool {
      withUnsafeCurrentTask { $0?.cancel() }
      return true
    }
    func hash(into hasher: inout Hasher) {}
  }

  @Test(
    "A caller that is cancelled before its key is added returns at once", .timeLimit(.minutes(5)))
  func cancelledBeforeAdded() async {
    let loader = BatchLoader<CancellingKey, Int>(delay: .seconds(1), maxSize: 10) { _ in
      [:] as [CancellingKey: Int]
    }
    let task = Task { try await loader.load(CancellingKey(), in: .timed(by: clock)) }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(await eventually { clock.sleeperCount == 0 })
  }

  /// Calls a closure once before it queues a job.
  private final class HookExecutor: TaskExecutor {
    let hook = Mutex<(@Sendable () -> Void)?>(nil)
    let jobs = HandExecutor()

    func enqueue(_ job: consuming ExecutorJob) {
      hook.withLock { $0.take() }?()
      jobs.enqueue(job)
    }
  }

  @Test("A cancelled caller does not cancel the batch after its own") func followingBatch()
    async throws
  {
    let clock = ManualClock()
    let (gates, begun) = ([AsyncGate(), AsyncGate()], EventLog<Int>())
    let loader = BatchLoader<Int, Int>(delay: .zero, maxSize: 1) { keys in
      begun.append(keys[0])
      await gates[keys[0]].wait()
      try Task.checkCancellation()
      return [keys[0]: keys[0]]
    }
    let executor = HookExecutor()
    let first = Task(executorPreference: executor) {
      try await loader.load(0, in: .timed(by: clock))
    }
    executor.jobs.run()
    await begun.wait(for: 1)
    let second = Task { try await loader.load(1, in: .timed(by: clock)) }
    for _ in 0..<1000 { await Task.yield() }
    // While the first caller is resumed, its batch ends, and the other one begins.
    executor.hook.withLock {
      $0 = {
        let isSettled = ThreadLatch()
        Task.detached {
          gates[0].open()
          await begun.wait(for: 2)
          await clock.settle()
          isSettled.open()
        }
        isSettled.wait()
      }
    }
    await onThreads(1) { _ in first.cancel() }
    gates[1].open()
    #expect(try await second.value == 1)
    executor.jobs.run()
    await #expect(throws: CancellationError.self) { try await first.value }
  }

  @Test("A batch that awaits a request that waits for it, or for a later one, fails with a cycle")
  func cycle() async throws {
    let client = client
    for awaited in 1...2 {
      let holder = Mutex<BatchLoader<Int, String>?>(nil)
      let request = { @Sendable (id: Int) in
        Query<String, any Error>(path: ["cycle", awaited, id]) { _ in
          try await holder.withLock(\.self)?.load(id) ?? ""
        }
      }
      let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 1) { keys in
        guard keys == [1] else { return [2: "two"] }
        return [1: try await client.fetch(request(awaited))]
      }
      holder.withLock { $0 = loader }
      let error = await #expect(throws: OperationDependencyError.self) {
        try await client.fetch(request(1))
      }
      // Of both waits, the one that comes last closes the cycle.
      guard case .cycle(let paths) = error else { continue }
      #expect(Set(paths) == [["cycle", awaited, awaited], ["batch of Int"]])
      holder.withLock { $0 = nil }
    }
  }

  @Test("A batch that awaits a batch of its loader fails, and one of another loader is loaded")
  func nested() async throws {
    let (client, other) = (client, loader(delay: .zero))
    let holder = Mutex<BatchLoader<Int, String>?>(nil)
    let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 1) { keys in
      let value = try await client.fetch(self.query(keys[0], other))
      guard keys == [1] else { return [keys[0]: value] }
      return [1: try await holder.withLock(\.self)?.load(2) ?? ""]
    }
    holder.withLock { $0 = loader }
    await #expect(throws: OperationDependencyError.cycle([["batch of Int"]])) {
      try await loader.load(1)
    }
    #expect(try await loader.load(2) == "value 2")
    holder.withLock { $0 = nil }
  }

  @Test("A batch may await a request that has got a value of an earlier batch")
  func earlierWait() async throws {
    let (client, gate) = (client, AsyncGate())
    let hasLoaded = EventLog<String>()
    let holder = Mutex<BatchLoader<Int, String>?>(nil)
    let request = Query<String, any Error>(path: ["request"]) { _ in
      hasLoaded.append(try await holder.withLock(\.self)?.load(1) ?? "")
      await gate.wait()
      return hasLoaded.values[0]
    }
    let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 1) { keys in
      guard keys == [2] else { return [1: "one"] }
      let joined = Task.immediate { try await client.fetch(request) }
      gate.open()
      return [2: try await joined.value]
    }
    holder.withLock { $0 = loader }
    let first = Task { try await client.fetch(request) }
    await hasLoaded.wait(for: 1)
    #expect(try await loader.load(2) == "one")
    #expect(try await first.value == "one")
    holder.withLock { $0 = nil }
  }

  @Test("What a task awaits that a batch has left behind is no wait of the batch")
  func leftTask() async throws {
    let (client, gate) = (client, AsyncGate())
    let left = Mutex<Task<String, any Error>?>(nil)
    let holder = Mutex<BatchLoader<Int, String>?>(nil)
    let request = Query<String, any Error>(path: ["request"]) { _ in
      await gate.wait()
      return try await holder.withLock(\.self)?.load(2) ?? ""
    }
    let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 1) { keys in
      guard keys == [1] else { return [2: "two"] }
      left.withLock { $0 = Task.immediate { try await client.fetch(request) } }
      return [1: "one"]
    }
    holder.withLock { $0 = loader }
    #expect(try await loader.load(1) == "one")
    gate.open()
    #expect(try await left.withLock(\.self)?.value == "two")
    holder.withLock { $0 = nil }
  }

  @Test("A batch does not work for its first caller, and may read what has the path of that")
  func ownWork() async throws {
    let leaf = Query<String, any Error>(path: ["caller"]) { _ in "leaf" }
    let reading = Query<String, any Error>(path: ["reading"]) { try await $0.ensure(leaf) }
    let loader = BatchLoader<Int, String>(delay: .zero, maxSize: 1) { _ in
      [1: try await reading.run()]
    }
    let caller = Query<String, any Error>(path: ["caller"]) { context in
      try await loader.load(1, in: context)
    }
    #expect(try await caller.run() == "leaf")
  }

  @Test("Bad delays and sizes are reported") func badNumbers() async throws {
    let (issues, loader) = await issues {
      BatchLoader<Int, Int>(delay: .seconds(-1), maxSize: 0) { keys in [keys[0]: 1] }
    }
    #expect(issues.map(\.kind) == [.invalidValue, .invalidValue])
    #expect(try await loader.load(1) == 1)
  }

  @Test("A key that is not equal to itself is reported, and its caller gets an error")
  func unequalKey() async {
    let loader = BatchLoader<Double, Int>(delay: .zero, maxSize: 10) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) })
    }
    let (reported, failure) = await issues { () async -> BatchLoaderError? in
      do {
        _ = try await loader.load(.nan)
        return nil
      } catch { return error as? BatchLoaderError }
    }
    #expect(reported.map(\.kind) == [.unequalIdentity])
    #expect(failure?.key == "nan")
  }

  @Test("Callers that wait for one key are cancelled one by one, and the others get its value")
  func oneKey() async throws {
    let gate = AsyncGate()
    let loader = loader(delay: .zero, until: gate)
    let tasks = (0..<100).map { _ in Task { try await loader.load(1) } }
    while batches.values.isEmpty { await Task.yield() }
    for (index, task) in tasks.enumerated() where !index.isMultiple(of: 3) { task.cancel() }
    for (index, task) in tasks.enumerated() where !index.isMultiple(of: 3) {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    gate.open()
    for (index, task) in tasks.enumerated() where index.isMultiple(of: 3) {
      #expect(try await task.value == "value 1")
    }
  }

  @Test("Every caller returns once, with random loads and cancellations") func random() async {
    for round in 0..<200 {
      let loader = BatchLoader<Int, Int>(delay: .zero, maxSize: 1 + round % 5) { keys in
        await Task.yield()
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
      }
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<12 {
          group.addTask {
            let task = Task { try await loader.load(index % 4) }
            if index % 3 == 0 { task.cancel() }
            let result = await task.result
            if case .success(let value) = result { #expect(value == index % 4) }
          }
        }
      }
    }
  }
}
