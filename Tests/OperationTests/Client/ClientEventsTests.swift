import Foundation
@testable import Operation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ClientEventsTests {
  private let clock = ManualClock()
  private let client: OperationClient
  private let events = Recorder<OperationClientEvent>()

  init() {
    client = OperationClient(
      defaults: OperationDefaults(retryLimit: 1, backoff: .constant(.seconds(2))), clock: clock)
  }

  private struct Logger: OperationLogger {
    let events: Recorder<OperationClientEvent>
    func log(_ event: OperationClientEvent) { events.append(event) }
  }

  /// The lines of the events, without the numbers of the runs.
  private var lines: [String] {
    events.all.map { $0.description.replacing(#/#\d+/#, with: "#") }
  }

  @Test("The events of a store are its runs, attempts, yields and ends, with causes and times")
  func life() async throws {
    let logging = client.log(to: Logger(events: events))
    let query = Query<Int, any Error>(path: ["number"]) { context, continuation in
      guard context.operationRetryIndex > 0 else { throw Failed(code: 1) }
      continuation.yield(1)
      return 2
    }
    let store = client.store(for: query)
    let run = Task { try await store.run() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(2))
    _ = try await run.value
    await events.wait(forCount: 6)
    client.clearStores()
    #expect(
      lines == [
        #"query ["number"]: store added"#,
        #"query ["number"]: run # started (fetch)"#,
        #"query ["number"]: run # attempt 0"#,
        #"query ["number"]: run # attempt 1"#,
        #"query ["number"]: run # yielded"#,
        #"query ["number"]: run # ended after 2000 ms: success"#,
        #"query ["number"]: store removed"#,
      ])
    #expect(events.all.last?.date == clock.now())
    logging.cancel()
    _ = client.store(for: query)
    #expect(events.count == 7)
  }

  @Test("The event of a run has its cause: subscriber, invalidation, dependency, poll, rerun")
  func causes() async throws {
    let logging = client.log(to: Logger(events: events))
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }.stale(after: .seconds(100))
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) }
      .rerun(every: .seconds(50))
    let store = client.store(for: reader)
    let subscription = store.subscribe { _ in }
    await events.wait { $0.count { $0.isEnd } == 2 }
    client.invalidate(source)
    await events.wait { $0.count { $0.isEnd } == 4 }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(50))
    await events.wait { $0.count { $0.isEnd } == 5 }
    subscription.cancel()
    let causes = events.all.compactMap { event -> String? in
      guard case .runStarted(let run) = event.occurrence else { return nil }
      return "\(event.path) \(run.cause.rawValue)"
    }
    #expect(
      causes == [
        #"["reader"] subscriber"#, #"["source"] fetch"#, #"["reader"] dependency"#,
        #"["source"] fetch"#, #"["reader"] poll"#,
      ])
    withExtendedLifetime(logging) {}
  }

  @Test("A store that is evicted for one that clashes has an event, too") func clash() async {
    let client = OperationClient(
      defaults: .testing, retention: .unusedFor(.seconds(300)).limited(to: 1))
    let logging = client.log(to: Logger(events: events))
    _ = await issues {
      _ = client.store(for: Query<Int, any Error>(path: ["clash"]) { _ in 1 })
      _ = client.store(for: Query<String, any Error>(path: ["clash"]) { _ in "" })
    }
    await events.wait(forCount: 3)
    #expect(lines.map { $0.contains("added") } == [true, true, false])
    withExtendedLifetime(logging) {}
  }

  @Test("The event of a new store comes before those of the run that a handler starts in it")
  func addition() {
    let logging = client.log(to: Logger(events: events))
    let observers = Recorder<OperationSubscription>()
    let subscription = client.subscribe { change in
      for store in change.storesAdded { observers.append(store.subscribe { _ in }) }
    }
    _ = client.store(for: Query(path: ["q"]) { _ in 1 })
    #expect(events.all.first?.occurrence.description == "store added")
    withExtendedLifetime((logging, subscription)) {}
  }

  @Test("The outcomes of a cancelled run and of a failed run are cancelled and failure")
  func outcomes() async throws {
    let logging = client.log(to: Logger(events: events))
    let remote = Remote<Int>()
    let store = client.store(for: remote.query(["a"]).retry(limit: 0))
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.cancel()
    _ = await run.result
    await events.wait { $0.count { $0.isEnd } == 1 }
    let failing = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.fail(Failed(code: 3), call: 1)
    _ = await failing.result
    await events.wait { $0.count { $0.isEnd } == 2 }
    let ends = lines.filter { $0.contains("ended") }
    #expect(ends.first?.hasSuffix("ended after 0 ms: cancelled") == true)
    #expect(ends.last?.hasSuffix("failure, Failed(code: 3)") == true)
    withExtendedLifetime(logging) {}
  }

  @Test("A run that returns a value after its cancellation ends as cancelled, and has read nothing")
  func returningAfterCancellation() async throws {
    let logging = client.log(to: Logger(events: events))
    let (hasRead, gate) = (Latch(), Latch())
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }
    let store = client.store(
      for: Query<Int, any Error>(path: ["a"]) { context in
        let value = try await context.ensure(source)
        hasRead.open()
        await gate.wait()
        return value
      })
    let run = Task { try await store.run() }
    await hasRead.wait()
    store.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    gate.open()
    await events.wait { $0.count { $0.isEnd } == 2 }
    #expect(lines.last?.hasSuffix("ended after 0 ms: cancelled") == true)
    #expect(client.hub.hasNoDependencies)
    withExtendedLifetime(logging) {}
  }

  @Test("A run that is cancelled while it waits for its turn ends as cancelled")
  func cancelledInQueue() async throws {
    let logging = client.log(to: Logger(events: events))
    let remote = Remote<Int>()
    let stores = ["a", "b"].map { client.store(for: remote.query([$0]).serialized(in: "scope")) }
    let first = Task { try await stores[0].run() }
    await remote.wait(forCalls: 1)
    let second = Task { try await stores[1].run() }
    await stores[1].settles { $0.leaseCount == 1 }
    await clock.settle()
    second.cancel()
    _ = await second.result
    await clock.settle()
    let ends = lines.filter { $0.contains("ended") }
    #expect(ends == [#"query ["b"]: run # ended after 0 ms: cancelled"#])
    remote.answer(1)
    #expect(try await first.value == 1)
    withExtendedLifetime(logging) {}
  }

  @Test("The stream of events is bounded, and keeps the newest")
  func bounded() async {
    var events = client.events.makeAsyncIterator()
    for id in 0..<1_500 { _ = client.store(for: Query(path: [id]) { _ in id }) }
    #expect(await events.next()?.path == [500])
  }

  @Test("The logger writes one line for an event, whatever is in the error")
  func standardError() throws {
    let pipe = Pipe()
    var logger = StandardErrorLogger()
    logger.descriptor = pipe.fileHandleForWriting.fileDescriptor
    struct Long: Error, CustomStringConvertible { let description = "two\nlines" }
    let run = OperationClientEvent.Run(id: .next(), cause: .poll)
    logger.log(
      OperationClientEvent(
        date: Date(timeIntervalSince1970: 0.5), path: ["a", 1], kind: .pages,
        occurrence: .runEnded(run, .failure(Long()), duration: nil)))
    try pipe.fileHandleForWriting.close()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(
      text == "1970-01-01T00:00:00.500Z pages [\"a\", 1]: run \(run.id) ended: failure, two lines\n"
    )
  }

  @Test("The description of an occurrence names its run and its page")
  func descriptions() {
    let run = OperationClientEvent.Run(id: .next(), cause: .poll)
    let descriptions: [(OperationClientEvent.Occurrence, String)] = [
      (.answeredFromCache, "answered from the cache"), (.joined(run), "run \(run.id) joined"),
      (.pageBegan(run, page: "2"), "run \(run.id) page 2"),
      (.pageEnded(run, page: "2"), "run \(run.id) page 2 ended"),
    ]
    for (occurrence, description) in descriptions {
      #expect(occurrence.description == description)
    }
  }

  @Test("A snapshot has every store, and can be encoded as JSON")
  func snapshot() async throws {
    let remote = Remote<Int>()
    let running = client.store(for: remote.query(["b", 1]))
    let done = client.store(for: Query(path: ["a"]) { _ in 1 }.neverStale())
    let failed = client.store(for: Query<Int, any Error>(path: ["c"]) { _ in throw Failed() })
    try await done.run()
    failed.setResult(to: .failure(Failed(code: 4)))
    await clock.advance(by: .seconds(5))
    let run = Task { try await running.run() }
    await remote.wait(forCalls: 1)
    let subscription = done.subscribe { _ in }
    let snapshot = client.snapshot()
    #expect(snapshot.date == clock.now())
    #expect(snapshot.stores.map(\.path) == [["a"], ["b", "1"], ["c"]])
    #expect(snapshot.stores.map(\.status) == [.success, .loading, .failure])
    #expect(snapshot.stores.map(\.age) == [5, nil, nil])
    #expect(snapshot.stores.map(\.isStale) == [false, true, true])
    #expect(snapshot.stores.map(\.subscribers) == [1, 0, 0])
    #expect(snapshot.stores.map(\.leases) == [0, 1, 0])
    #expect(snapshot.stores.map(\.lastError) == [nil, nil, "Failed(code: 4)"])
    #expect(snapshot.stores[1].runs.map(\.cause) == [.fetch])
    #expect(snapshot.stores[1].runs.map(\.isStarted) == [true])
    let data = try JSONEncoder().encode(snapshot)
    #expect(try JSONDecoder().decode(OperationClientSnapshot.self, from: data) == snapshot)
    remote.answer(1)
    _ = try await run.value
    subscription.cancel()
  }

  @Test("Under memory pressure, unused stores are evicted, the least recently used one first")
  func pressure() async throws {
    let source = ManualMemoryPressureSource()
    let client = OperationClient(
      defaults: OperationDefaults(memoryPressureSource: source), clock: clock)
    let removed = Recorder<OperationPath>()
    let watch = client.subscribe { change in
      for store in change.storesRemoved { removed.append(store.path) }
    }
    let eviction = client.evictWhen(pressure: .critical)
    for id in [3, 1, 2] {
      _ = client.store(for: Query(path: [id]) { _ in id })
      await clock.advance(by: .seconds(1))
    }
    _ = client.store(for: Query(path: [3]) { _ in 3 })
    _ = client.store(for: Query(path: ["kept"]) { _ in 0 }.retained(.forever))
    let used = client.store(for: Query(path: ["used"]) { _ in 0 }.neverStale())
    used.currentValue = 1
    let subscription = used.subscribe { _ in }
    source.send(.warning)
    #expect(removed.count == 0)
    source.send(.critical)
    #expect(removed.all == [[1], [2], [3]])
    #expect(client.stores(matching: []).count == 2)
    eviction.cancel()
    #expect(source.subscriberCount == 0)
    withExtendedLifetime((watch, subscription)) {}
  }
}

extension OperationClientEvent {
  fileprivate var isEnd: Bool { if case .runEnded = occurrence { true } else { false } }
}
