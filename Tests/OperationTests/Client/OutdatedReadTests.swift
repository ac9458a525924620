import Testing

@testable import Operation

/// Runs that read an out-of-date value by `value(of:)`.
@Suite("Reads of a value that is out of date", .timeLimit(.minutes(5))) struct OutdatedReadTests {
  private typealias Number = Query<Int, any Error>
  private typealias Store = OperationStore<QueryState<Int, any Error>>

  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let remote = Remote<Int>()
  private let runCount = EventLog<Int>()

  private var source: some QueryRequest<Int, QueryState<Int, any Error>> {
    remote.query(["source"]).neverStale()
  }

  private var reader: some QueryRequest<Int, QueryState<Int, any Error>> {
    Number(path: ["reader"]) { [source, runCount] context in
      let value = context.value(of: source) ?? 0
      runCount.append(value)
      return value
    }.neverStale()
  }

  /// The stores of the source, which is 1 and invalidated, and of its reader, which has not run.
  private struct Stores {
    let source: Store
    let reader: Store
    /// The run that returns the new value.
    let answer: Task<Int?, Never>
    let subscription: OperationSubscription
  }

  private func makeStores() async -> Stores {
    let sourceStore = client.store(for: source)
    sourceStore.currentValue = 1
    let subscription = sourceStore.subscribe { _ in }
    client.invalidate(source)
    await remote.wait(forCalls: 1)
    let answer = Task { try? await sourceStore.run() }
    await sourceStore.settles { $0.leaseCount == 2 }
    return Stores(
      source: sourceStore, reader: client.store(for: reader), answer: answer,
      subscription: subscription)
  }

  @Test("An observed reader runs again when the new value is committed")
  func observed() async throws {
    let stores = await makeStores()
    let (source, reader) = (stores.source, stores.reader)
    let readerSubscription = reader.subscribe { _ in }
    await reader.settles { $0.currentValue == 1 && !$0.isLoading }
    remote.answer(2)
    await reader.settles { $0.currentValue == 2 && !$0.isLoading }
    #expect(!reader.isStale && !source.isStale)
    #expect(runCount.values == [1, 2])
    stores.subscription.cancel()
    readerSubscription.cancel()
  }

  @Test("A reader without subscribers is out of date when the new value is committed, once")
  func unobserved() async throws {
    let stores = await makeStores()
    let (source, reader) = (stores.source, stores.reader)
    #expect(try await reader.run() == 1)
    remote.answer(2)
    _ = await stores.answer.value
    #expect(source.currentValue == 2 && reader.isStale)
    #expect(try await reader.run() == 2)
    #expect(!reader.isStale)
    source.currentValue = 3
    #expect(!reader.isStale && runCount.values == [1, 2])
    #expect(!source.read { $0.freshness.wasReadStale })
    stores.subscription.cancel()
  }

  @Test("A reader of the reader is out of date as well")
  func chain() async throws {
    let stores = await makeStores()
    let source = stores.source
    let second = Number(path: ["second"]) { [reader] in try await $0.ensure(reader) * 10 }
      .neverStale()
    let store = client.store(for: second)
    let secondSubscription = store.subscribe { _ in }
    await store.settles { $0.currentValue == 10 && !$0.isLoading }
    remote.answer(2)
    await store.settles { $0.currentValue == 20 && !$0.isLoading }
    #expect(!store.isStale && !source.isStale)
    stores.subscription.cancel()
    secondSubscription.cancel()
  }

  @Test("A reader of a reader's value runs for each new one, and no run is wasted")
  func chainOfValues() async throws {
    let stores = await makeStores()
    let reader = stores.reader
    #expect(try await reader.run() == 1)
    let secondRuns = EventLog<Int>()
    let second = Number(path: ["second"]) { [reader = self.reader] context in
      let value = context.value(of: reader) ?? 0
      secondRuns.append(value)
      return value * 10
    }.neverStale()
    let store = client.store(for: second)
    let subscription = store.subscribe { _ in }
    await store.settles { $0.currentValue == 10 && !$0.isLoading }
    remote.answer(2)
    _ = await stores.answer.value
    // The reader has no subscribers, and its value is out of date when it is read again.
    await secondRuns.wait(for: 2)
    await store.settles { !$0.isLoading }
    #expect(store.currentValue == 10 && reader.isStale)
    #expect(try await reader.run() == 2)
    await store.settles { $0.currentValue == 20 && !$0.isLoading }
    #expect(!reader.isStale && !store.isStale)
    #expect(secondRuns.values == [1, 1, 2] && runCount.values == [1, 2])
    stores.subscription.cancel()
    subscription.cancel()
  }

  @Test("A run in flight when the new value is committed is displayed, and a run follows")
  func inFlight() async throws {
    let gate = AsyncGate()
    let stores = await makeStores()
    let slow = Number(path: ["slow"]) { [source, runCount] context in
      let value = context.value(of: source) ?? 0
      if runCount.append(value) == 1 { await gate.wait() }
      return value
    }.neverStale()
    let store = client.store(for: slow)
    let values = EventLog<Int?>()
    let slowSubscription = store.subscribe { event in
      if case .runEnded(let result, _) = event { values.append(try? result.get()) }
    }
    await runCount.wait(for: 1)
    remote.answer(2)
    _ = await stores.answer.value
    #expect(store.isStale && store.isLoading)
    gate.open()
    await values.wait(for: 2)
    #expect(values.values == [1, 2] && !store.isStale)
    stores.subscription.cancel()
    slowSubscription.cancel()
  }

  @Test("A write counts as a new value at the end of exclusive access")
  func written() async throws {
    let stores = await makeStores()
    let (source, reader) = (stores.source, stores.reader)
    #expect(try await reader.run() == 1)
    source.withExclusiveAccess {
      source.currentValue = 2
      #expect(!reader.isStale)
    }
    #expect(await eventually { reader.isStale })
    #expect(try await reader.run() == 2)
    #expect(!reader.isStale)
    source.cancel()
    stores.subscription.cancel()
  }

  @Test("Neither a failure nor a reset is a new value")
  func noNewValue() async throws {
    let stores = await makeStores()
    let (source, reader) = (stores.source, stores.reader)
    #expect(try await reader.run() == 1)
    remote.fail(Refused())
    _ = await stores.answer.value
    #expect(source.error != nil && !reader.isStale)
    source.resetState()
    #expect(!reader.isStale)
    source.currentValue = 2
    #expect(await eventually { reader.isStale })
    stores.subscription.cancel()
  }

  @Test("A reader whose later run has read another source is not invalidated")
  func changedDependency() async throws {
    let stores = await makeStores()
    let source = stores.source
    let other = Number(path: ["other"]) { _ in 7 }.neverStale()
    let readsOther = Monitor(false)
    let query = Number(path: ["changing"]) { [source = self.source] context in
      readsOther.value ? try await context.ensure(other) : context.value(of: source) ?? 0
    }.neverStale()
    let store = client.store(for: query)
    #expect(try await store.run() == 1)
    readsOther.update { $0 = true }
    #expect(try await store.run() == 7)
    remote.answer(2)
    _ = await stores.answer.value
    #expect(source.currentValue == 2 && !store.isStale)
    stores.subscription.cancel()
  }

  @Test("A reader of an evicted reader is out of date as well")
  func evictedReader() async throws {
    let stores = await makeStores()
    let second = Number(path: ["second"]) { [reader] in try await $0.ensure(reader) * 10 }
      .neverStale()
    let store = client.store(for: second)
    #expect(try await store.run() == 10)
    client.clearStore(with: ["reader"])
    remote.answer(2)
    _ = await stores.answer.value
    #expect(store.isStale)
    stores.subscription.cancel()
  }

  @Test("A source that was evicted and created again invalidates its readers")
  func evictedSource() async throws {
    client.store(for: source).currentValue = 1
    client.invalidate(source)
    let store = client.store(for: reader)
    #expect(try await store.run() == 1)
    client.clearStore(with: ["source"])
    let run = Task { [client, source] in try await client.store(for: source).run() }
    await remote.wait(forCalls: 1)
    remote.answer(2)
    _ = try await run.value
    #expect(store.isStale)
  }

  @Test("A reader whose run was cancelled is not invalidated")
  func cancelledReader() async throws {
    let gate = AsyncGate()
    let stores = await makeStores()
    let slow = Number(path: ["slow"]) { [source, runCount] context in
      let value = context.value(of: source) ?? 0
      runCount.append(value)
      await gate.wait()
      return value
    }.neverStale()
    let store = client.store(for: slow)
    store.currentValue = 5
    let subscription = store.subscribe { _ in }
    let run = Task { try? await store.run() }
    await runCount.wait(for: 1)
    store.cancel()
    remote.answer(2)
    _ = await stores.answer.value
    #expect(!store.isStale && !store.isLoading)
    gate.open()
    _ = await run.value
    #expect(runCount.values == [1])
    stores.subscription.cancel()
    subscription.cancel()
  }

  @Test("A write of the source does not wait for exclusive access to the reader")
  func heldReader() async throws {
    let sourceStore = client.store(for: source)
    sourceStore.currentValue = 1
    client.invalidate(source)
    let store = client.store(for: reader)
    #expect(try await store.run() == 1)
    let (isHeld, mayEnd) = (ThreadLatch(), ThreadLatch())
    await withWatchdog({ "A write waits for exclusive access to a reader." }) {
      await onThreads(2) { thread in
        if thread == 0 {
          store.withExclusiveAccess {
            isHeld.open()
            mayEnd.wait()
          }
        } else {
          isHeld.wait()
          sourceStore.currentValue = 2
          mayEnd.open()
        }
      }
    }
    #expect(await eventually { store.isStale })
  }
}
