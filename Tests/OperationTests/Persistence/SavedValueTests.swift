import FoundationEssentials
import Testing

@testable import Operation

@Suite("Saved values")
struct SavedValueTests {
  private let fetches = EventLog<Int>()

  @Test("A value is restored after a restart, with its date and without a fetch")
  func restored() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))

    let next = program.restarted()
    let query = savedPosts(fetches).stale(after: .seconds(100)).persisted()
    let post = try await next.client.ensure(query)
    let state = next.client.store(for: query).state
    #expect(post == SavedPost(title: "post 1"))
    #expect(fetches.count == 1)
    #expect(state.valueLastUpdatedAt == savedStart)
    #expect(state.valueUpdateCount == 1)
    #expect(!state.isRestoring)
  }

  @Test("A restored value that is out of date is displayed, and fetched again for a subscriber")
  func restoredStale() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))

    let next = program.restarted(after: .seconds(101))
    let store = next.client.store(for: savedPosts(fetches).stale(after: .seconds(100)).persisted())
    var titles: [String] = []
    // A reader of the newest states could miss the first value.
    for await state in store.states(buffering: .all) {
      if let title = state.currentValue?.title, title != titles.last { titles.append(title) }
      if titles.count == 2 { break }
    }
    #expect(titles == ["post 1", "post 2"])
  }

  @Test("A restored value that is fresh starts no run for a subscriber")
  func restoredFresh() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))

    let next = program.restarted()
    let store = next.client.store(for: savedPosts(fetches).stale(after: .seconds(100)).persisted())
    for await state in store.states where state.currentValue != nil && !state.isRestoring { break }
    #expect(fetches.count == 1)
    #expect(store.valueUpdateCount == 1)
  }

  @Test("While a value loads, the state is restoring, and a fetch does not wait for the value")
  func fetchDuringLoad() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))
    let (client, clock, storage) = program.slowlyRestarted()
    let store = client.store(for: savedPosts(fetches).manual().persisted())
    #expect(store.isRestoring)
    await clock.sleepers(atLeast: 1)
    #expect(try await store.fetch() == SavedPost(title: "post 2"))
    #expect(store.isRestoring)
    storage.delay = .zero
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    #expect(
      store.currentValue == SavedPost(title: "post 2"), "a loaded value never replaces a newer one")
    try await client.flush()
  }

  @Test("A subscriber's run waits for the saved value, and starts if there is none")
  func subscriberWaits() async throws {
    let clock = ManualClock(now: savedStart)
    let storage = MemoryStorage(clock: clock)
    storage.delay = .seconds(5)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: savedPosts(fetches).persisted())
    let values = store.values
    async let first = values.first { $0 != nil }
    await clock.sleepers(atLeast: 1)
    #expect(fetches.count == 0)
    storage.delay = .zero
    await clock.advance(by: .seconds(5))
    #expect(await first == SavedPost(title: "post 1"))
    try await client.flush()
  }

  @Test(
    "A value that loads during a reset or a write is dropped, and one during a failure is restored",
    arguments: 0..<3)
  func loadDuringEvents(event: Int) async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))
    let (client, clock, storage) = program.slowlyRestarted()
    let store = client.store(for: savedPosts(fetches).manual().persisted())
    await clock.sleepers(atLeast: 1)
    storage.delay = .zero
    switch event {
    case 0: store.resetState()
    case 1: store.setResult(to: .success(SavedPost(title: "written")))
    default: store.setResult(to: .failure(Refused()))
    }
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    let titles = [nil, "written", "post 1"]
    #expect(store.currentValue?.title == titles[event])
    #expect((store.error != nil) == (event == 2))
    if event == 0 {
      try await client.flush()
      #expect(storage.entries.isEmpty, "a reset removes the saved value")
    }
  }

  @Test("Changes are saved after a second, in one batch with the newest state of each store")
  func oneBatch() async throws {
    let program = SavedProgram()
    let (client, clock) = (program.client, program.clock)
    for number in 1...3 {
      let store = client.store(
        for: savedPosts(fetches, path: ["posts", number]).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      for likes in 1...4 { store.setResult(to: .success(SavedPost(title: "a", likes: likes))) }
    }
    #expect(program.storage.saveCount == 0)
    await clock.advance(by: .seconds(1))
    try await client.flush()
    #expect(program.storage.saveCount == 1)
    #expect(program.storage.entries.count == 3)
    #expect(program.storage.entries.values.allSatisfy { "\($0.text)".contains("\"likes\":4") })
    #expect(program.storage.entries.keys.sorted().first == "values/posts/1")
  }

  @Test("The start and the failure of a run save nothing")
  func unchanged() async throws {
    let program = SavedProgram()
    let query = Query<SavedPost, any Error>(path: ["posts"]) { _ in throw Refused() }.persisted()
    await #expect(throws: Refused.self) { try await program.client.fetch(query) }
    try await program.client.flush()
    #expect(program.storage.saveCount == 0)
  }

  @Test("The confirmed value is saved, and never an optimistic edit")
  func noEdit() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).persisted())
    try await store.fetch()
    try await store.optimistically {
      $0?.likes += 1
    } while: {
      store.setResult(to: .success(SavedPost(title: "pushed")))
      try await program.client.flush()
      #expect(program.storage.entries.values.first?.text == #"{"likes":0,"title":"pushed"}"#)
    }
    try await program.client.flush()
    #expect(program.storage.entries.values.first?.text == #"{"likes":1,"title":"pushed"}"#)
  }

  @Test("A value that a thread changes in steps is saved when its exclusive access ends")
  func exclusiveAccess() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).manual().persisted())
    for await state in store.states where !state.isRestoring { break }
    store.setResult(to: .success(SavedPost(title: "old")))
    let flush = Monitor<Task<Void, any Error>?>(nil)
    await onThreads(1) { _ in
      store.withExclusiveAccess {
        store.setResult(to: .success(SavedPost(title: "draft")))
        flush.update { $0 = Task { try await program.client.flush() } }
        // Until the flush waits for the end of the access.
        while program.storage.saveCount == 0, store.read({ $0.access?.gates.isEmpty ?? true }) {}
        store.setResult(to: .success(SavedPost(title: "final")))
      }
    }
    try await flush.value?.value
    #expect(program.storage.entries.values.map(\.text) == [#"{"likes":0,"title":"final"}"#])
  }

  @Test("A reset and a removal remove saved values, also without a store, and an eviction does not")
  func removal() async throws {
    let program = SavedProgram()
    for number in 1...4 {
      try await program.client.fetch(savedPosts(fetches, path: ["posts", number]).persisted())
    }
    try await program.client.fetch(savedPosts(fetches, path: ["posts", 1, "comments"]).persisted())
    try await program.client.flush()
    let evictions = EventLog<Int>()
    let subscription = program.client.subscribe { evictions.append($0.storesRemoved.count) }
    await program.clock.advance(by: .seconds(301))
    #expect(evictions.values.reduce(0, +) == 5)
    subscription.cancel()
    #expect(program.storage.entries.count == 5)

    let next = program.restarted()
    let client = next.client
    client.store(for: savedPosts(fetches, path: ["posts", 2]).persisted()).resetState()
    _ = client.store(for: savedPosts(fetches, path: ["posts", 1]).persisted())
    client.clearStore(with: ["posts", 1])
    try await client.flush()
    #expect(
      next.storage.entries.keys.sorted()
        == ["values/posts/1/comments", "values/posts/3", "values/posts/4"])
    client.clearStores(matching: ["posts", 1])
    client.reset(matching: ["posts", 3])
    try await client.flush()
    #expect(next.storage.entries.keys.sorted() == ["values/posts/4"])
    client.clearStores()
    try await client.flush()
    #expect(next.storage.entries.isEmpty)
  }

  @Test("A store that is created after a removal does not load the removed value")
  func removedIsNotLoaded() async throws {
    let program = SavedProgram()
    let query = savedPosts(fetches).persisted()
    try await program.client.fetch(query)
    try await program.client.flush()
    program.client.clearStores()
    let store = program.client.store(for: query)
    for await state in store.states(buffering: .all) where !state.isRestoring {
      #expect(state.currentValue == nil)
      break
    }
    try await store.fetch()
    try await program.client.flush()
    #expect(program.storage.entries.count == 1)
  }

  @Test("A store that was removed from the client is no longer saved")
  func removedIsNotSaved() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).persisted())
    program.client.clearStores()
    store.setResult(to: .success(SavedPost(title: "late")))
    try await program.client.flush()
    #expect(program.storage.entries.isEmpty)
  }

  @Test("The value of a store that was evicted before it was saved is restored")
  func evictedBeforeSave() async throws {
    let clock = ManualClock(now: savedStart)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.zero), storage: storage)
    let query = savedPosts(fetches).neverStale().persisted()
    try await client.fetch(query)
    client.store(for: query).setResult(to: .success(SavedPost(title: "set")))
    await clock.advance(by: .milliseconds(1))
    #expect(try await client.ensure(query) == SavedPost(title: "set"))
  }

  @Test("A reset of a request without a store removes its saved value")
  func resetWithoutStore() async throws {
    let program = SavedProgram()
    let named = savedPosts(fetches, path: ["named"]).persisted(as: "a name")
    try await program.client.fetch(savedPosts(fetches).persisted())
    try await program.client.fetch(named)
    try await program.client.flush()
    let next = program.restarted()
    next.client.reset(savedPosts(fetches))
    try await next.client.flush()
    #expect(next.storage.entries.count == 1, "also without its modifiers")
    next.client.reset(named)
    try await next.client.flush()
    #expect(next.storage.entries.isEmpty)
  }

  @Test("A reset of a request does not remove what another one has saved on its path")
  func resetOfAClash() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))
    program.client.reset(Query<Int, any Error>(path: ["posts"]) { _ in 1 }.persisted())
    program.client.reset(Mutation(path: ["posts"]) { (_: Int, _) async throws -> Int in 1 })
    try await program.client.flush()
    #expect(program.storage.entries.count == 1)
    let restarted = program.restarted()
    restarted.client.reset(Mutation(path: ["posts"]) { (_: Int, _) async throws -> Int in 1 })
    try await restarted.client.flush()
    #expect(restarted.storage.entries.count == 1)
  }

  /// A post that cannot be compared.
  private struct OpaquePost: Codable, Sendable {
    var title: String
  }

  @Test("A saved value that cannot be compared is told apart from the missing one")
  func restoredOpaque() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches)).restarted()
    let query = Query<OpaquePost, any Error>(path: ["posts"]) { _ in OpaquePost(title: "new") }
    let store = program.client.store(for: query.manual().persisted())
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.title == "post 1")
    #expect(!store.state.hasSameValue(as: QueryState(initialValue: nil)))
  }

  @Test("A subscriber of a value that flushes waits until the value is in the storage")
  func flushInHandler() async throws {
    let program = SavedProgram()
    let store = program.client.store(for: savedPosts(fetches).manual().persisted())
    for await state in store.states where !state.isRestoring { break }
    let saved = EventLog<Int>()
    let subscription = store.subscribe { event in
      guard case .stateChanged(let state) = event, state.currentValue?.title == "a" else { return }
      Task.immediate {
        try await program.client.flush()
        saved.append(program.storage.saveCount)
      }
    }
    // After this flush, the flush in the handler can only wait for the new value.
    try await program.client.flush()
    store.setResult(to: .success(SavedPost(title: "a")))
    await saved.wait(for: 1)
    #expect(saved.values.first == 1)
    subscription.cancel()
  }

  @Test("A released client saves its changes at once, and a store that outlives it later ones")
  func releasedClient() async throws {
    let (storage, clock) = (MemoryStorage(), ManualClock(now: savedStart))
    var client: OperationClient? = OperationClient(
      defaults: .testing, clock: clock, storage: storage)
    let store = client?.store(for: savedPosts(fetches).persisted())
    try await store?.fetch()
    await clock.settle()
    #expect(storage.entries.isEmpty)
    client = nil
    await clock.settle()
    #expect(storage.entries.count == 1)
    #expect(clock.sleeperCount == 0, "no timer remains")
    store?.setResult(to: .success(SavedPost(title: "late")))
    await clock.settle()
    #expect(storage.entries.values.first?.text.contains("late") == true)
    #expect(clock.sleeperCount == 0, "and none is started")
  }

  @Test("A client that was shut down and released releases its storage before any timer ends")
  func releasedStorage() async throws {
    weak var released: MemoryStorage?
    do {
      let storage = MemoryStorage()
      released = storage
      let client = OperationClient(
        defaults: .testing, clock: ManualClock(now: savedStart), storage: storage)
      let store = client.store(for: savedPosts(fetches).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      store.setResult(to: .success(SavedPost(title: "a")))
      await client.shutdown(within: .zero)
    }
    // The task of the last write ends a moment later.
    for _ in 0..<10_000 where released != nil { await Task.yield() }
    #expect(released == nil)
  }

  @Test("Defaults save the values below a path, and report those that cannot be encoded")
  func defaults() async throws {
    let program = SavedProgram()
    program.client.setDefaults(matching: ["saved"]) { $0.persistence = OperationPersistence() }
    try await program.client.fetch(savedPosts(fetches, path: ["saved", 1]))
    try await program.client.fetch(savedPosts(fetches, path: ["other", 1]))
    try await program.client.flush()
    #expect(program.storage.entries.keys.sorted() == ["values/saved/1"])
    struct Opaque: Sendable {}
    let query = Query<Opaque, any Error>(path: ["saved", 2]) { _ in Opaque() }
    await program.noting { _ = program.client.store(for: query) }
    #expect(program.kinds == [.unsavedValue])
  }

  @Test("Pages are restored with their neighbours, and removed with a reset")
  func pages() async throws {
    let program = SavedProgram()
    let feed = Paginated(
      path: ["feed"], initialPageId: 0, nextPageId: { page, _ in page.id < 3 ? page.id + 1 : nil }
    ) { (paging: PaginatedPaging<Int, [String]>, _) async throws -> [String] in
      ["page \(paging.pageId)"]
    }.neverStale().persisted()
    let store = program.client.store(for: feed)
    try await store.fetch()
    try await store.fetchNextPage()
    try await program.client.flush()

    let next = program.restarted()
    let pages = try await next.client.ensure(feed)
    #expect(pages.map(\.value) == [["page 0"], ["page 1"]])
    let restored = next.client.store(for: feed)
    #expect(restored.nextPageId == 2)
    #expect(try await restored.fetchNextPage()?.value == ["page 2"])
    restored.resetState()
    try await next.client.flush()
    #expect(next.storage.entries.isEmpty && !restored.isRestoring)
  }

  @Test("A client without a storage saves nothing, and a request with persisted() works in it")
  func withoutStorage() async throws {
    let client = OperationClient(defaults: .testing)
    let query = savedPosts(fetches).persisted()
    #expect(!client.store(for: query).isRestoring)
    #expect(try await client.fetch(query).title == "post 1")
    try await client.flush()
    #expect(client.outbox.calls.isEmpty)
  }
}
