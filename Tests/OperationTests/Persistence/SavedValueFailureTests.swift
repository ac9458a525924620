import FoundationEssentials
import Operation
import Testing

@Suite("Saved values: bad input and failures")
struct SavedValueFailureTests {
  private let fetches = EventLog<Int>()

  @Test("An old value is dropped, and removed")
  func maxAge() async throws {
    let program = SavedProgram()
    let query = savedPosts(fetches).persisted(maxAge: .seconds(60))
    try await program.client.fetch(query)
    try await program.client.flush()
    let idle = program.restarted(after: .seconds(60))
    let idleStore = idle.client.store(for: query.manual())
    for await state in idleStore.states where !state.isRestoring { break }
    try await idle.client.flush()
    #expect(idleStore.currentValue == nil && idle.storage.entries.isEmpty)
    let next = program.restarted(after: .seconds(60))
    let store = next.client.store(for: query)
    #expect(await store.values.first { $0 != nil } == SavedPost(title: "post 2"))
    let fresh = program.restarted(after: .seconds(59))
    #expect(try await fresh.client.ensure(query) == SavedPost(title: "post 1"))
  }

  @Test("A negative age is reported, and zero is used")
  func badAge() async throws {
    let program = SavedProgram()
    let query = await program.noting {
      savedPosts(fetches).neverStale().persisted(maxAge: .seconds(-1))
    }
    #expect(program.kinds == [.invalidValue])
    try await program.client.fetch(query)
    try await program.client.flush()
    #expect(try await program.restarted(after: .zero).client.ensure(query).title == "post 2")
    let reports = await issues {
      _ = OperationClient(
        defaults: OperationDefaults(persistence: OperationPersistence(maxAge: .seconds(-1))))
      _ = CreateNothing().persisted(maxAge: .seconds(-1))
    }.issues
    #expect(reports.map(\.kind) == [.invalidValue, .invalidValue])
  }

  @Test("A value with a future date, after the clock was set back, is restored and out of date")
  func clockWentBack() async throws {
    let program = SavedProgram()
    let query = savedPosts(fetches).stale(after: .seconds(600)).manual()
      .persisted(maxAge: .seconds(600))
    try await program.client.fetch(query)
    try await program.client.flush()
    let next = program.restarted(after: .seconds(-3_600))
    let store = next.client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.title == "post 1")
    #expect(try await next.client.ensure(query) == SavedPost(title: "post 2"))
  }

  @Test("A lower version is dropped or migrated, and a higher one is reported and set aside")
  func versions() async throws {
    let program = SavedProgram()
    try await program.client.fetch(savedPosts(fetches).persisted(version: 1))
    try await program.client.flush()

    let dropped = program.restarted()
    let second = savedPosts(fetches).neverStale().persisted(version: 2)
    #expect(try await dropped.client.ensure(second) == SavedPost(title: "post 2"))

    let migrated = program.restarted()
    let coding = StorageCoding<SavedPost>.json.migrating { data, version in
      var post = try StorageCoding<SavedPost>.json.value(of: data)
      post.likes = 100 + version
      return post
    }
    let third = savedPosts(fetches).neverStale().persisted(version: 3, coding: coding)
    #expect(try await migrated.client.ensure(third) == SavedPost(title: "post 1", likes: 101))

    let down = program.restarted()
    let post = try await down.noting {
      try await down.client.ensure(savedPosts(fetches).neverStale().persisted(version: 0))
    }
    #expect(post == SavedPost(title: "post 3"))
    #expect(down.kinds == [.unreadableEntry])
    #expect(down.storage.entriesSetAside.count == 1)
  }

  @Test("A storage in memory keeps what was set aside when the key is set aside once more")
  func setAsideTwice() async throws {
    let entry = StorageEntry(version: 0, date: savedStart, data: Data("no post".utf8))
    let storage = MemoryStorage(["values/posts": entry])
    for _ in 0..<2 { try await storage.setAside("values/posts") }
    #expect(storage.entries.isEmpty && storage.entriesSetAside == ["values/posts": entry])
  }

  @Test("An undecodable value is set aside, and causes one report and one fetch")
  func undecodable() async throws {
    let program = SavedProgram()
    program.storage.entries["values/posts"] = StorageEntry(
      version: 0, date: savedStart, data: Data("no post".utf8))
    let query = savedPosts(fetches).neverStale().persisted()
    let post = try await program.noting { try await program.client.ensure(query) }
    #expect(post.title == "post 1")
    #expect(program.kinds == [.unreadableEntry])
    #expect(program.storage.entriesSetAside.count == 1)
    try await program.client.flush()
    #expect(try await program.restarted().client.ensure(query).title == "post 1")
    #expect(fetches.count == 1)
  }

  /// A storage that cannot set an entry aside.
  private struct FullStorage: OperationStorage {
    let memory = MemoryStorage()

    func load(_ key: String) async throws -> StorageEntry? { try await memory.load(key) }
    func save(_ entries: [String: StorageEntry]) async throws { try await memory.save(entries) }
    func remove(_ keys: [String]) async throws { try await memory.remove(keys) }
    func keys(withPrefix prefix: String) async throws -> [String] { [] }
    func setAside(_ key: String) async throws { throw Refused() }
  }

  @Test("A value that cannot be set aside stays until a newer one replaces it")
  func failedSettingAside() async throws {
    let storage = FullStorage()
    storage.memory.entries["values/posts"] = savedEntry("no post")
    let client = OperationClient(defaults: .testing, clock: ManualClock(), storage: storage)
    let (reports, store) = try await issues {
      let store = client.store(for: savedPosts(fetches).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      try await client.flush()
      return store
    }
    #expect(reports.map(\.kind) == [.unreadableEntry])
    #expect(reports.first?.message.contains("cannot be decoded") == true)
    #expect(storage.memory.entries["values/posts"]?.text == "no post")
    try await store.fetch()
    try await client.flush()
    #expect(storage.memory.entries["values/posts"]?.text.contains("post 1") == true)
  }

  @Test("A value that cannot be encoded is reported once, and stays in its store")
  func unencodable() async throws {
    let program = SavedProgram()
    let coding = StorageCoding<SavedPost> { _ in
      throw Refused()
    } decode: { _ in
      throw Refused()
    }
    let query = savedPosts(fetches).persisted(coding: coding)
    try await program.noting {
      try await program.client.fetch(query)
      try await program.client.flush()
      // The state changes, and the value does not.
      _ = program.client.store(for: query).runTask()
      try await program.client.flush()
    }
    #expect(program.kinds == [.unsavedValue])
    #expect(program.client.store(for: query).currentValue == SavedPost(title: "post 1"))
  }

  @Test("A path without a stable form is reported, unless the value has a name of its own")
  func unstablePath() async throws {
    final class Key: Hashable, Sendable {
      static func == (lhs: Key, rhs: Key) -> Bool { lhs === rhs }
      func hash(into hasher: inout Hasher) {}
    }
    let program = SavedProgram()
    let path = OperationPath(["posts", Key()])
    await program.noting {
      _ = program.client.store(for: savedPosts(fetches, path: path).persisted())
    }
    #expect(program.kinds == [.unsavedValue])
    let other = savedPosts(fetches, path: OperationPath(["posts", Key()])).persisted(as: "my posts")
    try await program.client.fetch(other)
    try await program.client.flush()
    #expect(program.storage.entries.keys.sorted() == ["values/=my posts"])
  }

  @Test("A second path with the same name is reported, and does not replace the value of the first")
  func nameClash() async throws {
    let program = SavedProgram()
    let first = savedPosts(fetches, path: ["first"]).persisted(as: "posts")
    let second = savedPosts(fetches, path: ["second"]).persisted(as: "posts")
    try await program.noting {
      try await program.client.fetch(first)
      try await program.client.fetch(second)
      try await program.client.flush()
    }
    #expect(program.kinds == [.unsavedValue])
    #expect(program.storage.entries.values.map(\.text) == [#"{"likes":0,"title":"post 1"}"#])
  }

  /// An error that calls a closure when it is released.
  private final class ReleasedError: Error {
    private let onRelease: @Sendable () -> Void

    init(_ onRelease: @escaping @Sendable () -> Void) { self.onRelease = onRelease }

    deinit { onRelease() }
  }

  @Test("The failure of a storage in memory can use the storage when it is released")
  func releasedFailure() {
    let storage = MemoryStorage()
    let counts = EventLog<Int>()
    storage.failure = ReleasedError { counts.append(storage.saveCount) }
    storage.failure = nil
    #expect(counts.values == [0])
  }

  @Test("A storage that fails is reported once, and is used again when it works")
  func failingStorage() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).persisted())
    for await state in store.states where !state.isRestoring && !state.isLoading { break }
    try await program.client.flush()
    program.storage.failure = Refused()
    await program.noting {
      store.setResult(to: .success(SavedPost(title: "newer")))
      await #expect(throws: Refused.self) { try await program.client.flush() }
      await #expect(throws: Refused.self) { try await program.client.flush() }
    }
    #expect(program.kinds == [.storageFailure])
    program.storage.failure = nil
    await program.clock.advance(by: .seconds(30))
    try await program.client.flush()
    #expect(program.storage.entries.values.first?.text.contains("newer") == true)
  }

  @Test("A failure to save is reported before a caller that flushes gets it")
  func reportedFirst() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).manual().persisted())
    for await state in store.states where !state.isRestoring { break }
    program.storage.failure = Refused()
    let (hasFailed, wasEarly) = (Latch(), EventLog<Bool>())
    await OperationIssue.withHandler({ _ in
      // Gives another thread time to end the call. A wait here could block all threads.
      for _ in 0..<100_000 where !hasFailed.isOpen {}
      wasEarly.append(hasFailed.isOpen)
    }) {
      store.setResult(to: .success(SavedPost(title: "newer")))
      await #expect(throws: Refused.self) { try await program.client.flush() }
      hasFailed.open()
    }
    #expect(wasEarly.values == [false])
    program.storage.failure = nil
    try await program.client.flush()
  }

  /// A storage that refuses the entries whose keys begin with a text.
  private struct RefusingStorage: OperationStorage {
    let memory = MemoryStorage()
    let isRepaired = Monitor(false)
    var refused = "values/posts/2"

    func load(_ key: String) async throws -> StorageEntry? { try await memory.load(key) }

    func save(_ entries: [String: StorageEntry]) async throws {
      if !isRepaired.value, entries.keys.contains(where: { $0.hasPrefix(refused) }) {
        throw Refused()
      }
      try await memory.save(entries)
    }

    func remove(_ keys: [String]) async throws { try await memory.remove(keys) }

    func keys(withPrefix prefix: String) async throws -> [String] {
      try await memory.keys(withPrefix: prefix)
    }
  }

  @Test("An entry that the storage refuses does not prevent others from being saved")
  func refusedEntry() async throws {
    let storage = RefusingStorage()
    let clock = ManualClock(now: savedStart)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let reports = try await issues {
      for number in 1...3 {
        try await client.fetch(savedPosts(fetches, path: ["posts", number]).persisted())
      }
      await #expect(throws: Refused.self) { try await client.flush() }
      #expect(storage.memory.entries.isEmpty)
      await #expect(throws: Refused.self) { try await client.flush() }
      #expect(storage.memory.entries.keys.sorted() == ["values/posts/1", "values/posts/3"])
    }.issues
    #expect(reports.map(\.kind) == [.storageFailure])
    #expect(storage.memory.saveCount == 2, "a saved entry is not saved again")
    await #expect(throws: Refused.self) { try await client.flush() }
    #expect(storage.memory.saveCount == 2)
    storage.isRepaired.update { $0 = true }
    try await client.flush()
    #expect(storage.memory.saveCount == 3)
  }

  @Test("A call that the storage refuses does not prevent values from being saved")
  func refusedCall() async throws {
    let storage = RefusingStorage(refused: "calls/")
    let clock = ManualClock(now: savedStart)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let gate = AsyncGate()
    let mutation = Mutation(path: ["create"]) { (number: Int, _) async throws -> Int in
      await gate.wait()
      return number
    }
    let reports = try await issues {
      let mutations = client.store(for: mutation.persisted())
      let call = Task { try await mutations.mutate(with: 1) }
      for await calls in client.outbox.values where !calls.isEmpty { break }
      let store = client.store(for: savedPosts(fetches).manual().persisted())
      store.setResult(to: .success(SavedPost(title: "a")))
      await #expect(throws: Refused.self) { try await client.flush() }
      #expect(storage.memory.entries.keys.sorted() == ["values/posts"])
      gate.open()
      _ = try await call.value
    }.issues
    #expect(reports.map(\.kind) == [.storageFailure])
    storage.isRepaired.update { $0 = true }
    try await client.flush()
  }

  @Test("An entry that was removed and saved again stays when a batch is written again")
  func savedAfterRemoval() async throws {
    let storage = RefusingStorage()
    let clock = ManualClock(now: savedStart)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    _ = try await issues {
      try await client.fetch(savedPosts(fetches, path: ["posts", 2]).persisted())
      await #expect(throws: Refused.self) { try await client.flush() }
      let query = savedPosts(fetches, path: ["posts", 1]).persisted()
      try await client.fetch(query)
      client.clearStores(matching: ["posts", 1])
      try await client.fetch(query)
      for _ in 0..<2 {
        await #expect(throws: Refused.self) { try await client.flush() }
        #expect(storage.memory.entries.keys.sorted() == ["values/posts/1"])
      }
    }
    storage.isRepaired.update { $0 = true }
    try await client.flush()
    #expect(storage.memory.entries.keys.sorted() == ["values/posts/1", "values/posts/2"])
  }

  @Test("A shutdown saves changed values, and returns the error of a failed save")
  func shutdown() async throws {
    let program = SavedProgram()
    program.client.store(for: savedPosts(fetches).persisted()).setResult(
      to: .success(SavedPost(title: "a")))
    let result = await program.client.shutdown(within: .zero)
    #expect(result.saveFailure == nil)
    #expect(program.storage.entries.count == 1)
    program.storage.failure = Refused()
    program.client.store(for: savedPosts(fetches).persisted()).setResult(
      to: .success(SavedPost(title: "b")))
    let failed = await program.noting { await program.client.shutdown(within: .zero) }
    #expect(failed.saveFailure is Refused)
    #expect(failed.description.contains("not saved"))
    program.storage.failure = nil
    try await program.client.flush()
    #expect(program.storage.entries.values.first?.text.contains(#""b""#) == true)
  }

  @Test("A flush of a cancelled task returns at once")
  func cancelledFlush() async throws {
    let clock = ManualClock(now: savedStart)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: savedPosts(fetches).persisted())
    for await state in store.states where !state.isRestoring && !state.isLoading { break }
    storage.delay = .seconds(5)
    store.setResult(to: .success(SavedPost(title: "a")))
    let flush = Task { try await client.flush() }
    await clock.sleepers(atLeast: 1)
    flush.cancel()
    await #expect(throws: CancellationError.self) { try await flush.value }
    await clock.advance(by: .seconds(5))
    try await client.flush()
    #expect(storage.entries.values.first?.text.contains(#""a""#) == true)
  }

  @Test("A loss of power loses only the entries of the save in progress")
  func powerLoss() async throws {
    let clock = ManualClock(now: savedStart)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let query = savedPosts(fetches).persisted()
    try await client.fetch(query)
    try await client.flush()
    storage.delay = .seconds(5)
    client.store(for: query).setResult(to: .success(SavedPost(title: "lost")))
    let flush = Task { try await OperationIssue.withHandler({ _ in }) { try await client.flush() } }
    await clock.sleepers(atLeast: 1)
    storage.losePower()
    await clock.advance(by: .seconds(5))
    await #expect(throws: StorageError.powerLost) { try await flush.value }
    #expect(storage.entries.values.first?.text.contains("post 1") == true)
    storage.delay = .zero
    try await client.flush()
    #expect(storage.entries.values.first?.text.contains("lost") == true)
  }
}
