import FoundationEssentials
import Testing

@testable import Operation

/// A mutation that logs the identifiers of its calls.
private struct Change: MutationRequest {
  let calls: EventLog<String>
  var attempts: EventLog<Int>?
  var gate: AsyncGate?
  var failure: (any Error)?

  var path: OperationPath { ["change"] }

  func mutate(
    with text: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    let count = calls.append(context.operationCallID ?? "")
    attempts?.append(context.operationCallAttempt)
    if let gate { await gate.wait() }
    if let failure { throw failure }
    return count
  }
}

/// A storage whose listings wait.
private struct ListingStorage: OperationStorage {
  let base: MemoryStorage
  let beforeListing: @Sendable (String) async throws -> Void

  func load(_ key: String) async throws -> StorageEntry? { try await base.load(key) }
  func save(_ entries: [String: StorageEntry]) async throws { try await base.save(entries) }
  func remove(_ keys: [String]) async throws { try await base.remove(keys) }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try await beforeListing(prefix)
    return try await base.keys(withPrefix: prefix)
  }
}

/// Returns a storage with one call that an earlier program did not finish.
private func interrupted(
  number: String = "0000000000000001", id: String = "ID", attempts: Int = 1
) -> MemoryStorage {
  let arguments = Data(#""a""#.utf8).base64EncodedString()
  let call =
    #"{"id":"\#(id)","mutation":"change","arguments":"\#(arguments)","attempts":\#(attempts)}"#
  return MemoryStorage(["calls/\(number)-\(id)": savedEntry(call)])
}

@Suite("Saved calls during other events", .timeLimit(.minutes(5)))
struct OutboxRaceTests {
  private let storage = MemoryStorage()

  @Test("A call whose request throws a cancellation has ended")
  func cancellationAsFailure() async throws {
    let client = savingClient(storage)
    let change = Change(calls: EventLog(), failure: CancellationError())
    let store = client.store(for: change.persisted())
    await #expect(throws: CancellationError.self) { try await store.mutate(with: "a") }
    #expect(client.outbox.calls.isEmpty)
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("A resumed call that is discarded before its request is called is not made")
  func discardedBeforeItBegins() async throws {
    let client = savingClient(interrupted())
    let (calls, gate, ends) = (EventLog<String>(), AsyncGate(), EventLog<Bool>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls)) { _, _, outcome in
        await gate.wait()
        ends.append((try? await outcome()) == nil)
      }
    }
    client.outbox.discard("ID")
    #expect(client.outbox.calls.isEmpty)
    gate.open()
    await ends.wait(for: 1)
    #expect(ends.values == [true])
    #expect(calls.values.isEmpty)
    #expect(client.outbox.calls.isEmpty)
  }

  @Test("Equal saved calls of a deduplicated mutation are all made, and leave the outbox")
  func equalCalls() async throws {
    let storage = interrupted()
    storage.entries.merge(interrupted(number: "0000000000000002", id: "ID2").entries) { $1 }
    let client = savingClient(storage)
    let (calls, gate) = (EventLog<String>(), AsyncGate())
    try await client.resumeMutations {
      $0.register(Change(calls: calls, gate: gate).deduplicated())
    }
    await calls.wait(for: 2)
    gate.open()
    for await present in client.outbox.values where present.isEmpty { break }
    #expect(Set(calls.values) == ["ID", "ID2"])
  }

  /// A mutation whose failure cannot be a cancellation.
  private struct TypedChange: MutationRequest {
    let calls: EventLog<String>
    var gate: AsyncGate?

    var path: OperationPath { ["change"] }

    func mutate(
      with text: String, in context: OperationContext,
      with continuation: OperationContinuation<Int, Refused>
    ) async throws(Refused) -> Int {
      let count = calls.append(text)
      await gate?.wait()
      return count
    }
  }

  @Test(
    "A resumed call with a typed failure that was discarded, or has ended, is not made",
    arguments: [false, true])
  func typedAfterItsEnd(isDiscarded: Bool) async throws {
    let client = savingClient(interrupted())
    let (calls, gate, ends) = (EventLog<String>(), AsyncGate(), EventLog<Bool>())
    try await client.resumeMutations { outbox in
      outbox.register(TypedChange(calls: calls)) { _, _, outcome in
        await gate.wait()
        if !isDiscarded { _ = try await outcome() }
        await #expect(throws: CancellationError.self) { try await outcome() }
        ends.append(true)
      }
    }
    if isDiscarded { client.outbox.discard("ID") }
    gate.open()
    await ends.wait(for: 1)
    #expect(calls.values == (isDiscarded ? [] : ["a"]))
  }

  @Test("A call with a typed failure that is cancelled before its turn leaves the outbox")
  func typedCancelledInScope() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let (calls, gate) = (EventLog<String>(), AsyncGate())
    let change = TypedChange(calls: calls, gate: gate).serialized(in: "scope").persisted()
    let store = client.store(for: change)
    let first = Task { try await store.mutate(with: "a") }
    await calls.wait(for: 1)
    let second = Task { try await store.mutate(with: "b") }
    for await present in client.outbox.values where present.count == 2 { break }
    // Until the second run, whose call is saved, waits for the first one.
    await clock.settle()
    second.cancel()
    // While the first run, which is before it, is in flight. It does not come if the call stays.
    for await present in client.outbox.values where present.count == 1 { break }
    await client.shutdown(within: .zero)
    #expect(storage.entries.count == 1)
    gate.open()
    _ = await first.result
    _ = await second.result
  }

  @Test("A call that a shutdown cuts off stays, and one that was cancelled before does not")
  func cancelledBeforeShutdown() async throws {
    let (listings, listing) = (EventLog<String>(), AsyncGate())
    let client = savingClient(
      ListingStorage(base: storage) {
        listings.append($0)
        await listing.wait()
      })
    let store = client.store(for: Change(calls: EventLog(), gate: AsyncGate()).persisted())
    let cancelled = Task.immediate { try await store.mutate(with: "a") }
    let cut = Task.immediate { try await store.mutate(with: "b") }
    await listings.wait(for: 1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let shutdown = Task { await client.shutdown(within: .zero) }
    while !client.hub.isCutOff { await Task.yield() }
    listing.open()
    #expect(await shutdown.value.cancelledRuns.count == 1)
    await #expect(throws: CancellationError.self) { try await cut.value }
    #expect(storage.entries.count == 1)
    #expect(client.outbox.calls.map { String(decoding: $0.arguments, as: UTF8.self) } == [#""b""#])
  }

  @Test("A resumed call whose handler throws waits again, and can be retried")
  func handlerThrows() async throws {
    let client = savingClient(interrupted())
    let (calls, attempts) = (EventLog<String>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls)) { _, _, outcome in
        if attempts.append(0) == 1 { throw Refused() }
        _ = try await outcome()
      }
    }
    for await present in client.outbox.values where present.map(\.status) == [.waiting] { break }
    #expect(client.outbox.retry("ID"))
    for await present in client.outbox.values where present.isEmpty { break }
    #expect(calls.values == ["ID"])
  }

  @Test("A failed call whose handler throws at a retry waits again, and can be retried")
  func handlerThrowsAfterFailure() async throws {
    let client = savingClient(interrupted())
    let (calls, attempts) = (EventLog<String>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls, failure: Refused())) { _, _, outcome in
        if attempts.append(0) == 2 { throw Refused() }
        _ = try await outcome()
      }
    }
    for await present in client.outbox.values where present.first?.status != .running { break }
    #expect(client.outbox.retry("ID"))
    await attempts.wait(for: 2)
    for await present in client.outbox.values where present.map(\.status) == [.waiting] { break }
    #expect(client.outbox.retry("ID"))
    await calls.wait(for: 2)
  }

  @Test("A call that is retried keeps running when the handler of its first attempt returns later")
  func retryBeforeHandlerReturns() async throws {
    let client = savingClient(interrupted())
    let (calls, gates) = (EventLog<String>(), [AsyncGate(), AsyncGate()])
    let (attempts, returns) = (EventLog<Int>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls, failure: Refused())) { _, _, outcome in
        let attempt = attempts.append(0)
        if attempt == 2 { await gates[1].wait() }
        _ = try? await outcome()
        if attempt == 1 { await gates[0].wait() }
        returns.append(attempt)
      }
    }
    for await present in client.outbox.values where present.first?.status != .running { break }
    #expect(client.outbox.retry("ID"))
    await attempts.wait(for: 2)
    gates[0].open()
    await returns.wait(for: 1)
    // The handler has returned. The outbox handles its return soon after that.
    for _ in 0..<1000 { await Task.yield() }
    #expect(client.outbox.calls.map(\.status) == [.running])
    gates[1].open()
    for await present in client.outbox.values where present.first?.status != .running { break }
    #expect(client.outbox.calls.map(\.attempts) == [3])
  }

  @Test("A saved call with extreme numbers is resumed", arguments: [Int.min, Int.max])
  func numbers(number: Int) async throws {
    let client = savingClient(interrupted(number: "\(number)", attempts: number))
    let calls = EventLog<String>()
    try await client.store(for: Change(calls: calls).persisted()).mutate(with: "b")
    try await client.resumeMutations { $0.register(Change(calls: calls)) }
    for await present in client.outbox.values where present.isEmpty { break }
    #expect(calls.values.count == 2 && calls.values.last == "ID")
  }

  @Test("A call whose request is restarted has one identifier, and is removed from the outbox")
  func restarted() async throws {
    let client = savingClient(storage)
    let (calls, attempts, gate) = (EventLog<String>(), EventLog<Int>(), AsyncGate())
    let change = Change(calls: calls, attempts: attempts, gate: gate)
      .deduplicated(by: { _, _ in true }).persisted()
    let store = client.store(for: change)
    let first = Task { try await store.mutate(with: "a") }
    await calls.wait(for: 1)
    let second = Task { _ = try await store.fetch(restarting: true) }
    await attempts.wait(for: 2)
    gate.open()
    _ = await first.result
    _ = await second.result
    #expect(Set(calls.values).count == 1)
    #expect(attempts.values == [0, 1])
    try await client.flush()
    #expect(client.outbox.calls.isEmpty)
    #expect(storage.entries.isEmpty)
  }

  @Test(
    "A flush and a shutdown wait for a call that is made but not listed yet",
    arguments: [false, true])
  func flushWhileEntering(isShutdown: Bool) async throws {
    let (listings, listing, gate) = (EventLog<String>(), AsyncGate(), AsyncGate())
    let client = savingClient(
      ListingStorage(base: storage) {
        listings.append($0)
        await listing.wait()
      })
    let store = client.store(for: Change(calls: EventLog(), gate: gate).persisted())
    let call = Task { try await store.mutate(with: "a") }
    await listings.wait(for: 1)
    let end = Task {
      if isShutdown {
        #expect(await client.shutdown(within: .zero).saveFailure == nil)
      } else {
        try await client.flush()
      }
      return storage.entries.count
    }
    while isShutdown, !client.hub.isCutOff { await Task.yield() }
    // If the flush did not wait, it would end.
    for _ in 0..<1000 { await Task.yield() }
    listing.open()
    #expect(try await end.value == 1)
    gate.open()
    _ = await call.result
  }

  @Test("Calls that are made at the same time list the storage once")
  func oneListing() async throws {
    let (listings, gate) = (EventLog<String>(), AsyncGate())
    let client = savingClient(
      ListingStorage(base: storage) {
        listings.append($0)
        await gate.wait()
      })
    let store = client.store(for: Change(calls: EventLog()).persisted())
    let calls = (0..<5).map { _ in
      let task = store.mutateTask(with: "a")
      return Task.immediate { try await task.runIfNeeded() }
    }
    await listings.wait(for: 1)
    gate.open()
    for call in calls { _ = try await call.value }
    #expect(listings.count == 1)
  }

  @Test("A flush does not wait for a call that cannot be saved, and a cancelled one not for any")
  func flushOfUnsavedCall() async throws {
    let coding = StorageCoding<String> { _ in
      throw Refused()
    } decode: { _ in
      throw Refused()
    }
    let (calls, gate, listing) = (EventLog<String>(), AsyncGate(), AsyncGate())
    let client = savingClient(ListingStorage(base: storage) { _ in await listing.wait() })
    let change = Change(calls: calls, gate: gate)
    let unsaved = client.store(for: change.persisted(coding: coding))
    let reports = try await issues {
      let call = Task { try await unsaved.mutate(with: "a") }
      await calls.wait(for: 1)
      try await client.flush()
      gate.open()
      _ = try await call.value
    }.issues
    #expect(reports.map(\.kind) == [.unsavedValue])
    let other = Mutation(path: ["other"]) { (_: String, _) async throws -> Int in 1 }.persisted()
    let task = client.store(for: other).mutateTask(with: "b")
    let call = Task.immediate { try await task.runIfNeeded() }
    let flush = Task { try await client.flush() }
    flush.cancel()
    await #expect(throws: CancellationError.self) { try await flush.value }
    listing.open()
    _ = try await call.value
  }

  @Test("A new call follows resumed ones, also if no listing works then and a clock was set back")
  func lateFailure() async throws {
    let (calls, listings) = (EventLog<String>(), EventLog<String>())
    // As a program has saved it whose first listing had failed, a second later.
    let storage = ListingStorage(base: interrupted(number: "0800000001000001")) { prefix in
      if listings.append(prefix) > 1 { throw Refused() }
    }
    let client = outboxProgram(storage, network: ManualNetworkObserver(.disconnected))
    let change = Change(calls: calls).networkMode(.online).serialized(in: "changes").persisted()
    try await client.resumeMutations { $0.register(change) }
    let call = Task { try await client.store(for: change).mutate(with: "b") }
    for await present in client.outbox.values where present.count == 2 {
      #expect(present.map { String(decoding: $0.arguments, as: UTF8.self) } == [#""a""#, #""b""#])
      break
    }
    call.cancel()
    _ = await call.result
    client.cancel(matching: [])
  }

  @Test("Calls that end while the outbox is read are not listed again")
  func readingDuringEnds() async throws {
    let client = savingClient(storage)
    let store = client.store(for: Change(calls: EventLog()).persisted())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { for _ in 0..<50 { _ = try await store.mutate(with: "a") } }
        group.addTask { for _ in 0..<50 { try await client.outbox.load() } }
      }
      try await group.waitForAll()
    }
    #expect(client.outbox.calls.isEmpty)
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }
}
