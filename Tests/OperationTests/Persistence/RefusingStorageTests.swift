import FoundationEssentials
import Operation
import Testing

/// A storage that can refuse to load and to list, and has no place for what cannot be decoded.
private struct PickyStorage: OperationStorage {
  let base: MemoryStorage
  var beforeLoading: @Sendable (String) throws -> Void = { _ in }
  var beforeListing: @Sendable () throws -> Void = {}
  var beforeSaving: @Sendable () throws -> Void = {}

  func load(_ key: String) async throws -> StorageEntry? {
    try beforeLoading(key)
    return try await base.load(key)
  }

  func save(_ entries: [String: StorageEntry]) async throws {
    try beforeSaving()
    try await base.save(entries)
  }
  func remove(_ keys: [String]) async throws { try await base.remove(keys) }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try beforeListing()
    return try await base.keys(withPrefix: prefix)
  }
}

@Suite("Storages that refuse")
struct RefusingStorageTests {
  private let storage = MemoryStorage()
  private let fetches = EventLog<Int>()

  private func client(_ storage: PickyStorage) -> OperationClient {
    OperationClient(defaults: .testing, clock: ManualClock(now: savedStart), storage: storage)
  }

  @Test("A value that cannot be loaded is reported and fetched, which replaces the saved one")
  func failedLoad() async throws {
    storage.entries["values/posts"] = savedEntry(#"{"title":"saved","likes":0}"#)
    let client = client(PickyStorage(base: storage, beforeLoading: { _ in throw Refused() }))
    let (reports, store) = try await issues {
      let store = client.store(for: savedPosts(fetches).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      try await client.flush()
      return store
    }
    #expect(reports.map(\.kind) == [.storageFailure])
    #expect(storage.entries["values/posts"]?.text.contains("saved") == true)
    try await store.fetch()
    try await client.flush()
    #expect(storage.entries["values/posts"]?.text.contains("post 1") == true)
  }

  @Test("A value whose entry is damaged is reported as what it is, and is fetched")
  func damagedValue() async throws {
    let client = client(
      PickyStorage(
        base: storage,
        beforeLoading: { throw StorageError.damaged(key: $0, file: "", reason: "torn") }))
    let reports = try await issues {
      try await client.fetch(savedPosts(fetches).persisted())
    }.issues
    #expect(reports.map(\.kind) == [.unreadableEntry])
  }

  @Test("What is to be removed and cannot be listed is removed later, and other values are saved")
  func failedListing() async throws {
    storage.entries = ["values/posts/1": savedEntry("{}")]
    let isRepaired = Monitor(false)
    let client = client(
      PickyStorage(base: storage, beforeListing: { if !isRepaired.value { throw Refused() } }))
    let reports = try await issues {
      client.clearStores(matching: ["posts"])
      for path in [["posts", 2], ["others"]] as [OperationPath] {
        try await client.fetch(savedPosts(fetches, path: path).persisted())
      }
      for _ in 0..<2 { await #expect(throws: Refused.self) { try await client.flush() } }
    }.issues
    #expect(reports.map(\.kind) == [.storageFailure])
    #expect(storage.entries.keys.sorted() == ["values/others", "values/posts/1", "values/posts/2"])
    isRepaired.update { $0 = true }
    try await client.flush()
    #expect(storage.entries.keys.sorted() == ["values/others", "values/posts/2"])
  }

  @Test("A call that is gone or damaged when it is loaded does not prevent others from being made")
  func lostCalls() async throws {
    try await interruptCalls(["a", "b", "c"], in: storage)
    let keys = storage.entries.keys.sorted()
    let picky = PickyStorage(
      base: storage,
      beforeLoading: { [storage] key in
        if key == keys[0] { storage.entries[key] = nil }
        if key == keys[1] { throw StorageError.damaged(key: key, file: "", reason: "torn") }
      })
    let (server, client) = (OutboxServer(), client(picky))
    let reports = try await issues {
      try await client.resumeMutations { $0.register(CreatePost(server: server)) }
      for await calls in client.outbox.values where calls.isEmpty { break }
    }.issues
    #expect(reports.map(\.kind) == [.unreadableEntry])
    #expect(server.titles == ["c"])
  }

  @Test("A storage without a place for what cannot be decoded keeps it under another key")
  func defaultSettingAside() async throws {
    let entry = savedEntry("no post")
    storage.entries["values/posts"] = entry
    let client = client(PickyStorage(base: storage))
    let reports = await issues {
      let store = client.store(for: savedPosts(fetches).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
    }.issues
    #expect(reports.map(\.kind) == [.unreadableEntry])
    #expect(storage.entries == ["aside/values/posts": entry])
  }

  @Test("A call that can be neither decoded nor set aside is reported as what it is, and stays")
  func failedSettingAside() async throws {
    let entry = savedEntry("no call")
    storage.entries["calls/1-x"] = entry
    let client = client(PickyStorage(base: storage, beforeSaving: { throw Refused() }))
    let reports = try await issues { try await client.resumeMutations { _ in } }.issues
    #expect(reports.map(\.kind) == [.unreadableEntry])
    #expect(reports.first?.message.hasPrefix("The call calls/1-x cannot be decoded: ") == true)
    #expect(storage.entries == ["calls/1-x": entry])
  }

  @Test("A call that is made while the storage lists nothing follows those that it has")
  func callBeforeListing() async throws {
    try await interruptCalls(["a", "b"], in: storage)
    let isRepaired = Monitor(false)
    let client = client(
      PickyStorage(base: storage, beforeListing: { if !isRepaired.value { throw Refused() } }))
    let server = OutboxServer(waits: true)
    let store = client.store(for: CreatePost(server: server).persisted())
    let (reports, call) = await issues {
      let call = Task { try await store.mutate(with: "c") }
      await server.arrivals.wait(for: 1)
      return call
    }
    #expect(reports.map(\.kind) == [.storageFailure])
    isRepaired.update { $0 = true }
    try await client.outbox.load()
    let arguments = client.outbox.calls.map { String(decoding: $0.arguments, as: UTF8.self) }
    #expect(arguments == [#""a""#, #""b""#, #""c""#])
    server.gate.open()
    _ = try await call.value
  }

  @Test("What is saved for a path that only begins with the same text is not removed")
  func similarPath() async throws {
    for key in ["values/posts", "values/posts/1", "values/posts2", "values/posts2/1"] {
      storage.entries[key] = savedEntry("{}")
    }
    let client = client(PickyStorage(base: storage))
    client.clearStores(matching: ["posts"])
    try await client.flush()
    #expect(storage.entries.keys.sorted() == ["values/posts2", "values/posts2/1"])
  }

  @Test("A listing ends if a storage reports unreadable entries in turn, and moves none aside")
  func stubborn() async {
    let listings = EventLog<Void>()
    var storage = PickyStorage(base: storage)
    storage.beforeListing = {
      let count = listings.append(())
      // One that does not end would keep the test for ever.
      if count > 9 { return }
      throw StorageError.damaged(key: "\(count % 2)", file: "file", reason: "torn")
    }
    let client = OperationClient(defaults: .testing, storage: storage)
    let (reports, _) = await issues {
      await #expect(throws: StorageError.damaged(key: "1", file: "file", reason: "torn")) {
        try await client.outbox.load()
      }
    }
    #expect(reports.map(\.kind) == [.unreadableEntry, .unreadableEntry])
    #expect(listings.count == 3)
  }
}
