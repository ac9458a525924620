@testable import Operation
import Testing

/// Dependencies of runs that have ended, and of stores that are removed.
@Suite(.timeLimit(.minutes(5))) struct DependencyLifetimeTests {
  private let clock = ManualClock()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)))
  }

  @Test("A read through the context of a run that has ended adds no dependency")
  func lateRead() async throws {
    let contexts = Recorder<OperationContext>()
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      contexts.append(context)
      return 1
    }
    try await client.fetch(reader)
    #expect(try await contexts.all[0].ensure(source) == 1)
    #expect(contexts.all[0].value(of: source) == 1)
    let scheduled = client.store(for: reader).runTask()
    #expect(scheduled.context.value(of: source) == 1)
    #expect(client.hub.hasNoDependencies)
  }

  @Test(
    "A run of a cleared store takes no dependency from the new store on its path",
    arguments: [false, true])
  func clearedReader(isRead: Bool) async throws {
    let gate = AsyncGate()
    let number = Monitor(1)
    let sources = (0..<3).map { id in Query<Int, any Error>(path: ["source", id]) { _ in id } }
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      let id = number.value
      let value = try await context.ensure(sources[id])
      if id == 1 { await gate.wait() }
      return value
    }
    let outer = Query<Int, any Error>(path: ["outer"]) { try await $0.ensure(reader) }
    let old = client.store(for: isRead ? outer : reader)
    let run = Task { try await old.run() }
    #expect(await eventually { !client.hub.dependencies(of: ["reader"], limit: 1).reads.isEmpty })
    client.clearStores(matching: ["reader"])
    number.update { $0 = 2 }
    let new = client.store(for: reader.neverStale())
    #expect(try await new.run() == 2)
    gate.open()
    #expect(try await run.value == 1)
    #expect(!new.isStale)
    client.invalidate(sources[2])
    #expect(new.isStale)
  }

  @Test(
    "A run of a cleared store keeps what it has read as long as another request reads it, also beside a new store",
    arguments: [false, true])
  func clearedBetween(isReplaced: Bool) async throws {
    let gate = AsyncGate()
    let source = Query<Int, any Error>(path: ["source"]) { _ in 1 }.neverStale()
    let between = Query<Int, any Error>(path: ["between"]) { context in
      let value = try await context.ensure(source)
      await gate.wait()
      return value
    }
    let reader = client.store(
      for: Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(between) }.neverStale())
    let run = Task { try await reader.run() }
    #expect(await eventually { !client.hub.dependencies(of: ["between"], limit: 1).reads.isEmpty })
    client.clearStores(matching: ["between"])
    if isReplaced { _ = client.store(for: between) }
    gate.open()
    #expect(try await run.value == 1 && !reader.isStale)
    client.invalidate(source)
    #expect(reader.isStale)
    client.clearStores()
    #expect(client.hub.hasNoDependencies)
  }

  @Test("A request that is read without an await runs before its readers")
  func order() async throws {
    let number = Monitor(1)
    let gate = Monitor<AsyncGate?>(nil)
    let source = Query<Int, any Error>(path: ["source"]) { _ in
      await gate.value?.wait()
      return number.value
    }
    let reader = Query<Int, any Error>(path: ["reader"]) { $0.value(of: source) ?? 0 }
    var subscriptions: [OperationSubscription] = []
    for query in [source, reader] {
      try await client.fetch(query)
      subscriptions.append(client.store(for: query.neverStale()).subscribe { _ in })
    }
    for store in client.stores(matching: []) { await settles(store) }
    let closed = AsyncGate()
    gate.update { $0 = closed }
    number.update { $0 = 2 }
    client.invalidate(source)
    // Enough time for a reader that does not wait.
    for _ in 0..<1_000 { await Task.yield() }
    closed.open()
    for store in client.stores(matching: []) { await settles(store) }
    #expect(client.store(for: reader).currentValue == 2)
    withExtendedLifetime(subscriptions) {}
  }

  private func settles(_ store: OpaqueOperationStore) async {
    #expect(await eventually { !store.isLoading })
  }

  /// A host that calls a closure when a store is looked up.
  private final class Host: StoreHost {
    let lookedUp = Recorder<OperationPath>()
    let present: [OpaqueOperationStore]
    let onLookUp: @Sendable (OperationPath) -> Void

    init(
      _ present: [OpaqueOperationStore] = [],
      _ onLookUp: @escaping @Sendable (OperationPath) -> Void = { _ in }
    ) {
      self.present = present
      self.onLookUp = onLookUp
    }

    func stores(at path: OperationPath) -> [OpaqueOperationStore] {
      lookedUp.append(path)
      onLookUp(path)
      return present
    }
    func hasStore(at path: OperationPath) -> Bool { true }
    func hasStore(_ id: ObjectIdentifier, at path: OperationPath) -> Bool {
      present.contains { $0.id == id }
    }
    func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {}
    func wasReleased(_ id: ObjectIdentifier, at path: OperationPath) {}
  }

  @Test("A reader that is added while readers are marked is marked as well")
  func addedReader() {
    let hub = StoreHub()
    @Sendable func note(_ path: OperationPath, reads other: OperationPath) {
      let origin = OperationRun.Origin(path: path, hub: ObjectIdentifier(hub))
      let run = TaskNode(origin: origin)
      run.beginRequest()
      #expect(hub.note(run, reads: other) == nil)
    }
    note(["reader"], reads: ["source"])
    let host = Host { path in
      if path == ["reader"] { note(["late"], reads: ["source"]) }
      if path == ["late"] { note(["later"], reads: ["late"]) }
    }
    hub.connect(to: host)
    let source = OperationStore.detached(query: Query<Int, any Error>(path: ["source"]) { _ in 1 })
    source.noteRead()
    hub.invalidate { $0(OpaqueOperationStore(source)) }
    #expect(host.lookedUp.all == [["reader"], ["late"], ["later"]])
  }

  @Test("A scheduled run that an invalidation starts also waits for its dependencies")
  func scheduledReader() async throws {
    let gate = Monitor<AsyncGate?>(nil)
    let order = Recorder<String>()
    let source = Query<Int, any Error>(path: ["source"]) { _ in
      await gate.value?.wait()
      order.append("source")
      return 1
    }
    let reader = Query<Int, any Error>(path: ["reader"]) { context in
      order.append("reader")
      return context.value(of: source) ?? 0
    }
    var subscriptions: [OperationSubscription] = []
    for query in [source, reader] {
      try await client.fetch(query)
      subscriptions.append(client.store(for: query.neverStale()).subscribe { _ in })
    }
    for store in client.stores(matching: []) { await settles(store) }
    let handle = client.store(for: reader).runTask()
    let closed = AsyncGate()
    gate.update { $0 = closed }
    let count = order.count
    client.invalidate(source)
    for _ in 0..<1_000 { await Task.yield() }
    closed.open()
    for store in client.stores(matching: []) { await settles(store) }
    #expect(order.all.dropFirst(count) == ["source", "reader"])
    withExtendedLifetime((subscriptions, handle)) {}
  }

  @Test("A path that the graph removes is released at once, without its lock")
  func droppedPath() {
    let hub = StoreHub()
    let query = Query<Int, any Error>(path: ["reader"]) { _ in 1 }
    let reader = OpaqueOperationStore(OperationStore.detached(query: query))
    let host = Host([reader])
    hub.connect(to: host)
    let ends = Recorder<Bool>()
    func run(reading others: [OperationPath]) {
      let origin = OperationRun.Origin(path: ["reader"], hub: ObjectIdentifier(hub))
      let run = TaskNode(origin: origin)
      run.beginRequest()
      for other in others { #expect(hub.note(run, reads: other) == nil) }
      var leftovers = hub.beginEnd()
      hub.end(LaunchID(run: run.id), of: reader.id, at: reader.path, isCancelled: false, &leftovers)
      #expect(leftovers?.cycle == nil)
    }
    let kept = TaskNode(
      origin: OperationRun.Origin(path: ["other reader"], hub: ObjectIdentifier(hub)))
    kept.beginRequest()
    #expect(hub.note(kept, reads: ["kept"]) == nil)
    run(reading: [
      [
        "dropped",
        Sentinel { [weak hub] in
          // Would deadlock under the lock of the graph.
          ends.append(hub?.hasNoDependencies ?? true)
        },
      ]
    ])
    run(reading: [])
    #expect(ends.all == [false])
  }

  @Test("An invalidation of an evicted store reaches its readers, also indirect ones")
  func evictedSource() async throws {
    let calls = EventLog<Int>()
    let number = Monitor(1)
    let source = Query<Int, any Error>(path: ["sources", 1]) { _ in
      calls.append(0)
      return number.value
    }
    let middle = Query<Int, any Error>(path: ["middle"]) { context in
      try await context.ensure(source)
    }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(middle) }
    let store = client.store(for: reader.neverStale())
    let subscription = store.subscribe { _ in }
    await store.settles { $0.currentValue == 1 && !$0.isLoading }
    for round in 2...3 {
      await clock.advance(by: .seconds(600))
      // What has run can still be about to release a store.
      #expect(
        await eventually { client.stores(matching: []).map(\.path) == [["reader"]] })
      number.update { $0 = round }
      if round == 2 { client.invalidate(source) } else { client.invalidate(matching: ["sources"]) }
      await store.settles { $0.currentValue == round && !$0.isLoading }
    }
    subscription.cancel()
    client.clearStores()
    #expect(client.hub.hasNoDependencies)
  }

  @Test("An invalidation while a store is removed reaches its readers", arguments: [true, false])
  func removalUnderWay(byRequest: Bool) async throws {
    let source = Query<Int, any Error>(path: ["sources", 1]) { _ in 1 }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) }
    let store = client.store(for: reader.neverStale())
    #expect(try await store.run() == 1)
    #expect(!store.isStale)
    // It is called while the client removes the store, which no look-up finds any more.
    let subscription = client.subscribe(matching: ["sources"]) { [client] change in
      if change.storesRemoved.isEmpty { return }
      #expect(client.store(with: ["sources", 1]) == nil)
      if byRequest { client.invalidate(source) } else { client.invalidate(matching: ["sources"]) }
    }
    client.clearStores(matching: ["sources"])
    #expect(store.isStale)
    subscription.cancel()
  }

  @Test("An invalidation while an evicted store is released reaches its readers")
  func releaseUnderWay() async throws {
    let source = Query<Int, any Error>(path: ["sources", 1]) { _ in 1 }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(source) }
    let store = client.store(for: reader.neverStale())
    for round in 0..<200 {
      #expect(try await store.run() == 1)
      #expect(!store.isStale)
      let last = Monitor<OpaqueOperationStore?>(client.store(with: ["sources", 1]))
      await clock.advance(by: .seconds(600))
      await onThreads(2) { [client] thread in
        if thread == 0 { return last.update { $0 = nil } }
        while client.store(with: ["sources", 1]) != nil {}
        if round % 2 == 0 {
          client.invalidate(source)
        } else {
          client.invalidate(matching: ["sources"])
        }
      }
      #expect(store.isStale)
    }
  }
}
