import Dispatch
import FoundationEssentials
import Testing

@testable import Operation

@Suite("The outbox")
struct OutboxTests {
  private let storage = MemoryStorage()

  @Test("A call is in the storage before the request is called, and is removed at its end")
  func saved() async throws {
    let server = OutboxServer(waits: true)
    let client = outboxProgram(storage)
    let store = client.store(for: CreatePost(server: server).persisted())
    let call = Task { try await store.mutate(with: "a") }
    await server.arrivals.wait(for: 1)
    #expect(storage.entries.count == 1)
    #expect(client.outbox.calls.map(\.status) == [.running])
    #expect(client.outbox.calls.first?.id == server.arrivals.values[0].call)
    server.gate.open()
    #expect(try await call.value == 1)
    #expect(client.outbox.calls.isEmpty)
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("A slow storage delays the request until the call is saved")
  func slowStorage() async throws {
    let clock = ManualClock(now: outboxStart)
    let slow = MemoryStorage(clock: clock)
    slow.delay = .seconds(2)
    let server = OutboxServer()
    let client = outboxProgram(slow, clock: clock)
    let store = client.store(for: CreatePost(server: server).persisted())
    let call = Task { try await store.mutate(with: "a") }
    for delay in [Duration.seconds(2), .zero] {
      await clock.sleepers(atLeast: 1)
      #expect(server.arrivals.count == 0)
      slow.delay = delay
      await clock.advance(by: .seconds(2))
    }
    _ = try await call.value
    try await client.flush()
  }

  @Test(
    "The next program makes the calls of an earlier one, in order, with their identifiers")
  func resumed() async throws {
    let offline = ManualNetworkObserver(.disconnected)
    let server = OutboxServer()
    let mutation = CreatePost(server: server).networkMode(.online).serialized(in: "posts")
      .persisted()
    let first = outboxProgram(storage, network: offline)
    let store = first.store(for: mutation)
    let tasks = ["a", "b", "c"].map { title in Task { try await store.mutate(with: title) } }
    var calls: [OutboxCall] = []
    for await present in first.outbox.values where present.count == 3 {
      calls = present
      break
    }
    try await first.flush()
    #expect(server.arrivals.count == 0)

    let network = ManualNetworkObserver(.disconnected)
    let next = outboxProgram(MemoryStorage(storage.entries), network: network)
    let resumed = try await next.resumeMutations { outbox in outbox.register(mutation) }
    #expect(resumed.map(\.id) == calls.map(\.id))
    #expect(resumed.map(\.status) == [.running, .running, .running])
    #expect(server.arrivals.count == 0, "the calls wait for the connection")
    network.set(.connected)
    for await present in next.outbox.values where present.isEmpty { break }
    let order = calls.map { try? JSONDecoder().decode(String.self, from: $0.arguments) }
    #expect(server.titles == order)
    #expect(server.arrivals.values.map(\.call) == calls.map(\.id))
    #expect(server.arrivals.values.map(\.attempt) == [1, 1, 1])
    try await next.flush()
    for task in tasks { task.cancel() }
  }

  @Test("The calls of one task are restored in the order in which they were made")
  func order() async throws {
    let server = OutboxServer()
    let mutation = CreatePost(server: server).networkMode(.online).serialized(in: "posts")
      .persisted()
    let first = outboxProgram(storage, network: ManualNetworkObserver(.disconnected))
    let store = first.store(for: mutation)
    let tasks = (0..<20).map { store.mutateTask(with: "\($0)") }
    for task in tasks { Task { try? await task.runIfNeeded() } }
    for await present in first.outbox.values where present.count == 20 { break }
    try await first.flush()
    let launched = first.outbox.calls.map { String(decoding: $0.arguments, as: UTF8.self) }

    let next = outboxProgram(MemoryStorage(storage.entries))
    try await next.resumeMutations { $0.register(mutation) }
    for await present in next.outbox.values where present.isEmpty { break }
    #expect(server.titles.map { "\"\($0)\"" } == launched)
    first.cancel(matching: [])
  }

  @Test("A call is made again after the one that it waits for, also if that was started with it")
  func scheduled() async throws {
    let server = OutboxServer()
    let mutation = CreatePost(server: server).networkMode(.online).serialized(in: "posts")
      .persisted()
    let first = outboxProgram(storage, network: ManualNetworkObserver(.disconnected))
    let store = first.store(for: mutation)
    let titles = ["a", "b", "c", "d"]
    let tasks = titles.map { store.mutateTask(with: $0) }
    tasks[1].schedule(after: tasks[0])
    tasks[3].schedule(after: tasks[1...2])
    let call = Task.immediate { try? await tasks[3].runIfNeeded() }
    // It waits for all calls.
    try await first.flush()
    let listed = first.outbox.calls.map { String(decoding: $0.arguments, as: UTF8.self) }
    #expect(listed == titles.map { "\"\($0)\"" })
    try #require(storage.entries.count == 4)

    let next = outboxProgram(MemoryStorage(storage.entries))
    try await next.resumeMutations { $0.register(mutation) }
    for await present in next.outbox.values where present.isEmpty { break }
    #expect(server.titles == titles)
    first.cancel(matching: [])
    _ = await call.value
  }

  @Test("A subscriber that flushes waits until the storage has the listed calls")
  func flushInHandler() async throws {
    let server = OutboxServer(waits: true)
    let client = outboxProgram(storage)
    let counts = EventLog<[Int]>()
    let subscription = client.outbox.values.source.subscribe { [storage] signal in
      guard case .element(let calls, in: _) = signal else { return }
      Task.immediate {
        try await client.flush()
        counts.append([calls.count, storage.entries.count])
      }
    }
    let store = client.store(for: CreatePost(server: server).persisted())
    let call = Task { try await store.mutate(with: "a") }
    // The call does not end before both flushes have.
    await counts.wait(for: 2)
    await server.arrivals.wait(for: 1)
    server.gate.open()
    _ = try await call.value
    await counts.wait(for: 3)
    #expect(counts.values == [[0, 0], [1, 1], [0, 0]])
    subscription.cancel()
  }

  @Test("A subscriber that flushes when a call is discarded waits until the storage has removed it")
  func flushAfterDiscard() async throws {
    try await interruptCalls(["a"], in: storage)
    let client = outboxProgram(storage)
    try await client.outbox.load()
    let counts = EventLog<Int>()
    let subscription = client.outbox.values.source.subscribe { [storage] signal in
      guard case .element([], in: _) = signal else { return }
      Task.immediate {
        try await client.flush()
        counts.append(storage.entries.count)
      }
    }
    for call in client.outbox.calls { client.outbox.discard(call.id) }
    await counts.wait(for: 1)
    #expect(counts.values == [0])
    subscription.cancel()
  }

  @Test("The stream of calls ends when the client is shut down, also without a storage")
  func streamEnd() async throws {
    for client in [outboxProgram(storage), OperationClient(defaults: .testing)] {
      var lists: [[OutboxCall]] = []
      var values = client.outbox.values.makeAsyncIterator()
      if let first = await values.next() { lists.append(first) }
      await client.shutdown(within: .zero)
      while let next = await values.next() { lists.append(next) }
      #expect(lists == [[]])
    }
  }

  @Test("A call that a shutdown cancels stays in the outbox; one that a caller cancels does not")
  func shutdown() async throws {
    let server = OutboxServer(waits: true)
    let client = outboxProgram(storage)
    let store = client.store(for: CreatePost(server: server).persisted())
    let cancelled = Task { try await store.mutate(with: "cancelled") }
    await server.arrivals.wait(for: 1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let cut = Task { try await store.mutate(with: "cut") }
    await server.arrivals.wait(for: 2)
    #expect(await client.shutdown(within: .zero).cancelledRuns.count == 1)
    server.gate.open()
    _ = await cut.result
    for await calls in client.outbox.values where calls.map(\.status) == [.waiting] { break }
    try await client.flush()
    #expect(storage.entries.count == 1)
    let next = outboxProgram(MemoryStorage(storage.entries))
    try await next.resumeMutations { $0.register(CreatePost(server: server)) }
    for await present in next.outbox.values where present.isEmpty { break }
    #expect(server.titles == ["cancelled", "cut", "cut"])
  }

  @Test("A call is listed once, and made once, if the storage is read twice at the same time")
  func readTwice() async throws {
    try await interruptCalls(["a"], in: storage)
    let slow = SlowStorage(base: MemoryStorage(storage.entries))
    let server = OutboxServer()
    let next = outboxProgram(slow)
    let first = Task { try await next.outbox.load() }
    await slow.loads.wait(for: 1)
    let second = Task {
      try await next.resumeMutations { $0.register(CreatePost(server: server)) }
    }
    // If the loads were concurrent, the second one would load the call as well.
    for _ in 0..<1000 { await Task.yield() }
    slow.gate.open()
    _ = try await (first.value, second.value)
    for await calls in next.outbox.values where calls.isEmpty { break }
    #expect(server.titles == ["a"])
  }

  @Test("A queued call whose turn comes while a reset cancels it leaves the outbox")
  func turnDuringReset() async throws {
    let client = outboxProgram(storage)
    let (calls, end) = (EventLog<Int>(), DispatchSemaphore(value: 0))
    let change = Mutation(path: ["change"]) { (number: Int, _) in
      calls.append(number)
      let gate = AsyncGate()
      await withTaskCancellationHandler {
        await gate.wait()
      } onCancel: {
        gate.open()
        // The end of the first run lets the third one begin and end before the reset cancels it.
        if number == 2 { end.wait() }
      }
    }
    let store = client.store(for: change.limited(to: 2, in: "scope").persisted())
    var tasks: [Task<Void, any Error>] = []
    for number in 1...3 {
      tasks.append(
        Task {
          defer { if number == 3 { end.signal() } }
          try await store.mutate(with: number)
        })
      for await present in client.outbox.values where present.count == number { break }
      await calls.wait(for: min(number, 2))
    }
    try await client.flush()
    await onThreads(1) { _ in store.resetState() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    try await client.flush()
    #expect(calls.values == [1, 2])
    #expect(client.outbox.calls.isEmpty)
    #expect(storage.entries.isEmpty)
  }

  @Test("A call that is discarded while it runs is cancelled")
  func discardRunning() async throws {
    let server = OutboxServer(waits: true)
    let client = outboxProgram(storage)
    let store = client.store(for: CreatePost(server: server).persisted())
    let call = Task { try await store.mutate(with: "a") }
    await server.arrivals.wait(for: 1)
    client.outbox.discard(server.arrivals.values[0].call)
    await #expect(throws: CancellationError.self) { try await call.value }
    server.gate.open()
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("Edits are displayed again, in the order of the calls, until the calls have ended")
  func edits() async throws {
    try await interruptCalls(["a", "b"], in: storage)
    let server = OutboxServer(waits: true)
    let next = outboxProgram(storage)
    let feed = Query<[String], any Error>(path: ["feed"]) { _ in ["old"] }.manual()
    let store = next.store(for: feed)
    store.setResult(to: .success(["old"]))
    try await next.resumeMutations { outbox in
      outbox.register(CreatePost(server: server)) { title, client, outcome in
        try await client.store(for: feed).optimistically {
          $0?.append(title)
        } while: {
          try await outcome()
        }
      }
    }
    #expect(store.currentValue == ["old", "a", "b"])
    #expect(store.confirmedValue == ["old"])
    server.gate.open()
    for await calls in next.outbox.values where calls.isEmpty { break }
    for await state in store.states where !store.isOptimistic && state.currentValue?.count == 3 {
      break
    }
    #expect(store.confirmedValue == ["old", "a", "b"])
  }

  @Test(
    "A call of another version stays, one that cannot be decoded is set aside; both are reported")
  func unreadable() async throws {
    try await interruptCalls(["a"], version: 1, in: storage)
    storage.entries["calls/0000000000000009-x"] = StorageEntry(
      version: 1, date: outboxStart, data: Data("{}".utf8))
    let server = OutboxServer()
    let next = outboxProgram(storage)
    let (reports, calls) = try await issues {
      try await next.resumeMutations {
        $0.register(CreatePost(server: server).persisted(version: 2))
      }
    }
    #expect(reports.map(\.kind) == [.unreadableEntry, .unreadableEntry])
    #expect(calls.map(\.status) == [.waiting])
    #expect(storage.entriesSetAside.count == 1)
    let migrating = StorageCoding<String>.json.migrating { data, version in
      "\(version): \(String(decoding: data, as: UTF8.self))"
    }
    try await next.resumeMutations {
      $0.register(CreatePost(server: server).persisted(version: 2, coding: migrating))
    }
    for await present in next.outbox.values where present.isEmpty { break }
    #expect(server.titles == [#"1: "a""#])
  }

  @Test("Every attempt of a call, and no other call, has the same identifier")
  func identifiers() async throws {
    let server = OutboxServer()
    let client = outboxProgram(storage)
    let plain = client.store(
      for: CreatePost(server: server, failures: 1).retry(limit: 1).backoff(.noBackoff))
    try await plain.mutate(with: "a")
    try await plain.mutate(with: "b")
    let calls = server.arrivals.values.map(\.call)
    #expect(calls.count == 3)
    #expect(calls[0] == calls[1] && calls[1] != calls[2] && !calls[0].isEmpty)
    #expect(server.arrivals.values.map(\.attempt) == [0, 1, 0])
    #expect(OperationContext().operationCallID == nil)
  }

  @Test("A call with a typed failure that is resumed during a shutdown stays")
  func resumedDuringShutdown() async throws {
    let calls = EventLog<Bool>()
    let arguments = Data(#""a""#.utf8).base64EncodedString()
    let saved = #"{"id":"1","mutation":"typed-post","arguments":"\#(arguments)","attempts":1}"#
    let storage = MemoryStorage([
      "calls/0000000000000001-1": StorageEntry(
        version: 0, date: outboxStart, data: Data(saved.utf8))
    ])
    let client = OperationClient(defaults: .testing, storage: storage)
    let gate = AsyncGate()
    let started = EventLog<Bool>()
    let slow = client.store(
      for: Query(path: ["slow"]) { _ in
        started.append(true)
        await gate.wait()
        return 1
      })
    let run = Task { try await slow.fetch() }
    await started.wait(for: 1)
    let shutdown = Task { await client.shutdown(within: .seconds(20)) }
    while !client.hub.isClosed { await Task.yield() }
    let outbox = client.outbox
    try await client.resumeMutations { $0.register(TypedPost(calls: calls)) }
    await calls.wait(for: 1)
    for await calls in outbox.values where calls.map(\.status) != [.running] { break }
    #expect(calls.values == [true])
    gate.open()
    _ = try await run.value
    _ = await shutdown.value
    try await client.flush()
    #expect(storage.entries.count == 1)
  }
}
