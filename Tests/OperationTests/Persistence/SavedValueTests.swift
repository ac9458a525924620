import FoundationEssentials
import Operation
import Testing

/// A post, as a server returns it.
private struct Post: Codable, Sendable, Hashable {
  var title: String
  var likes = 0
}

private let start = Date(timeIntervalSinceReferenceDate: 800_000_000)

/// A program that can be started several times with one storage.
private struct Program {
  let clock: ManualClock
  let storage: MemoryStorage
  let client: OperationClient
  let issues = EventLog<OperationIssue>()

  init(_ storage: MemoryStorage = MemoryStorage(), at date: Date = start) {
    clock = ManualClock(now: date)
    self.storage = storage
    client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)), storage: storage)
  }

  /// Starts the program again, when the one before was ended by a signal.
  func restarted(after duration: Duration = .seconds(60)) -> Program {
    Program(
      MemoryStorage(storage.entries),
      at: clock.now() + Double(duration.components.seconds))
  }

  /// Collects the reports of `body`.
  func noting<Output>(_ body: () async throws -> Output) async rethrows -> Output {
    try await OperationIssue.withHandler({ [issues] in issues.append($0) }, operation: body)
  }

  var kinds: [OperationIssue.Kind] { issues.values.map(\.kind) }
}

private struct CreateNothing: SimpleMutationRequest, Hashable {
  func mutate(with number: Int, in context: OperationContext) async throws -> Int { number }
}

/// Answers with the number of the fetch.
private func posts(
  _ fetches: EventLog<Int>, path: OperationPath = ["posts"]
) -> Query<Post, any Error> {
  Query(path: path) { _ in Post(title: "post \(fetches.append(0))") }
}

@Suite("Saved values")
struct SavedValueTests {
  private let fetches = EventLog<Int>()

  @Test("A value appears after a restart, with its date, without a fetch")
  func restored() async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.flush()

    let next = program.restarted()
    let query = posts(fetches).stale(after: .seconds(100)).persisted()
    let post = try await next.client.ensure(query)
    let state = next.client.store(for: query).state
    #expect(post == Post(title: "post 1"))
    #expect(fetches.count == 1)
    #expect(state.valueLastUpdatedAt == start)
    #expect(state.valueUpdateCount == 1)
    #expect(!state.isRestoring)
  }

  @Test("A restored value that is out of date is displayed, and fetched again for a subscriber")
  func restoredStale() async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.flush()

    let next = program.restarted(after: .seconds(101))
    let store = next.client.store(for: posts(fetches).stale(after: .seconds(100)).persisted())
    var titles: [String] = []
    for await value in store.values {
      if let value { titles.append(value.title) }
      if titles.count == 2 { break }
    }
    #expect(titles == ["post 1", "post 2"])
  }

  @Test("A restored value that is fresh starts no run for a subscriber")
  func restoredFresh() async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.flush()

    let next = program.restarted()
    let store = next.client.store(for: posts(fetches).stale(after: .seconds(100)).persisted())
    for await state in store.states where state.currentValue != nil && !state.isRestoring { break }
    #expect(fetches.count == 1)
    #expect(store.valueUpdateCount == 1)
  }

  @Test("While a value loads, the state says so, and a fetch does not wait for it")
  func fetchBesideLoad() async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.flush()

    let clock = ManualClock(now: start)
    let storage = MemoryStorage(program.storage.entries, clock: clock)
    storage.delay = .seconds(5)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: posts(fetches).manual().persisted())
    #expect(store.isRestoring)
    await clock.sleepers(atLeast: 1)
    #expect(try await store.fetch() == Post(title: "post 2"))
    #expect(store.isRestoring)
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    #expect(
      store.currentValue == Post(title: "post 2"), "a loaded value never replaces a newer one")
  }

  @Test("A subscriber's run waits for the saved value, and follows if there is none")
  func subscriberWaits() async throws {
    let clock = ManualClock(now: start)
    let storage = MemoryStorage(clock: clock)
    storage.delay = .seconds(5)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: posts(fetches).persisted())
    let values = store.values
    async let first = values.first { $0 != nil }
    await clock.sleepers(atLeast: 1)
    #expect(fetches.count == 0)
    await clock.advance(by: .seconds(5))
    #expect(await first == Post(title: "post 1"))
  }

  @Test("What is loaded when a reset, a write or a failure has come meanwhile", arguments: 0..<3)
  func loadBesideEvents(event: Int) async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.flush()

    let clock = ManualClock(now: start)
    let storage = MemoryStorage(program.storage.entries, clock: clock)
    storage.delay = .seconds(5)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: posts(fetches).manual().persisted())
    await clock.sleepers(atLeast: 1)
    storage.delay = .zero
    switch event {
    case 0: store.resetState()
    case 1: store.setResult(to: .success(Post(title: "written")))
    default: store.setResult(to: .failure(Refused()))
    }
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    let titles = [nil, "written", "post 1"]
    #expect(store.currentValue?.title == titles[event])
    #expect((store.error != nil) == (event == 2))
    if event == 0 {
      try await client.flush()
      #expect(storage.entries.isEmpty, "a reset removes what was saved")
    }
  }

  @Test("Changes are saved after a second, in one batch, the newest state of each store once")
  func oneBatch() async throws {
    let program = Program()
    let (client, clock) = (program.client, program.clock)
    for number in 1...3 {
      let store = client.store(for: posts(fetches, path: ["posts", number]).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      for likes in 1...4 { store.setResult(to: .success(Post(title: "a", likes: likes))) }
    }
    #expect(program.storage.saveCount == 0)
    await clock.advance(by: .seconds(1))
    try await client.flush()
    #expect(program.storage.saveCount == 1)
    #expect(program.storage.entries.count == 3)
    #expect(program.storage.entries.values.allSatisfy { "\($0.text)".contains("\"likes\":4") })
    #expect(program.storage.entries.keys.sorted().first == "values/posts/1")
  }

  @Test("A run that begins, and one that fails, save nothing")
  func unchanged() async throws {
    let program = Program()
    let query = Query<Post, any Error>(path: ["posts"]) { _ in throw Refused() }.persisted()
    await #expect(throws: Refused.self) { try await program.client.fetch(query) }
    try await program.client.flush()
    #expect(program.storage.saveCount == 0)
  }

  @Test("The confirmed value is saved, and never an optimistic edit")
  func noEdit() async throws {
    let program = Program()
    let store = program.client.store(for: posts(fetches).persisted())
    try await store.fetch()
    try await store.optimistically {
      $0?.likes += 1
    } while: {
      store.setResult(to: .success(Post(title: "pushed")))
      try await program.client.flush()
      #expect(program.storage.entries.values.first?.text == #"{"likes":0,"title":"pushed"}"#)
    }
    try await program.client.flush()
    #expect(program.storage.entries.values.first?.text == #"{"likes":1,"title":"pushed"}"#)
  }

  @Test("A reset and a removal remove what was saved, also without a store; retention does not")
  func removal() async throws {
    let program = Program()
    for number in 1...4 {
      try await program.client.fetch(posts(fetches, path: ["posts", number]).persisted())
    }
    try await program.client.fetch(posts(fetches, path: ["posts", 1, "comments"]).persisted())
    try await program.client.flush()
    let evictions = EventLog<Int>()
    let subscription = program.client.subscribe { evictions.append($0.storesRemoved.count) }
    await program.clock.advance(by: .seconds(301))
    #expect(evictions.values.reduce(0, +) == 5)
    subscription.cancel()
    #expect(program.storage.entries.count == 5)

    let next = program.restarted()
    let client = next.client
    client.store(for: posts(fetches, path: ["posts", 2]).persisted()).resetState()
    _ = client.store(for: posts(fetches, path: ["posts", 1]).persisted())
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

  @Test("A store that is created after a removal does not load what is being removed")
  func removedIsNotLoaded() async throws {
    let program = Program()
    let query = posts(fetches).persisted()
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

  @Test("A store that was removed from the client is not saved any more")
  func removedIsNotSaved() async throws {
    let program = Program()
    let store = program.client.store(for: posts(fetches).persisted())
    program.client.clearStores()
    store.setResult(to: .success(Post(title: "late")))
    try await program.client.flush()
    #expect(program.storage.entries.isEmpty)
  }

  @Test("A store that was evicted before its value was saved finds it again")
  func evictedBeforeSave() async throws {
    let clock = ManualClock(now: start)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.zero), storage: storage)
    let query = posts(fetches).neverStale().persisted()
    try await client.fetch(query)
    client.store(for: query).setResult(to: .success(Post(title: "set")))
    await clock.advance(by: .milliseconds(1))
    #expect(try await client.ensure(query) == Post(title: "set"))
  }

  @Test("An old value is dropped, and removed")
  func maxAge() async throws {
    let program = Program()
    let query = posts(fetches).persisted(maxAge: .seconds(60))
    try await program.client.fetch(query)
    try await program.client.flush()
    let next = program.restarted(after: .seconds(60))
    let store = next.client.store(for: query)
    #expect(await store.values.first { $0 != nil } == Post(title: "post 2"))
    let fresh = program.restarted(after: .seconds(59))
    #expect(try await fresh.client.ensure(query) == Post(title: "post 1"))
  }

  @Test("A negative age is reported, and zero is used")
  func badAge() async throws {
    let program = Program()
    let query = await program.noting {
      posts(fetches).neverStale().persisted(maxAge: .seconds(-1))
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

  @Test("A value from the future, because the clock went back, is restored and out of date")
  func clockWentBack() async throws {
    let program = Program()
    let query = posts(fetches).stale(after: .seconds(600)).persisted(maxAge: .seconds(600))
    try await program.client.fetch(query)
    try await program.client.flush()
    let next = program.restarted(after: .seconds(-3_600))
    let store = next.client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.title == "post 1" || store.currentValue?.title == "post 2")
    #expect(try await next.client.ensure(query) == Post(title: "post 2"))
  }

  @Test("A lower version is dropped or migrated, and a higher one is reported and set aside")
  func versions() async throws {
    let program = Program()
    try await program.client.fetch(posts(fetches).persisted(version: 1))
    try await program.client.flush()

    let dropped = program.restarted()
    let second = posts(fetches).neverStale().persisted(version: 2)
    #expect(try await dropped.client.ensure(second) == Post(title: "post 2"))

    let migrated = program.restarted()
    let coding = StorageCoding<Post>.json.migrating { data, version in
      var post = try StorageCoding<Post>.json.value(of: data)
      post.likes = 100 + version
      return post
    }
    let third = posts(fetches).neverStale().persisted(version: 3, coding: coding)
    #expect(try await migrated.client.ensure(third) == Post(title: "post 1", likes: 101))

    let down = program.restarted()
    let post = try await down.noting {
      try await down.client.ensure(posts(fetches).neverStale().persisted(version: 0))
    }
    #expect(post == Post(title: "post 3"))
    #expect(down.kinds == [.unreadableEntry])
    #expect(down.storage.entriesSetAside.count == 1)
  }

  @Test("What cannot be decoded costs one report and one fetch, and is set aside")
  func undecodable() async throws {
    let program = Program()
    program.storage.entries["values/posts"] = StorageEntry(
      version: 0, date: start, data: Data("no post".utf8))
    let query = posts(fetches).neverStale().persisted()
    let post = try await program.noting { try await program.client.ensure(query) }
    #expect(post.title == "post 1")
    #expect(program.kinds == [.unreadableEntry])
    #expect(program.storage.entriesSetAside.count == 1)
    try await program.client.flush()
    #expect(try await program.restarted().client.ensure(query).title == "post 1")
    #expect(fetches.count == 1)
  }

  @Test("A value that does not encode is reported once, and the program continues")
  func unencodable() async throws {
    let program = Program()
    let coding = StorageCoding<Post> { _ in
      throw Refused()
    } decode: { _ in
      throw Refused()
    }
    let query = posts(fetches).persisted(coding: coding)
    try await program.noting {
      try await program.client.fetch(query)
      try await program.client.flush()
      try await program.client.flush()
    }
    #expect(program.kinds == [.unsavedValue])
    #expect(program.client.store(for: query).currentValue == Post(title: "post 1"))
  }

  @Test("A path without a stable form is reported, unless the value has a name of its own")
  func unstablePath() async throws {
    final class Key: Hashable, Sendable {
      static func == (lhs: Key, rhs: Key) -> Bool { lhs === rhs }
      func hash(into hasher: inout Hasher) {}
    }
    let program = Program()
    let path = OperationPath(["posts", Key()])
    await program.noting { _ = program.client.store(for: posts(fetches, path: path).persisted()) }
    #expect(program.kinds == [.unsavedValue])
    let other = posts(fetches, path: OperationPath(["posts", Key()])).persisted(as: "my posts")
    try await program.client.fetch(other)
    try await program.client.flush()
    #expect(program.storage.entries.keys.sorted() == ["values/=my posts"])
  }

  @Test("A second path with the same name is reported, and does not replace the value of the first")
  func nameClash() async throws {
    let program = Program()
    let first = posts(fetches, path: ["first"]).persisted(as: "posts")
    let second = posts(fetches, path: ["second"]).persisted(as: "posts")
    try await program.noting {
      try await program.client.fetch(first)
      try await program.client.fetch(second)
      try await program.client.flush()
    }
    #expect(program.kinds == [.unsavedValue])
    #expect(program.storage.entries.values.map(\.text) == [#"{"likes":0,"title":"post 1"}"#])
  }

  @Test("A reset of a request without a store removes what was saved")
  func resetWithoutStore() async throws {
    let program = Program()
    let named = posts(fetches, path: ["named"]).persisted(as: "a name")
    try await program.client.fetch(posts(fetches).persisted())
    try await program.client.fetch(named)
    try await program.client.flush()
    let next = program.restarted()
    next.client.reset(posts(fetches).persisted())
    try await next.client.flush()
    #expect(next.storage.entries.count == 1)
    next.client.reset(named)
    try await next.client.flush()
    #expect(next.storage.entries.isEmpty)
  }

  @Test("A storage that fails is reported once, and saving resumes when it can")
  func failingStorage() async throws {
    let program = Program()
    let store = program.client.store(for: posts(fetches).persisted())
    for await state in store.states where !state.isRestoring && !state.isLoading { break }
    try await program.client.flush()
    program.storage.failure = Refused()
    await program.noting {
      store.setResult(to: .success(Post(title: "newer")))
      await #expect(throws: Refused.self) { try await program.client.flush() }
      await #expect(throws: Refused.self) { try await program.client.flush() }
    }
    #expect(program.kinds == [.storageFailure])
    program.storage.failure = nil
    await program.clock.advance(by: .seconds(30))
    try await program.client.flush()
    #expect(program.storage.entries.values.first?.text.contains("newer") == true)
  }

  @Test("A shutdown saves what has changed, and says why it could not")
  func shutdown() async throws {
    let program = Program()
    program.client.store(for: posts(fetches).persisted()).setResult(to: .success(Post(title: "a")))
    let result = await program.client.shutdown(within: .zero)
    #expect(result.saveFailure == nil)
    #expect(program.storage.entries.count == 1)
    program.storage.failure = Refused()
    program.client.store(for: posts(fetches).persisted()).setResult(to: .success(Post(title: "b")))
    let failed = await program.noting { await program.client.shutdown(within: .zero) }
    #expect(failed.saveFailure is Refused)
    #expect(failed.description.contains("not saved"))
  }

  @Test("A subscriber of a value that flushes waits until the value is in the storage")
  func flushInHandler() async throws {
    let program = Program()
    let store = program.client.store(for: posts(fetches).manual().persisted())
    for await state in store.states where !state.isRestoring { break }
    let saved = EventLog<Int>()
    let subscription = store.subscribe { event in
      guard case .stateChanged(let state) = event, state.currentValue?.title == "a" else { return }
      Task.immediate {
        try await program.client.flush()
        saved.append(program.storage.saveCount)
      }
    }
    // Nothing is left that the flush in the handler could wait for.
    try await program.client.flush()
    store.setResult(to: .success(Post(title: "a")))
    await saved.wait(for: 1)
    #expect(saved.values.first == 1)
    subscription.cancel()
  }

  @Test("A client that was shut down and released releases its storage, without a wait for a timer")
  func releasedStorage() async throws {
    weak var released: MemoryStorage?
    do {
      let storage = MemoryStorage()
      released = storage
      let client = OperationClient(
        defaults: .testing, clock: ManualClock(now: start), storage: storage)
      let store = client.store(for: posts(fetches).manual().persisted())
      for await state in store.states where !state.isRestoring { break }
      store.setResult(to: .success(Post(title: "a")))
      await client.shutdown(within: .zero)
    }
    // The task that has written ends a moment later.
    for _ in 0..<10_000 where released != nil { await Task.yield() }
    #expect(released == nil)
  }

  @Test("A flush of a cancelled task returns at once")
  func cancelledFlush() async throws {
    let clock = ManualClock(now: start)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let store = client.store(for: posts(fetches).persisted())
    for await state in store.states where !state.isRestoring && !state.isLoading { break }
    storage.delay = .seconds(5)
    store.setResult(to: .success(Post(title: "a")))
    let flush = Task { try await client.flush() }
    await clock.sleepers(atLeast: 1)
    flush.cancel()
    await #expect(throws: CancellationError.self) { try await flush.value }
  }

  @Test("Defaults save the values below a path, and report those that cannot be encoded")
  func defaults() async throws {
    let program = Program()
    program.client.setDefaults(matching: ["saved"]) { $0.persistence = OperationPersistence() }
    try await program.client.fetch(posts(fetches, path: ["saved", 1]))
    try await program.client.fetch(posts(fetches, path: ["other", 1]))
    try await program.client.flush()
    #expect(program.storage.entries.keys.sorted() == ["values/saved/1"])
    struct Opaque: Sendable {}
    let query = Query<Opaque, any Error>(path: ["saved", 2]) { _ in Opaque() }
    await program.noting { _ = program.client.store(for: query) }
    #expect(program.kinds == [.unsavedValue])
  }

  @Test("Pages are restored with their neighbours")
  func pages() async throws {
    let program = Program()
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
  }

  @Test("A client without storage saves nothing, and a request with persisted() works there")
  func withoutStorage() async throws {
    let client = OperationClient(defaults: .testing)
    let query = posts(fetches).persisted()
    #expect(!client.store(for: query).isRestoring)
    #expect(try await client.fetch(query).title == "post 1")
    try await client.flush()
    #expect(client.outbox.calls.isEmpty)
  }

  @Test("A lost power loses what was being saved, and nothing else")
  func powerLoss() async throws {
    let clock = ManualClock(now: start)
    let storage = MemoryStorage(clock: clock)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    let query = posts(fetches).persisted()
    try await client.fetch(query)
    try await client.flush()
    storage.delay = .seconds(5)
    client.store(for: query).setResult(to: .success(Post(title: "lost")))
    let flush = Task { try await OperationIssue.withHandler({ _ in }) { try await client.flush() } }
    await clock.sleepers(atLeast: 1)
    storage.losePower()
    await clock.advance(by: .seconds(5))
    await #expect(throws: StorageError.powerLost) { try await flush.value }
    #expect(storage.entries.values.first?.text.contains("post 1") == true)
  }
}

extension StorageEntry {
  /// The data as text.
  fileprivate var text: String { String(decoding: data, as: UTF8.self) }
}

extension StorageCoding where Value: Decodable {
  fileprivate func value(of data: Data) throws -> Value {
    try JSONDecoder().decode(Value.self, from: data)
  }
}
