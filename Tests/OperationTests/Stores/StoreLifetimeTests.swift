import Operation
import Synchronization
import Testing

/// The objects that are released. No value of a caller is released under a lock.
@Suite("Lifetimes") struct StoreLifetimeTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  @Test("A store is released when its client and all other references to it are")
  func store() async throws {
    weak var store: Store?
    do {
      let client = OperationClient(defaults: .testing)
      let made = client.store(for: Query(path: ["a"]) { _ in 1 })
      store = made
      _ = try await made.run()
      _ = made.runTask()
      made.subscribe { _ in _ = made.currentValue }.cancel()
      var values = made.values.makeAsyncIterator()
      _ = await values.next()
    }
    // The task of the run may not have ended yet.
    #expect(await eventually { store == nil })
  }

  @Test("A client is released with its last reference, and its stores remain usable without it")
  func client() {
    weak var client: OperationClient?
    let store: Store
    do {
      let made = OperationClient(defaults: .testing)
      client = made
      store = made.store(for: Query(path: ["a"]) { _ in 1 })
      #expect(store.context.operationClient === made)
    }
    #expect(client == nil)
    #expect(store.context.operationClient == nil)
    store.currentValue = 2
    #expect(store.currentValue == 2)
  }

  @Test("A context and a continuation of a run that has ended do not retain the store")
  func keptContinuation() async throws {
    let remote = Remote<Int>()
    weak var store: Store?
    do {
      let client = OperationClient(defaults: .testing)
      let made = client.store(for: remote.query())
      store = made
      let run = Task { try await made.run() }
      await remote.wait(forCalls: 1)
      remote.yield(1)
      #expect(made.currentValue == 1)
      remote.answer(2)
      #expect(try await run.value == 2)
    }
    #expect(await eventually { store == nil })
    let late = await issues { remote.yield(3) }
    #expect(late.issues.map(\.kind) == [.lateYield])
  }

  @Test("A subscription retains its store and its handler, and a cancelled one retains neither")
  func subscription() {
    let live = LiveCount()
    weak var store: Store?
    let subscription: OperationSubscription
    do {
      let made = Store.detached(query: Query(path: ["a"]) { _ in 1 })
      store = made
      let probe = live.makeProbe()
      subscription = made.subscribe { _ in _ = (probe, made.currentValue) }
    }
    #expect(store != nil)
    #expect(live.value == 1)
    subscription.cancel()
    #expect(store == nil)
    #expect(live.value == 0)
  }

  @Test(
    "Handlers, contexts and yields of a run are released after it, however it ends",
    arguments: 0..<4)
  func run(ending: Int) async throws {
    enum ProbeKey: OperationContext.Key { static var defaultValue: LiveCount.Probe? { nil } }
    let live = LiveCount()
    let remote = Remote<LiveCount.Probe>()
    weak var store: OperationStore<QueryState<LiveCount.Probe, any Error>>?
    do {
      let made = OperationStore.detached(
        query: Query(path: ["a"]) { [weak remote] _, continuation in
          guard let remote else { throw Failed() }
          return try await remote.call(OperationContext(), continuation)
        })
      store = made
      var context = OperationContext()
      context[ProbeKey.self] = live.makeProbe()
      let task = Task { [context, probe = live.makeProbe()] in
        try await made.run(using: context) { _ in _ = probe }
      }
      await remote.wait(forCalls: 1)
      remote.yield(live.makeProbe())
      switch ending {
      case 0: remote.fail(Failed())
      case 1: task.cancel()
      case 2: made.resetState()
      default: made.cancel()
      }
      _ = await task.result
      await remote.waitForEnd()
      made.resetState()
      remote.forget()
    }
    #expect(await eventually { store == nil && live.value == 0 })
  }

  @Test(
    "A task retains its store only as long as the task is referenced", arguments: [true, false])
  func task(isRun: Bool) async throws {
    weak var store: Store?
    var task: OperationTask<Int, any Error>?
    do {
      let made = Store.detached(query: Query(path: ["a"]) { _ in 1 })
      store = made
      task = made.runTask().map { $0 }
      if isRun { try await task?.runIfNeeded() }
    }
    #expect(task?.isFinished == isRun)
    task = nil
    #expect(await eventually { store == nil })
  }

  @Test(
    "A value whose deinit uses the store may be replaced in every way",
    arguments: ["write", "reset", "yield", "run", "cancel", "exclusive", "fail"])
  func deinitUsesStore(how: String) async throws {
    let released = Counter()
    let remote = Remote<OnDeinit>()
    let store = OperationStore.detached(query: remote.query())
    let make: @Sendable () -> OnDeinit = {
      OnDeinit { [weak store] in
        _ = store?.state
        store?.subscribe { _ in }.cancel()
        released.increment()
      }
    }
    await withWatchdog({ "\(how): a deinit waits for the lock of the store" }) {
      store.currentValue = make()
      switch how {
      case "write": store.currentValue = nil
      case "reset": store.resetState()
      case "exclusive": store.withExclusiveAccess { store.currentValue = nil }
      default: await replaceByRun(how, remote, store, make)
      }
      store.currentValue = nil
      store.resetState()
    }
    #expect(released.value > 0)
  }

  private func replaceByRun(
    _ how: String, _ remote: Remote<OnDeinit>,
    _ store: OperationStore<QueryState<OnDeinit, any Error>>, _ make: @Sendable () -> OnDeinit
  ) async {
    let task = Task { _ = try? await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(make())
    remote.yield(make())
    switch how {
    case "cancel": store.cancel()
    case "fail": remote.fail(Failed())
    default: remote.answer(make())
    }
    await task.value
    await remote.waitForEnd()
  }

  @Test("A handler and a context whose deinits use the store may be released", arguments: 0..<100)
  func handlerDeinitUsesStore(round: Int) async {
    enum Key: OperationContext.Key { static var defaultValue: OnDeinit? { nil } }
    let store = OperationStore.detached(query: Query(path: ["a"]) { _ in 1 }.deduplicated())
    await withWatchdog({ "a deinit waits for the lock of the store" }) {
      let tasks = (0..<4).map { _ in
        Task {
          var context = OperationContext()
          context[Key.self] = OnDeinit { [weak store] in store?.currentValue = 3 }
          let probe = OnDeinit { [weak store] in _ = store?.state }
          _ = try? await store.run(using: context) { _ in _ = probe }
        }
      }
      if round % 2 == 0 { tasks[0].cancel() }
      if round % 3 == 0 { store.resetState() }
      for task in tasks { await task.value }
      store.context[Key.self] = OnDeinit { [weak store] in _ = store?.state }
      store.context[Key.self] = nil
    }
    #expect(!store.isLoading)
  }

  @Test(
    "A value that a task's own context replaces may use the store in its deinit",
    arguments: ["end", "cancel"])
  func drivenOutOfTheContext(how: String) async {
    enum Key: OperationContext.Key { static var defaultValue: OnDeinit? { nil } }
    let (released, remote) = (Counter(), Remote<Int>())
    let store = OperationStore.detached(query: remote.query())
    await withWatchdog({ "a deinit waits for the lock of the store" }) {
      var context = OperationContext()
      context[Key.self] = OnDeinit { [weak store] in
        _ = store?.state
        released.increment()
      }
      var task = store.runTask(using: context)
      context = OperationContext()
      task.context[Key.self] = OnDeinit {}
      let run = Task { [task] in _ = try? await task.runIfNeeded() }
      await remote.wait(forCalls: 1)
      if how == "end" { remote.answer(1) } else { store.cancel() }
      await run.value
    }
    #expect(await eventually { released.value == 1 })
  }

  @Test(
    "The request's own task is released after the run, with everything that the request captures")
  func request() async throws {
    let live = LiveCount()
    do {
      let probe = live.makeProbe()
      let store = OperationStore.detached(
        query: Query(path: ["a"]) { _ in withExtendedLifetime(probe) { 1 } })
      _ = try await store.run()
    }
    #expect(await eventually { live.value == 0 })
  }

  @Test(
    "A request that stores the contexts of its runs does not retain itself",
    arguments: ["no store", "a batch without a store", "the store's rules", "rules of its own"])
  func storedContext(way: String) async throws {
    let live = LiveCount()
    do {
      let probe = live.makeProbe()
      let contexts = EventLog<OperationContext>()
      let query = Query(path: ["a"]) { context in
        contexts.append(context)
        return withExtendedLifetime(probe) { 1 }
      }
      let client = OperationClient(defaults: .testing)
      switch way {
      case "no store": try await query.run()
      case "a batch without a store": try await query.deduplicated().run()
      case "the store's rules": try await client.fetch(query)
      default:
        _ = client.store(for: query.manual())
        try await client.fetch(query.retry(limit: 1))
      }
      #expect(contexts.count == 1)
    }
    #expect(await eventually { live.value == 0 })
  }
}
