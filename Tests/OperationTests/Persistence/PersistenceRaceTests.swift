import FoundationEssentials
import Testing

@testable import Operation

@Suite("Saved values during other events")
struct PersistenceRaceTests {
  private let storage = MemoryStorage()

  private var saved: String? {
    storage.entries["values/q"].map { String(decoding: $0.data, as: UTF8.self) }
  }

  @Test("An edit that succeeds while the saved value loads is applied to it")
  func editWhileLoading() async throws {
    storage.entries = ["values/q": savedEntry("[1,2,3]")]
    let held = HeldStorage(base: storage)
    let client = savingClient(held)
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
    storage.entries = ["values/q": savedEntry("[1,2,3]")]
    let held = HeldStorage(base: storage)
    let client = savingClient(held)
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
    storage.entries = ["values/q": savedEntry(text, at: Date(timeIntervalSinceReferenceDate: 0))]
    let held = HeldStorage(base: storage)
    let client = savingClient(held)
    let query = Query<Int, any Error>(path: ["q"]) { _ in 5 }.manual()
      .persisted(maxAge: text == "1" ? .seconds(10) : nil)
    let store = client.store(for: query)
    await held.loads.wait(for: 1)
    try await store.fetch()
    try await client.flush()
    #expect(saved == "5")
    held.gate.open()
    _ = await issues { for await state in store.states where !state.isRestoring { break } }
    #expect(storage.entriesSetAside.isEmpty)
    try await client.flush()
    #expect(saved == "5")
  }

  @Test(
    "An unreadable entry is not set aside while a newer value is saved in its place",
    arguments: [false, true])
  func settingAsideDuringSave(isSaved: Bool) async throws {
    storage.entries = ["values/q": savedEntry("garbage")]
    let (saves, saveGate) = (EventLog<Int>(), AsyncGate())
    let wait = { @Sendable in
      saves.append(0)
      await saveGate.wait()
    }
    let held =
      isSaved
      ? HeldStorage(base: storage, afterSave: wait) : HeldStorage(base: storage, beforeSave: wait)
    let client = savingClient(held)
    let store = client.store(
      for: Query<Int, any Error>(path: ["q"]) { _ in 5 }.manual().persisted())
    await held.loads.wait(for: 1)
    try await store.fetch()
    let flush = Task { try await client.flush() }
    await saves.wait(for: 1)
    _ = await issues {
      held.gate.open()
      for await state in store.states where !state.isRestoring { break }
    }
    #expect(saved == (isSaved ? "5" : "garbage") && storage.entriesSetAside.isEmpty)
    saveGate.open()
    try await flush.value
    #expect(saved == "5")
    try await client.flush()
    #expect(saves.values.count == 1, "it is saved once")
  }

  @Test("A yielded value is saved, and so is the value that a cancellation restores")
  func yields() async throws {
    let client = savingClient(storage)
    let (runs, gate) = (EventLog<Int>(), AsyncGate())
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      let run = runs.append(0)
      if run == 1 { return 1 }
      continuation.yield(run * 10)
      if run == 2 { await gate.wait() }
      throw Refused()
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
    await #expect(throws: Refused.self) { try await store.fetch() }
    try await client.flush()
    #expect(saved == "30")
    gate.open()
    _ = await second.result
  }

  /// A storage whose first save fails after it has written.
  private struct LateFailure: OperationStorage {
    let base: MemoryStorage

    func load(_ key: String) async throws -> StorageEntry? { try await base.load(key) }
    func save(_ entries: [String: StorageEntry]) async throws {
      try await base.save(entries)
      if base.saveCount == 1 { throw Refused() }
    }
    func remove(_ keys: [String]) async throws { try await base.remove(keys) }
    func keys(withPrefix prefix: String) async throws -> [String] { [] }
  }

  @Test("A yield that is undone is removed from the storage, also if its save has failed")
  func undoneAfterFailedSave() async throws {
    // Nothing is saved before the flush, however long the test takes.
    let client = OperationClient(
      defaults: .testing, clock: ManualClock(), storage: LateFailure(base: storage))
    let gate = AsyncGate()
    let query = Query<Int, any Error>(path: ["q"]) { _, continuation in
      continuation.yield(1)
      await gate.wait()
      return 2
    }.manual().persisted()
    let store = client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    let run = Task { try await store.fetch() }
    for await value in store.values where value == 1 { break }
    _ = await issues { await #expect(throws: Refused.self) { try await client.flush() } }
    #expect(saved == "1")
    store.cancel()
    gate.open()
    _ = await run.result
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  private typealias IntStore = OperationStore<QueryState<Int, any Error>>

  /// Calls `body` with a store while its saved value, 7, loads and one of its runs has yielded 1.
  /// Returns when the value is loaded and the run is cancelled.
  private func yieldWhileLoading(
    _ body: (OperationClient, IntStore, HeldStorage) async throws -> Void
  ) async throws {
    storage.entries = ["values/q": savedEntry("7")]
    let held = HeldStorage(base: storage)
    let client = savingClient(held)
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
    let client = savingClient(storage)
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

  @Test("A run that ends with a value while a shutdown saves is not reported as cancelled")
  func endDuringShutdown() async throws {
    let (saves, saveGate) = (EventLog<Int>(), AsyncGate())
    let held = HeldStorage(
      base: storage,
      beforeSave: {
        saves.append(0)
        await saveGate.wait()
      })
    let client = savingClient(held)
    let gate = AsyncGate()
    client.store(for: user(1)).setResult(to: .success(1))
    let store = client.store(for: Query(path: ["slow"]) { _ in await gate.wait() }.manual())
    let run = Task.immediate { try await store.fetch() }
    let shutdown = Task { await client.shutdown(within: .zero) }
    await saves.wait(for: 1)
    gate.open()
    try await run.value
    saveGate.open()
    #expect(await shutdown.value.cancelledRuns.isEmpty)
    held.gate.open()
  }

  @Test("A removal of the second store on a path does not remove the saved value of the first one")
  func removalOfAClash() async throws {
    let client = savingClient(storage)
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

  private func user(_ id: Int) -> some QueryRequest<Int, QueryState<Int, any Error>> {
    Query<Int, any Error>(path: ["user", id]) { _ in id }.persisted(as: "current user")
  }

  @Test("A name can be used for another path after its store was removed, or evicted and released")
  func nameAfterRemoval() async throws {
    let client = savingClient(storage)
    try await client.fetch(user(1))
    client.clearStores(matching: ["user"])
    let reports = try await issues {
      try await client.fetch(user(2))
      try await client.flush()
      #expect(storage.entries.values.map(\.text) == ["2"])
      weak let store = client.store(for: user(2))
      client.evictUnused()
      // The task that has written it may not have ended.
      while store != nil { await Task.yield() }
      try await client.fetch(user(3))
    }.issues
    #expect(reports.isEmpty)
    try await client.flush()
    #expect(storage.entries.values.map(\.text) == ["3"])
  }

  @Test("A name stays taken while a store of its path is referenced")
  func nameOfReferencedStore() async throws {
    let client = savingClient(storage)
    let store = client.store(for: user(1))
    client.evictUnused()
    let reports = try await issues {
      try await client.fetch(user(2))
    }.issues
    #expect(reports.map(\.kind) == [.unsavedValue])
    store.setResult(to: .success(5))
    try await client.flush()
    #expect(storage.entries.values.map(\.text) == ["5"])
  }

  @Test("The name of a removed store can be used for another path, also while it is referenced")
  func nameOfRemovedStore() async throws {
    let client = savingClient(storage)
    let store = client.store(for: user(1))
    client.clearStores(matching: ["user"])
    let reports = try await issues {
      try await client.fetch(user(2))
      try await client.flush()
    }.issues
    #expect(reports.isEmpty)
    #expect(storage.entries.values.map(\.text) == ["2"])
    withExtendedLifetime(store) {}
  }

  @Test("A name stays taken when a second store on its path saves nothing")
  func nameOfAClash() async throws {
    let client = savingClient(storage)
    let store = client.store(for: user(1))
    let reports = try await issues {
      _ = client.store(
        for: Query<String, any Error>(path: ["user", 1]) { _ in "x" }
          .persisted(as: "current user"))
      try await client.fetch(user(2))
    }.issues
    #expect(reports.map(\.kind) == [.pathClash, .unsavedValue])
    withExtendedLifetime(store) {}
  }
}
