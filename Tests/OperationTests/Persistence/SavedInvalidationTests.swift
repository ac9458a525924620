import FoundationEssentials
import Testing

@testable import Operation

@Suite("Saved invalidations, and entries that stay", .timeLimit(.minutes(5)))
struct SavedInvalidationTests {
  private let fetches = EventLog<Int>()

  private var query: some QueryRequest<SavedPost, QueryState<SavedPost, any Error>> {
    savedPosts(fetches).stale(after: .seconds(3_600)).manual().persisted()
  }

  /// A program that has fetched the value, saved it, and then invalidated it.
  private func invalidated() async throws -> SavedProgram {
    let program = SavedProgram()
    try await program.client.fetch(query)
    try await program.client.flush()
    program.client.invalidate(query)
    return program
  }

  @Test("A value that was invalidated before its store was evicted is fetched again")
  func evicted() async throws {
    let program = try await invalidated()
    for _ in 0..<2 { await program.clock.advance(by: .seconds(301)) }
    #expect(!program.client.retains(["posts"]))
    #expect(try await program.client.ensure(query).title == "post 2")
    for _ in 0..<2 { await program.clock.advance(by: .seconds(301)) }
    #expect(!program.client.retains(["posts"]))
    #expect(try await program.client.ensure(query).title == "post 2")
  }

  @Test("A value that was invalidated is stale after a restart, until it was fetched again")
  func restarted() async throws {
    let program = try await invalidated()
    try await program.client.flush()
    let next = program.restarted()
    let store = next.client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.title == "post 1" && store.isStale)
    #expect(try await store.fetch().title == "post 2" && !store.isStale)
    try await next.client.flush()
    let last = next.restarted()
    #expect(try await last.client.ensure(query).title == "post 2")
    try await last.client.flush()
  }

  @Test("A value that is invalidated before it was loaded is saved as that")
  func invalidatedWhileLoading() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))
    let (client, clock, storage) = program.slowlyRestarted()
    let store = client.store(for: query)
    store.invalidate()
    await clock.sleepers(atLeast: 1)
    storage.delay = .zero
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    try await client.flush()
    #expect(store.currentValue?.title == "post 1" && store.isStale)
    #expect(storage.entries["values/posts"]?.isInvalidated == true)
  }

  @Test("A run that begins before an invalidated value was loaded makes it fresh, and none follows")
  func runWhileLoading() async throws {
    let program = try await invalidated()
    try await program.client.flush()
    let (client, clock, _) = program.slowlyRestarted()
    let gate = AsyncGate()
    let held = Query<SavedPost, any Error>(path: ["posts"]) { [fetches] _ in
      fetches.append(0)
      await gate.wait()
      return SavedPost(title: "new")
    }.stale(after: .seconds(3_600)).deduplicated().persisted()
    let store = client.store(for: held)
    let subscription = store.subscribe { _ in }
    let run = Task { try await store.fetch() }
    await fetches.wait(for: 2)
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(5))
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.title == "post 1" && store.isStale)
    gate.open()
    #expect(try await run.value.title == "new")
    #expect(!store.isStale && !store.isLoading && fetches.count == 2)
    subscription.cancel()
  }

  @Test("An observed store whose restored value was invalidated runs as one that is stale")
  func observed() async throws {
    let program = try await invalidated()
    try await program.client.flush()
    let next = program.restarted()
    let store = next.client.store(for: query.enableAutomaticRunning())
    let subscription = store.subscribe { _ in }
    await Settled.when { !store.isStale }
    await next.clock.settle()
    #expect(fetches.count == 2 && store.currentValue?.title == "post 2" && !store.isStale)
    subscription.cancel()
    try await next.client.flush()
  }

  @Test("A value that is invalidated when a shutdown has cancelled the runs is saved as that")
  func invalidatedByCancelledRun() async throws {
    let program = try await SavedProgram.saving(savedPosts(fetches))
    let client = program.client
    let other = Query<Int, any Error>(path: ["other"]) { [fetches] context in
      fetches.append(0)
      do { try await context.operationClock.sleep(for: .seconds(86_400)) } catch {
        client.invalidate(matching: ["posts"])
        fetches.append(0)
        throw error
      }
      return 1
    }
    let store = client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    let run = Task { try await client.fetch(other) }
    await fetches.wait(for: 2)
    await client.shutdown(within: .zero)
    _ = await run.result
    // The cancelled call returns before its request does.
    await fetches.wait(for: 3)
    try await client.flush()
    #expect(program.storage.entries["values/posts"]?.isInvalidated == true)
  }

  @Test("An edit of a value that could not be loaded leaves what is saved")
  func editAfterFailedLoad() async throws {
    let next = try await SavedProgram.saving(savedPosts(fetches)).restarted()
    next.storage.failure = Refused()
    let store = try await next.noting {
      let store = next.client.store(for: query)
      for await state in store.states where !state.isRestoring { break }
      next.storage.failure = nil
      await store.optimistically {
        $0?.likes += 1
      } while: {
      }
      try await next.client.flush()
      return store
    }
    #expect(next.kinds == [.storageFailure])
    #expect(next.storage.entries["values/posts"] != nil)
    // A reset removes it also then.
    store.resetState()
    try await next.client.flush()
    #expect(next.storage.entries.isEmpty)
  }
}
