import FoundationEssentials
import Operation
import Testing

/// A storage whose loads read at once, and return when a gate is opened. Other calls can wait.
private struct HeldStorage: OperationStorage {
  let base: MemoryStorage
  let gate = AsyncGate()
  let loads = EventLog<String>()
  var beforeSave: @Sendable () async -> Void = {}
  var beforeSettingAside: @Sendable () async -> Void = {}

  func load(_ key: String) async throws -> StorageEntry? {
    let entry = try await base.load(key)
    loads.append(key)
    await gate.wait()
    return entry
  }

  func save(_ entries: [String: StorageEntry]) async throws {
    await beforeSave()
    try await base.save(entries)
  }
  func remove(_ keys: [String]) async throws { try await base.remove(keys) }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try await base.keys(withPrefix: prefix)
  }
  func setAside(_ key: String) async throws {
    await beforeSettingAside()
    try await base.setAside(key)
  }
}

/// A mutation that logs the identifiers of its calls.
private struct Change: MutationRequest {
  let calls: EventLog<String>
  var gate: AsyncGate?
  var failure: (any Error)?

  var path: OperationPath { ["change"] }

  func mutate(
    with text: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    let count = calls.append(context.operationCallID ?? "")
    if let gate { await gate.wait() }
    if let failure { throw failure }
    return count
  }
}

private func entry(_ text: String, at date: Date = Date()) -> StorageEntry {
  StorageEntry(version: 0, date: date, data: Data(text.utf8))
}

private func client(_ storage: any OperationStorage) -> OperationClient {
  OperationClient(defaults: .testing, storage: storage)
}

/// Returns a storage with one call that an earlier program did not finish.
private func interrupted(number: String = "0000000000000001", attempts: Int = 1) -> MemoryStorage {
  let arguments = Data(#""a""#.utf8).base64EncodedString()
  let call =
    #"{"id":"ID","mutation":"change","arguments":"\#(arguments)","attempts":\#(attempts)}"#
  return MemoryStorage(["calls/\(number)-ID": entry(call)])
}

@Suite("Saved values and calls during other events")
struct PersistenceRaceTests {
  private struct Refusal: Error {}

  private let storage = MemoryStorage()

  private var saved: String? {
    storage.entries["values/q"].map { String(decoding: $0.data, as: UTF8.self) }
  }

  // MARK: - Calls

  @Test("A call whose request throws a cancellation has ended")
  func cancellationAsFailure() async throws {
    let client = client(storage)
    let change = Change(calls: EventLog(), failure: CancellationError())
    let store = client.store(for: change.persisted())
    await #expect(throws: CancellationError.self) { try await store.mutate(with: "a") }
    #expect(client.outbox.calls.isEmpty)
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("A resumed call that is discarded before its request is called is not made")
  func discardedBeforeItBegins() async throws {
    let client = client(interrupted())
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

  @Test("A resumed call whose handler throws waits again, and can be retried")
  func handlerThrows() async throws {
    let client = client(interrupted())
    let (calls, attempts) = (EventLog<String>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls)) { _, _, outcome in
        if attempts.append(0) == 1 { throw Refusal() }
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
    let client = client(interrupted())
    let (calls, attempts) = (EventLog<String>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls, failure: Refusal())) { _, _, outcome in
        if attempts.append(0) == 2 { throw Refusal() }
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
    let client = client(interrupted())
    let (calls, gates) = (EventLog<String>(), [AsyncGate(), AsyncGate()])
    let (attempts, returns) = (EventLog<Int>(), EventLog<Int>())
    try await client.resumeMutations { outbox in
      outbox.register(Change(calls: calls, failure: Refusal())) { _, _, outcome in
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
    let client = client(interrupted(number: "\(number)", attempts: number))
    let calls = EventLog<String>()
    try await client.store(for: Change(calls: calls).persisted()).mutate(with: "b")
    try await client.resumeMutations { $0.register(Change(calls: calls)) }
    for await present in client.outbox.values where present.isEmpty { break }
    #expect(calls.values.count == 2 && calls.values.last == "ID")
  }

  @Test("A call whose request is restarted has one identifier, and is removed from the outbox")
  func restarted() async throws {
    let client = client(storage)
    let (calls, gate) = (EventLog<String>(), AsyncGate())
    let change = Change(calls: calls, gate: gate).deduplicated(by: { _, _ in true }).persisted()
    let store = client.store(for: change)
    let first = Task { try await store.mutate(with: "a") }
    await calls.wait(for: 1)
    let second = Task { _ = try await store.fetch(restarting: true) }
    await calls.wait(for: 2)
    gate.open()
    _ = await first.result
    _ = await second.result
    #expect(Set(calls.values).count == 1)
    try await client.flush()
    #expect(client.outbox.calls.isEmpty)
    #expect(storage.entries.isEmpty)
  }

  @Test("Calls that end while the outbox is read are not listed again")
  func readingDuringEnds() async throws {
    let client = client(storage)
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

  // MARK: - Values

  @Test("An edit that succeeds while the saved value loads is applied to it")
  func editWhileLoading() async throws {
    storage.entries = ["values/q": entry("[1,2,3]")]
    let held = HeldStorage(base: storage)
    let client = client(held)
    let query = Query<[Int], any Error>(path: ["q"]) { _ in [0] }.manual().persisted()
    let store = client.store(for: query)
    let edit = Task {
      await store.optimistically {
        $0?.append(4)
      } while: {
      }
    }
    await held.loads.wait(for: 1)
    held.gate.open()
    await edit.value
    #expect(store.currentValue == [1, 2, 3, 4])
    try await client.flush()
    #expect(saved == "[1,2,3,4]")
  }

  @Test(
    "An edit whose task is cancelled while the saved value loads is applied to it",
    arguments: [false, true])
  func cancelledEditWhileLoading(matching: Bool) async throws {
    storage.entries = ["values/q": entry("[1,2,3]")]
    let held = HeldStorage(base: storage)
    let client = client(held)
    let query = Query<[Int], any Error>(path: ["q"]) { _ in [0] }.manual().persisted()
    let store = client.store(for: query)
    let work = EventLog<Int>()
    let edit = Task {
      if matching {
        await client.optimistically(matching: ["q"], of: QueryState<[Int], any Error>.self) {
          $0?.append(4)
        } while: {
          _ = work.append(0)
        }
      } else {
        await store.optimistically {
          $0?.append(4)
        } while: {
          _ = work.append(0)
        }
      }
    }
    await work.wait(for: 1)
    edit.cancel()
    await edit.value
    held.gate.open()
    for await value in store.values where value != nil { break }
    #expect(store.currentValue == [1, 2, 3, 4])
    #expect(!store.isOptimistic)
    try await client.flush()
    #expect(saved == "[1,2,3,4]")
  }

  @Test(
    "A late drop of an old or unreadable value does not remove a newer one",
    arguments: ["garbage", "1"])
  func dropDuringSave(text: String) async throws {
    storage.entries = ["values/q": entry(text, at: Date(timeIntervalSinceReferenceDate: 0))]
    let held = HeldStorage(base: storage)
    let client = client(held)
    let query = Query<Int, any Error>(path: ["q"]) { _ in 5 }.manual()
      .persisted(maxAge: text == "1" ? .seconds(10) : nil)
    let store = client.store(for: query)
    await held.loads.wait(for: 1)
    try await store.fetch()
    try await client.flush()
    #expect(saved == "5")
    held.gate.open()
    _ = await issues { for await state in store.states where !state.isRestoring { break } }
    try await client.flush()
    #expect(saved == "5")
  }

  @Test("A newer value that is set aside in place of an unreadable one is saved again")
  func settingAsideDuringSave() async throws {
    storage.entries = ["values/q": entry("garbage")]
    let (saves, saveGate, asideGate) = (EventLog<Int>(), AsyncGate(), AsyncGate())
    let held = HeldStorage(base: storage) {
      saves.append(0)
      await saveGate.wait()
    } beforeSettingAside: {
      saveGate.open()
      await asideGate.wait()
    }
    let client = client(held)
    let store = client.store(
      for: Query<Int, any Error>(path: ["q"]) { _ in 5 }.manual().persisted())
    await held.loads.wait(for: 1)
    try await store.fetch()
    let flush = Task {
      try await client.flush()
      asideGate.open()
    }
    await saves.wait(for: 1)
    _ = await issues {
      held.gate.open()
      for await state in store.states where !state.isRestoring { break }
    }
    try await flush.value
    try await client.flush()
    #expect(saved == "5")
  }

  @Test("A yielded value is saved, and so is the value that a cancellation restores")
  func yields() async throws {
    let client = client(storage)
    let (runs, gate) = (EventLog<Int>(), AsyncGate())
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      let run = runs.append(0)
      if run == 1 { return 1 }
      continuation.yield(run * 10)
      if run == 2 { await gate.wait() }
      throw Refusal()
    }.manual().persisted()
    let store = client.store(for: query)
    try await store.fetch()
    let second = Task { try await store.fetch() }
    for await value in store.values where value == 20 { break }
    try await client.flush()
    #expect(saved == "20")
    store.cancel()
    try await client.flush()
    #expect(saved == "1")
    await #expect(throws: Refusal.self) { try await store.fetch() }
    try await client.flush()
    #expect(saved == "30")
    gate.open()
    _ = await second.result
  }

  private typealias IntStore = OperationStore<QueryState<Int, any Error>>

  /// Calls `body` with a store while its saved value, 7, loads and one of its runs has yielded 1.
  /// Returns when the value is loaded and the run is cancelled.
  private func yieldWhileLoading(
    _ body: (OperationClient, IntStore, HeldStorage) async throws -> Void
  ) async throws {
    storage.entries = ["values/q": entry("7")]
    let held = HeldStorage(base: storage)
    let client = client(held)
    let gate = AsyncGate()
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      continuation.yield(1)
      await gate.wait()
      return 2
    }.manual().persisted()
    let store = client.store(for: query)
    await held.loads.wait(for: 1)
    let run = Task { try await store.fetch() }
    for await value in store.values where value == 1 { break }
    try await body(client, store, held)
    held.gate.open()
    for await state in store.states where !state.isRestoring { break }
    store.cancel()
    gate.open()
    _ = await run.result
    #expect(store.currentValue == 7)
    try await client.flush()
    #expect(saved == "7")
  }

  @Test("The yield of a run that is cancelled while the saved value loads does not replace it")
  func cancelledWhileLoading() async throws {
    try await yieldWhileLoading { client, store, _ in
      store.cancel()
      try await client.flush()
      #expect(saved == "7")
    }
    try await yieldWhileLoading { client, store, _ in
      try await client.flush()
      #expect(saved == "7")
      store.cancel()
    }
  }

  @Test("The cancellation of a run that yielded while the saved value loads restores that value")
  func loadedBelowYield() async throws {
    try await yieldWhileLoading { _, store, held in
      held.gate.open()
      for await state in store.states where !state.isRestoring { break }
      #expect(store.currentValue == 1)
    }
  }

  @Test("A shutdown that cancels a run keeps the saved value that the run yielded")
  func yieldsAtShutdown() async throws {
    let client = client(storage)
    let gate = AsyncGate()
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      continuation.yield(7)
      await gate.wait()
      return 8
    }.manual().persisted()
    let store = client.store(for: query)
    let run = Task { try await store.fetch() }
    for await value in store.values where value == 7 { break }
    await client.shutdown(within: .zero)
    #expect(store.currentValue == nil)
    try await client.flush()
    #expect(saved == "7")
    store.setResult(to: .success(9))
    try await client.flush()
    #expect(saved == "9")
    gate.open()
    _ = await run.result
  }

  @Test("A removal of the second store on a path does not remove the saved value of the first one")
  func removalOfAClash() async throws {
    let client = client(storage)
    let query = Query<Int, any Error>(path: ["q"]) { _ in 5 }.manual().persisted()
    try await client.fetch(query)
    try await client.flush()
    let other = Query<String, any Error>(path: ["q"]) { _ in "x" }.manual().persisted()
    _ = await issues {
      let id = ObjectIdentifier(client.store(for: other))
      client.clearStores(matching: ["q"], where: .where { ObjectIdentifier($0.base) == id })
    }
    try await client.flush()
    #expect(saved == "5")
  }

  @Test("A name can be used for another path after its store was removed")
  func nameAfterRemoval() async throws {
    let client = client(storage)
    func user(_ id: Int) -> some QueryRequest<Int, QueryState<Int, any Error>> {
      Query<Int, any Error>(path: ["user", id]) { _ in id }.persisted(as: "current user")
    }
    try await client.fetch(user(1))
    client.clearStores(matching: ["user"])
    let reports = try await issues { try await client.fetch(user(2)) }.issues
    #expect(reports.isEmpty)
    try await client.flush()
    #expect(storage.entries.values.map { String(decoding: $0.data, as: UTF8.self) } == ["2"])
  }
}
