import Observation
import Operation
import Testing

@Suite("The activity of a client", .timeLimit(.minutes(5))) struct ActivityTests {
  private typealias Counts = OperationActivity.Counts

  private let network = ManualNetworkObserver(.disconnected)
  private let clock = ManualClock()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, networkObserver: network),
      clock: clock)
  }

  private func activity(
    queries: Counts = Counts(), pages: Counts = Counts(), mutations: Counts = Counts()
  ) -> OperationActivity {
    var activity = OperationActivity()
    activity.queries = queries
    activity.pages = pages
    activity.mutations = mutations
    return activity
  }

  @Test("The activity counts stores by phase and kind, and is zero at the end")
  func counts() async throws {
    let (remote, server, desk) = (Remote<Int>(), PageServer(), MutationDesk())
    let query = client.store(for: remote.query())
    let pages = client.store(for: Numbers(server: server))
    let mutation = client.store(for: Call(desk: desk))
    #expect(client.activity == OperationActivity())
    server.close()
    desk.close()
    let reading = Task { try await query.run() }
    let paging = Task { try await pages.fetchNextPage() }
    let calls = ["a", "b"].map { name in Task { try await mutation.mutate(with: name) } }
    await remote.wait(forCalls: 1)
    await server.pending(1)
    await desk.waiting("a", "b")
    let one = Counts(running: 1)
    #expect(client.activity == activity(queries: one, pages: one, mutations: one))
    remote.answer(1)
    _ = try await reading.value
    #expect(client.activity == activity(pages: one, mutations: one))
    server.open()
    _ = try await paging.value
    desk.open()
    for call in calls { _ = try await call.value }
    #expect(client.activity == OperationActivity())
  }

  @Test("A store whose runs wait for a connection is paused, and not running") func paused()
    async throws
  {
    let query = client.store(for: OpenQuery(script: Script()).networkMode(.online))
    let call = client.store(for: Call(desk: MutationDesk()).networkMode(.online))
    let reading = Task { try await query.run() }
    let calling = Task { try await call.mutate(with: "a") }
    #expect(
      await eventually {
        client.activity == activity(queries: Counts(paused: 1), mutations: Counts(paused: 1))
      })
    calling.cancel()
    await #expect(throws: CancellationError.self) { try await calling.value }
    #expect(client.activity == activity(queries: Counts(paused: 1)))
    network.set(.connected)
    _ = try await reading.value
    #expect(client.activity == OperationActivity())
  }

  @Test("A failed store counts until it is run again, gets a value, or is reset")
  func failed() async throws {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    for (call, step) in ["run", "value", "reset"].enumerated() {
      let run = Task { try await store.run() }
      await remote.wait(forCalls: call + 1)
      #expect(client.activity == activity(queries: Counts(running: 1)), "before \(step)")
      remote.fail(Failed(), call: call)
      await #expect(throws: Failed.self) { try await run.value }
      #expect(client.activity == activity(queries: Counts(failed: 1)), "before \(step)")
      if step == "value" { store.currentValue = 1 }
      if step == "reset" { store.reset() }
      if step != "run" { #expect(client.activity == OperationActivity()) }
    }
    store.setResult(to: .failure(Failed()))
    #expect(client.activity.queries == Counts(failed: 1))
  }

  @Test("A scheduled run counts until its task is released, and a cancelled run no longer counts")
  func scheduled() async {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    var task = Optional(store.runTask())
    #expect(client.activity.queries == Counts(running: 1))
    withExtendedLifetime(task) {}
    task = nil
    #expect(client.activity == OperationActivity())
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.cancel()
    #expect(client.activity == OperationActivity())
    await #expect(throws: CancellationError.self) { try await run.value }
  }

  @Test("A store that was cleared or evicted no longer counts, whatever it does afterwards")
  func clearedOrEvicted() async throws {
    let remote = Remote<Int>()
    let (cleared, evicted) = (client.store(for: remote.query()), client.store(for: failing("left")))
    _ = client.store(for: failing("kept").retained(.forever))
    let run = Task { try await cleared.run() }
    await remote.wait(forCalls: 1)
    for path in ["left", "kept"] { client.store(with: [path])?.invalidate() }
    evicted.setResult(to: .failure(Failed()))
    client.store(for: failing("kept")).setResult(to: .failure(Failed()))
    #expect(client.activity.queries == Counts(running: 1, failed: 2))
    client.clearStore(with: cleared.path)
    #expect(client.activity.queries == Counts(failed: 2))
    await clock.advance(by: .seconds(301))
    #expect(!client.retains(["left"]))
    #expect(client.activity.queries == Counts(failed: 1))
    remote.fail(Failed())
    await #expect(throws: Failed.self) { try await run.value }
    evicted.currentValue = 1
    evicted.setResult(to: .failure(Failed()))
    #expect(client.activity.queries == Counts(failed: 1))
    client.clearStores()
    #expect(client.activity == OperationActivity())
  }

  private func failing(_ path: String) -> Query<Int, any Error> {
    Query(path: [path]) { _ in throw Failed() }
  }

  @Test("A store without a client, or of another one, does not count") func others() async {
    let remote = Remote<Int>()
    let stores = [
      OperationStore.detached(query: remote.query()),
      OperationClient(defaults: .testing).store(for: remote.query()),
    ]
    let runs = stores.map { store in Task { try await store.run() } }
    await remote.wait(forCalls: 2)
    #expect(client.activity == OperationActivity())
    for store in stores { store.cancel() }
    for run in runs { _ = try? await run.value }
  }
}

extension ActivityTests {
  @Test("A read is tracked, and a change notifies the observer") func tracked() async throws {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    for expected in [1, 0] {
      let changed = Latch()
      withObservationTracking {
        #expect(client.activity.queries.running == 1 - expected)
      } onChange: {
        changed.open()
      }
      #expect(!changed.isOpen)
      if expected == 1 {
        let run = Task { try await store.run() }
        await remote.wait(forCalls: 1)
        withExtendedLifetime(run) {}
      } else {
        remote.answer(1)
      }
      await changed.wait()
      #expect(await eventually { client.activity.queries.running == expected })
    }
  }

  @Test("Each reader of the stream gets the current activity and each change") func streamed()
    async throws
  {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    var readers = (0..<2).map { _ in client.activities.makeAsyncIterator() }
    for index in readers.indices { #expect(await readers[index].next() == OperationActivity()) }
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    for index in readers.indices {
      #expect(await readers[index].next() == activity(queries: Counts(running: 1)))
    }
    remote.answer(1)
    _ = try await run.value
    for index in readers.indices { #expect(await readers[index].next() == OperationActivity()) }
  }

  @Test("However many threads change stores, no count is below zero, and all are zero at the end")
  func hammered() async throws {
    let belowZero = Counter()
    let stream = client.activities
    let watch = Task {
      for await activity in stream where activity.isBelowZero {
        belowZero.increment()
      }
    }
    let stores = (0..<8).map { id in client.store(for: Query(path: [id]) { _ in id }) }
    await withTaskGroup { group in
      for index in 0..<32 {
        group.addTask {
          let store = stores[index % 8]
          for round in 0..<50 {
            switch (index + round) % 4 {
            case 0: store.setResult(to: .failure(Failed()))
            case 1: store.cancel()
            default: _ = try? await store.run()
            }
            if client.activity.isBelowZero {
              belowZero.increment()
            }
          }
        }
      }
    }
    for store in stores { store.reset() }
    #expect(client.activity == OperationActivity())
    #expect(belowZero.value == 0)
    watch.cancel()
    await watch.value
  }
}

extension OperationActivity {
  fileprivate var isBelowZero: Bool {
    [queries, pages, mutations].contains { min($0.running, $0.paused, $0.failed) < 0 }
  }
}
