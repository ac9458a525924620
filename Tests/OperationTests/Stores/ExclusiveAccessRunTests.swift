import Glibc
import Synchronization
import Testing

@testable import Operation

@Suite("Exclusive access beside runs", .timeLimit(.minutes(5))) struct ExclusiveAccessRunTests {
  @Test("A page run does not begin with an intermediate value of exclusive access")
  func pageRunInExclusiveAccess() async throws {
    let server = PageServer()
    let store = try await numbers(server)
    store.currentValue = .written(5...6)
    // The run of the next page starts when a run of another store has ended.
    let remote = Remote<Int>()
    let other = OperationStore.detached(query: remote.query())
    let task = store.fetchNextPageTask()
    task.schedule(after: other.runTask())
    let next = Task { try await task.runIfNeeded()?.id }
    await remote.wait(forCalls: 1)
    server.close()
    await onThreads(1) { _ in
      store.withExclusiveAccess {
        store.currentValue = []
        remote.answer(1)
        // Loops until the run has begun, or waits for the end of the access.
        while server.pending.isEmpty, store.read({ $0.access?.gates.isEmpty ?? true }) {
          sched_yield()
        }
        store.currentValue = .written(5...7)
      }
    }
    await server.pending(1)
    server.open()
    #expect(try await next.value == 8)
    #expect(store.currentValue.ids == [5, 6, 7, 8])
  }

  /// An event of a store with the value 1 and a confirmed edit that adds 100, beside a run that has
  /// yielded 10, or nothing.
  enum Event: CaseIterable {
    case cancellation, yield, edit
  }

  @Test("The owner of exclusive access reads the confirmed edits", arguments: Event.allCases)
  func confirmedEditInExclusiveAccess(event: Event) async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    if event == .cancellation { remote.yield(10) }
    @Sendable func edit() async { await store.optimistically({ $0? += 100 }, while: {}) }
    if event != .edit {
      await edit()
      let value = event == .cancellation ? 110 : 101
      #expect(store.currentValue == value && store.confirmedValue == value && !store.isOptimistic)
    }
    let seen = store.withExclusiveAccess {
      switch event {
      case .cancellation: store.cancel()
      case .yield: remote.yield(10)
      case .edit: Task.immediate { await edit() }
      }
      let seen = store.currentValue
      store.currentValue? += 1
      return seen
    }
    let expected = event == .yield ? 110 : 101
    #expect(seen == expected)
    #expect(store.currentValue == expected + 1)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
  }

  @Test("An edit whose computation changes the store is computed again, but not endlessly")
  func editThatYields() async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let count = Counter()
    await store.optimistically {
      count.increment()
      remote.yield(10)
      $0? += 100
    } while: {
    }
    let before = count.value
    let seen = store.withExclusiveAccess {
      remote.yield(20)
      return store.currentValue
    }
    // The change of the store postpones the display of the edit.
    #expect(seen == 10)
    #expect(count.value - before < 100)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
  }

  @Test(
    "An invalidation with exclusive access to several stores runs their reader once",
    arguments: [false, true])
  func invalidationOfSeveral(isNested: Bool) async {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let bases = (0..<3).map { id in Query(path: ["base", id]) { _ in 1 }.neverStale() }
    let runs = Recorder<Int>()
    let reader = Query(path: ["reader"]) { context in
      var sum = 0
      for base in bases { sum += try await context.ensure(base) }
      runs.append(sum)
      return sum
    }.neverStale()
    let store = client.store(for: reader)
    let subscription = store.subscribe { _ in }
    await store.settles { $0.currentValue == 3 && !$0.isLoading }
    await onThreads(1) { _ in
      if isNested {
        client.store(for: bases[1]).withExclusiveAccess {
          client.store(for: bases[0]).withExclusiveAccess { client.invalidate(matching: ["base"]) }
          #expect(client.store(for: bases[0]).isStale)
          #expect(store.isStale && !store.isLoading)
        }
      } else {
        client.withStores(matching: ["base"], of: QueryState<Int, any Error>.self) { _ in
          client.invalidate(matching: ["base"])
        }
      }
    }
    await store.settles { !$0.isLoading && !$0.isStale }
    #expect(runs.count == 2)
    subscription.cancel()
  }

  @Test("An invalidation in exclusive access to a store runs the others and the readers at its end")
  func invalidationBesideOthers() async {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let bases = (0..<3).map { id in Query(path: ["base", id]) { _ in 1 }.neverStale() }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(bases[2]) }
      .neverStale()
    let (store, other) = (client.store(for: reader), client.store(for: bases[1]))
    let subscriptions = [store.subscribe { _ in }, other.subscribe { _ in }]
    await store.settles { $0.valueUpdateCount == 1 && !$0.isLoading }
    await other.settles { $0.valueUpdateCount == 1 && !$0.isLoading }
    // What the reader has read is removed, and is invalidated by its path.
    client.clearStore(with: ["base", 2])
    await onThreads(1) { _ in
      client.store(for: bases[0]).withExclusiveAccess {
        client.invalidate(matching: ["base"])
        #expect(!store.isLoading && !other.isLoading)
      }
    }
    await store.settles { $0.valueUpdateCount == 2 && !$0.isLoading }
    await other.settles { $0.valueUpdateCount == 2 && !$0.isLoading }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test(
    "A reader of a request that is invalidated in exclusive access gets no outdated value of it")
  func invalidationInExclusiveAccess() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let server = Atomic(1)
    let read = Recorder<Int>()
    let base = Query(path: ["base"]) { _ in server.load(ordering: .acquiring) }.neverStale()
    let reader = Query(path: ["reader"]) { context in
      let value = try await context.ensure(base)
      read.append(value)
      return value
    }.neverStale()
    let (baseStore, readerStore) = (client.store(for: base), client.store(for: reader))
    let subscription = readerStore.subscribe { _ in }
    await readerStore.settles { $0.currentValue == 1 && !$0.isLoading }
    server.store(2, ordering: .releasing)
    await onThreads(1) { _ in
      baseStore.withExclusiveAccess {
        baseStore.invalidate()
        // If the run of the reader has begun, loops until it has read the value, or waits for the
        // end of the access.
        while readerStore.isLoading, read.count < 2,
          baseStore.read({ $0.access?.gates.isEmpty ?? true })
        {
          sched_yield()
        }
      }
    }
    await readerStore.settles { !$0.isLoading && !$0.isStale }
    #expect(read.all == [1, 2])
    #expect(readerStore.currentValue == 2)
    withExtendedLifetime(subscription) {}
  }
}
