import FoundationEssentials
import Operation
import Testing

@Suite("The outbox: bad input and failures")
struct OutboxFailureTests {
  private let storage = MemoryStorage()

  @Test("A call whose mutation is not registered stays in the outbox, and is reported")
  func unregistered() async throws {
    try await interruptCalls(["a"], in: storage)
    let next = outboxProgram(storage)
    let (reports, calls) = try await issues { try await next.resumeMutations { _ in } }
    #expect(reports.map(\.kind) == [.unresumedCall])
    #expect(calls.map(\.status) == [.waiting])
    try await next.flush()
    #expect(storage.entries.count == 1)
    let server = OutboxServer()
    try await next.resumeMutations { $0.register(CreatePost(server: server)) }
    for await present in next.outbox.values where present.isEmpty { break }
    #expect(server.titles == ["a"])
  }

  @Test("A resumed call that fails stays in the outbox until it succeeds or is discarded")
  func failed() async throws {
    try await interruptCalls(["a", "b"], in: storage)
    let server = OutboxServer()
    let next = outboxProgram(storage)
    try await next.resumeMutations { $0.register(CreatePost(server: server, failures: 3)) }
    func isFailed(_ call: OutboxCall) -> Bool {
      if case .failed = call.status { true } else { false }
    }
    for await calls in next.outbox.values where calls.count == 2 && calls.allSatisfy(isFailed) {
      break
    }
    let ids = next.outbox.calls.map(\.id)
    #expect(next.outbox.retry(ids[0]))
    await server.arrivals.wait(for: 3)
    for await calls in next.outbox.values where calls.allSatisfy(isFailed) { break }
    #expect(next.outbox.retry(ids[0]))
    for await calls in next.outbox.values where calls.count == 1 { break }
    next.outbox.discard(ids[1])
    #expect(next.outbox.calls.isEmpty)
    try await next.flush()
    #expect(storage.entries.isEmpty)
    #expect(!next.outbox.retry(ids[1]))
    #expect(server.arrivals.values.filter { $0.call == ids[0] }.map(\.attempt) == [1, 2, 3])
  }

  @Test("A call that has ended and cannot be removed from the storage is not made again")
  func failingRemoval() async throws {
    let full = UnremovableStorage()
    let server = OutboxServer()
    let client = outboxProgram(full)
    let (reports, _) = try await issues {
      try await client.store(for: CreatePost(server: server).persisted()).mutate(with: "a")
      try await client.resumeMutations { $0.register(CreatePost(server: server)) }
      await #expect(throws: Refused.self) { try await client.flush() }
    }
    #expect(Set(reports.map(\.kind)) == [.storageFailure])
    #expect(client.outbox.calls.isEmpty)
    #expect(server.titles == ["a"])
    full.isRepaired.update { $0 = true }
    try await client.flush()
    #expect(full.base.entries.isEmpty)
  }

  @Test("A call that cannot be removed does not prevent others from being saved or removed")
  func onePersistentCall() async throws {
    let server = OutboxServer()
    let picky = UnremovableStorage { key in
      server.arrivals.values.first.map { key.hasSuffix($0.call) } ?? false
    }
    let client = outboxProgram(picky)
    let store = client.store(for: CreatePost(server: server).persisted())
    let reports = try await issues {
      try await store.mutate(with: "a")
      let held = Task { try await store.mutate(with: "held") }
      await server.arrivals.wait(for: 2)
      try await store.mutate(with: "c")
      for _ in 0..<2 { await #expect(throws: Refused.self) { try await client.flush() } }
      let saved = picky.base.entries.keys.sorted().map { $0.split(separator: "-", maxSplits: 1)[1] }
      #expect(saved.map(String.init) == server.arrivals.values.prefix(2).map(\.call))
      server.gate.open()
      _ = try await held.value
    }.issues
    #expect(reports.map(\.kind) == [.storageFailure])
    picky.isRepaired.update { $0 = true }
    try await client.flush()
    #expect(picky.base.entries.isEmpty)
  }

  @Test("A call with a typed failure that a shutdown cuts off is not made before it is saved")
  func typedCutOff() async throws {
    let clock = ManualClock(now: outboxStart)
    let slow = MemoryStorage(clock: clock)
    slow.delay = .seconds(2)
    let client = outboxProgram(slow, clock: clock)
    let calls = EventLog<Bool>()
    let store = client.store(for: TypedPost(calls: calls).persisted())
    let call = Task { try await store.mutate(with: "a") }
    // The storage is listed first.
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(2))
    await clock.sleepers(atLeast: 1)
    let shutdown = Task { await client.shutdown(within: .zero) }
    for await state in store.states where !state.isLoading { break }
    await clock.settle()
    #expect(calls.values == [])
    slow.delay = .zero
    await clock.advance(by: .seconds(2))
    await #expect(throws: (any Error).self) { try await call.value }
    _ = await shutdown.value
    #expect(calls.values == [true])
    #expect(slow.entries.count == 1)
  }

  @Test("A call that is too old is reported, and dropped")
  func expired() async throws {
    try await interruptCalls(["a"], in: storage)
    let server = OutboxServer()
    let next = outboxProgram(storage, clock: ManualClock(now: outboxStart + 60))
    let (reports, calls) = try await issues {
      try await next.resumeMutations {
        $0.register(CreatePost(server: server).persisted(maxAge: .seconds(60)))
      }
    }
    #expect(reports.map(\.kind) == [.unresumedCall])
    #expect(calls.isEmpty)
    try await next.flush()
    #expect(storage.entries.isEmpty)
  }

  /// Arguments that call a closure when they are released.
  private struct Attachment: Codable, Sendable {
    @TaskLocal static var onRelease: @Sendable () -> Void = {}

    let sentinel = Sentinel(0, onRelease)

    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws {}
  }

  @Test("The arguments of a failed call are released without the lock of the outbox")
  func releasedArguments() async throws {
    let arguments = Data("{}".utf8).base64EncodedString()
    let call = #"{"id":"ID","mutation":"attach","arguments":"\#(arguments)","attempts":1}"#
    let client = outboxProgram(MemoryStorage(["calls/0000000000000001-ID": savedEntry(call)]))
    let outbox = client.outbox
    let releases = EventLog<Int>()
    let attach = Mutation(path: ["attach"]) { (_: Attachment, _) async throws -> Int in
      throw Refused()
    }
    try await Attachment.$onRelease.withValue({ releases.append(outbox.calls.count) }) {
      try await client.resumeMutations { $0.register(attach) }
      for await calls in outbox.values where calls.first?.status != .running { break }
      client.clearStores()
      #expect(outbox.retry("ID"))
      for await calls in outbox.values where calls.first?.status != .running { break }
    }
    await releases.wait(for: 1)
    outbox.discard("ID")
  }

  @Test("A later resumption drops a call by the age that was registered before")
  func expiredLater() async throws {
    try await interruptCalls(["a"], in: storage)
    let (server, clock, shows) = (OutboxServer(), ManualClock(now: outboxStart), EventLog<Int>())
    let next = outboxProgram(storage, clock: clock)
    try await next.resumeMutations { outbox in
      outbox.register(CreatePost(server: server).persisted(maxAge: .seconds(60))) { _, _, _ in
        shows.append(0)
        throw Refused()
      }
    }
    for await calls in next.outbox.values where calls.map(\.status) == [.waiting] { break }
    await clock.advance(by: .seconds(60))
    let reports = try await issues { try await next.resumeMutations { _ in } }.issues
    #expect(reports.map(\.kind) == [.unresumedCall])
    #expect(next.outbox.calls.isEmpty)
    #expect(shows.count == 1)
  }

  @Test("A storage that fails is reported, and the call is made")
  func failingStorage() async throws {
    storage.failure = Refused()
    let server = OutboxServer()
    let client = outboxProgram(storage)
    let store = client.store(for: CreatePost(server: server).persisted())
    let (reports, value) = try await issues { try await store.mutate(with: "a") }
    #expect(value == 1)
    #expect(Set(reports.map(\.kind)) == [.storageFailure])
    storage.failure = nil
    try await client.flush()
  }

  @Test("A new call follows saved ones, also if they were not listed and the clock was never set")
  func unlistedCalls() async throws {
    try await interruptCalls(["a", "b", "c"], in: storage)
    let saved = Set(storage.entries.keys)
    storage.failure = Refused()
    let server = OutboxServer(waits: true)
    let clock = ManualClock(now: Date(timeIntervalSince1970: 0))
    let client = outboxProgram(storage, clock: clock)
    let store = client.store(for: CreatePost(server: server).persisted())
    let (_, call) = await issues {
      let call = Task { try await store.mutate(with: "d") }
      await server.arrivals.wait(for: 1)
      return call
    }
    storage.failure = nil
    try await client.flush()
    #expect(storage.entries.count == 4)
    #expect(storage.entries.keys.max().map(saved.contains) == false)
    server.gate.open()
    _ = try await call.value
  }

  /// An element of a path that has no form of its own.
  private final class Key: Hashable, Sendable {
    static func == (lhs: Key, rhs: Key) -> Bool { lhs === rhs }
    func hash(into hasher: inout Hasher) {}
  }

  @Test("A mutation on a path without a stable form, and without a name, is reported and not saved")
  func unstablePath() async throws {
    let client = outboxProgram(storage)
    let mutation = Mutation(path: OperationPath(["create", Key()])) {
      (number: Int, _) async throws -> Int in number
    }
    let reports = try await issues {
      #expect(try await client.store(for: mutation.persisted()).mutate(with: 3) == 3)
      try await client.flush()
      #expect(try await client.resumeMutations { $0.register(mutation) }.isEmpty)
    }.issues
    #expect(reports.map(\.kind) == [.unsavedValue, .unresumedCall])
    #expect(storage.saveCount == 0)
  }

  @Test("A client without a storage resumes no calls")
  func withoutStorage() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let server = OutboxServer()
    #expect(try await client.resumeMutations { $0.register(CreatePost(server: server)) }.isEmpty)
  }

  @Test("A resumed call that a subscriber of the outbox discards is not made")
  func discardedInHandler() async throws {
    try await interruptCalls(["a", "b"], in: storage)
    let (server, client) = (OutboxServer(), outboxProgram(storage))
    let outbox = client.outbox
    let subscription = outbox.values.source.subscribe { signal in
      guard case .element(let calls, in: _) = signal, let first = calls.first, calls.count == 2
      else { return }
      if first.status == .running { outbox.discard(first.id) }
    }
    try await client.resumeMutations { $0.register(CreatePost(server: server)) }
    for await calls in outbox.values where calls.isEmpty { break }
    #expect(server.titles == ["b"])
    subscription.cancel()
    outbox.discard("none")
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("A resumed call that is discarded as its run starts is not made")
  func discardedAtStart() async throws {
    try await interruptCalls(["a"], in: storage)
    let (server, client) = (OutboxServer(), outboxProgram(storage))
    let outbox = client.outbox
    let subscription = client.events.source.subscribe { signal in
      guard case .element(let event, in: _) = signal, case .runStarted = event.occurrence
      else { return }
      for call in outbox.calls { outbox.discard(call.id) }
    }
    let ends = EventLog<Bool>()
    try await client.resumeMutations { registry in
      registry.register(CreatePost(server: server)) { _, _, outcome in
        ends.append((try? await outcome()) == nil)
      }
    }
    await ends.wait(for: 1)
    #expect(ends.values == [true])
    #expect(server.titles.isEmpty && outbox.calls.isEmpty)
    subscription.cancel()
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("A run of a mutation that was never called does not keep a flush waiting")
  func neverCalled() async throws {
    let client = outboxProgram(MemoryStorage())
    let store = client.store(for: CreatePost(server: OutboxServer()).persisted())
    let task = store.runTask()
    await #expect(throws: MutationError.noArguments) { try await task.runIfNeeded() }
    let isFlushed = Monitor(false)
    let flush = Task {
      try await client.flush()
      isFlushed.update { $0 = true }
    }
    #expect(await eventually { isFlushed.value })
    flush.cancel()
    _ = await flush.result
  }

  @Test("A mutation with a timeout that was never called throws, whatever its failure is")
  func neverCalledTyped() async {
    let store = OperationClient(defaults: .testing, clock: ManualClock())
      .store(for: TypedPost(calls: EventLog()).timeout(after: .seconds(1)))
    let task = store.runTask()
    await #expect(throws: MutationError.noArguments) { try await task.runIfNeeded() }
  }
}
