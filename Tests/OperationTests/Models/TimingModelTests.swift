import Operation
import Synchronization
import TestSupport
import Testing

/// A plain model of an observed query with retries, a stale time and a poll. Times are in milliseconds.
private struct TimingModel {
  struct Run {
    var callers: Set<Int>
    var isObserved: Bool
    var retriesLeft: Int
    /// Whether it is the first run since an invalidation.
    let isAnswer: Bool
    /// Whether an invalidation has followed its start.
    var isOld = false
    var isPoll = false
    var fails = false
    var attemptEnd: Int?
    var retry: Int?
  }

  let (retries, staleTime): (Int, Int)
  let poll: Int?
  let backoff = 1_009
  /// The failures of the next attempts, and how long each attempt takes.
  var (failures, delay) = (0, 0)
  private(set) var (now, calls) = (0, 0)
  private(set) var runs: [Run] = []
  private var (valueDate, nextPoll): (Int?, Int?)
  private var (isFailed, isInvalidated, isAnswered, subscribers) = (false, false, true, 0)

  init(retries: Int, staleTime: Int, poll: Int?) {
    (self.retries, self.staleTime, self.poll) = (retries, staleTime, poll)
  }

  var isStale: Bool {
    guard let valueDate, !isInvalidated, !isFailed else { return true }
    return now - valueDate >= staleTime
  }

  /// When something happens next.
  var nextEvent: Int? {
    (runs.compactMap(\.attemptEnd) + runs.compactMap(\.retry) + [nextPoll].compactMap { $0 }).min()
  }

  /// Joins the run in flight, unless an invalidation has followed its start, or starts one.
  mutating func start(for caller: Int?) {
    if let index = runs.firstIndex(where: { !$0.isOld }) {
      if let caller { runs[index].callers.insert(caller) } else { runs[index].isObserved = true }
      return
    }
    runs.append(
      Run(
        callers: Set([caller].compactMap { $0 }), isObserved: caller == nil, retriesLeft: retries,
        isAnswer: !isAnswered))
    isAnswered = true
    attempt(runs.count - 1)
  }

  mutating func subscribe() {
    subscribers += 1
    guard subscribers == 1 else { return }
    nextPoll = poll.map { now + $0 }
    if isStale { start(for: nil) }
  }

  mutating func unsubscribe() {
    subscribers -= 1
    if subscribers > 0 { return }
    nextPoll = nil
    release { $0.isObserved = false }
  }

  mutating func cancel(_ caller: Int) { release { $0.callers.remove(caller) } }

  mutating func invalidate() {
    isInvalidated = valueDate != nil || !runs.isEmpty
    isAnswered = false
    for index in runs.indices { runs[index].isOld = true }
    follow()
  }

  /// Proceeds to a time before which nothing happens.
  mutating func proceed(to time: Int) {
    now = time
    while let event = nextEvent, event <= now { takeEvent() }
  }

  private mutating func takeEvent() {
    if let index = runs.firstIndex(where: { $0.retry.map { $0 <= now } == true }) {
      attempt(index)
    } else if let index = runs.firstIndex(where: { $0.attemptEnd.map { $0 <= now } == true }) {
      runs[index].attemptEnd = nil
      guard runs[index].fails, runs[index].retriesLeft > 0 else { return end(index) }
      runs[index].retriesLeft -= 1
      runs[index].retry = now + backoff
    } else {
      nextPoll = nil
      start(for: nil)
      if let index = runs.firstIndex(where: { !$0.isOld }) { runs[index].isPoll = true }
    }
  }

  private mutating func attempt(_ index: Int) {
    calls += 1
    runs[index].fails = failures > 0
    failures = max(0, failures - 1)
    runs[index].retry = nil
    runs[index].attemptEnd = now + delay
  }

  private mutating func end(_ index: Int) {
    let run = runs.remove(at: index)
    if run.isPoll, subscribers > 0 { nextPoll = poll.map { now + $0 } }
    if !run.fails {
      // An older value replaces the answer.
      if run.isOld, valueDate != nil, !isInvalidated { isAnswered = false }
      (valueDate, isInvalidated) = (now, run.isOld)
    }
    isFailed = run.fails
    if run.isOld { follow() }
  }

  /// Ends leases, and the runs that have no other ones.
  private mutating func release(_ lease: (inout Run) -> Void) {
    for index in runs.indices.reversed() {
      lease(&runs[index])
      if !runs[index].callers.isEmpty || runs[index].isObserved { continue }
      let run = runs.remove(at: index)
      if run.isPoll, subscribers > 0 { nextPoll = poll.map { now + $0 } }
      if run.isAnswer, !run.isOld { isAnswered = false }
      follow()
    }
  }

  private mutating func follow() {
    if subscribers > 0, !isAnswered, runs.isEmpty { start(for: nil) }
  }
}

/// A query whose attempts fail, and take a time, as a test demands.
private struct TimedQuery: QueryRequest {
  final class Server: Sendable {
    let state = Mutex((calls: 0, failures: 0, delay: 0))
  }

  let server: Server
  var path: OperationPath { ["timed"] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    let (call, left, delay) = server.state.withLock { state in
      defer { state.failures = max(0, state.failures - 1) }
      state.calls += 1
      return state
    }
    try await context.operationClock.sleep(for: .milliseconds(delay))
    if left > 0 { throw Refused(attempt: call) }
    return call
  }
}

@Suite struct TimingModelTests {
  private enum Step {
    case failures(Int), delay(Int), fetch, ensure, subscribe, unsubscribe, cancel(Int), invalidate
    case advance(Int)
  }

  @Test("The calls of a query with retries, a stale time and a poll are those of a plain model")
  func schedules() async {
    await Schedules.each("Timing") { seed in try await run(seed: seed) }
  }

  private func run(seed: UInt64) async throws {
    var random = SplitMix(seed: seed)
    func any<Element>(_ elements: Element...) -> Element { elements.randomElement(using: &random)! }
    var model = TimingModel(
      retries: any(0, 1, 2), staleTime: any(0, 1_005, 5_003), poll: any(nil, 3_071))
    let (clock, callers, server) = (ManualClock(), HandExecutor(), TimedQuery.Server())
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = TimedQuery(server: server).retry(limit: model.retries)
      .backoff(.constant(.milliseconds(model.backoff))).stale(after: .milliseconds(model.staleTime))
    let store =
      model.poll.map { client.store(for: query.rerun(every: .milliseconds($0))) }
      ?? client.store(for: query)
    var (subscriptions, tasks, trace) = ([OperationSubscription](), [Task<Void, Never>](), [Step]())

    func check() async throws {
      callers.run()
      await clock.settle()
      callers.run()
      let calls = server.state.withLock { $0.calls }
      try mustHold(
        calls == model.calls && store.isStale == model.isStale
          && store.isLoading == !model.runs.isEmpty,
        "\(calls) calls, \(model) after \(trace.listed)")
    }

    for _ in 0..<Int.random(in: 4...16, using: &random) {
      let step: Step = any(
        .failures(any(0, 1, 2, 3)), .delay(any(0, 713, 2_537)), .fetch, .fetch, .ensure, .subscribe,
        .unsubscribe, .cancel(any(0, 1, 2, 3)), .invalidate,
        .advance(Int.random(in: 200..<2_000, using: &random)), .advance(any(3_000, 6_001)))
      trace.append(step)
      switch step {
      case .failures(let count):
        model.failures = count
        server.state.withLock { $0.failures = count }
      case .delay(let delay):
        model.delay = delay
        server.state.withLock { $0.delay = delay }
      case .fetch:
        model.start(for: tasks.count)
        tasks.append(Task(executorPreference: callers) { _ = try? await store.fetch() })
      case .ensure:
        if model.isStale { model.start(for: tasks.count) }
        tasks.append(Task(executorPreference: callers) { _ = try? await client.ensure(query) })
      case .subscribe:
        model.subscribe()
        subscriptions.append(store.subscribe { _ in })
      case .unsubscribe:
        if subscriptions.popLast() != nil { model.unsubscribe() }
      case .cancel(let index):
        model.cancel(index)
        if tasks.indices.contains(index) { tasks[index].cancel() }
      case .invalidate:
        model.invalidate()
        store.invalidate()
      case .advance(let duration):
        let end = model.now + duration
        while let event = model.nextEvent, event < end {
          await clock.advance(by: .milliseconds(event - model.now))
          model.proceed(to: event)
          try await check()
        }
        await clock.advance(by: .milliseconds(end - model.now))
        model.proceed(to: end)
      }
      model.proceed(to: model.now)
      try await check()
    }
    for task in tasks { task.cancel() }
    subscriptions = []
    callers.run()
    await clock.settle()
    try mustHold(store.leaseCount + clock.sleeperCount == 0, "a run is left: \(trace.listed)")
  }
}
