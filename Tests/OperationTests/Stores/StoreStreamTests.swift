@testable import Operation
import Testing

/// Promise 3, and the streams of a store.
@Suite("Streams of a store") struct StoreStreamTests {
  private struct Opaque: Sendable { let id: Int }

  private let clock = ManualClock()
  private let remote = Remote<Int>()

  private func makeStore() -> OperationStore<QueryState<Int, any Error>> {
    var context = OperationContext()
    context.operationClock = clock
    return OperationStore.detached(query: remote.query(), initialContext: context)
  }

  @Test("An equal value updates date and count, and values and changes(of:) do not emit it")
  func noNews() async {
    let store = makeStore()
    store.currentValue = 1
    var values = store.values.makeAsyncIterator()
    var changes = store.changes(of: \.currentValue).makeAsyncIterator()
    var states = store.states(buffering: .all).makeAsyncIterator()
    #expect(await values.next() == 1)
    #expect(await changes.next() == 1)
    let date = store.valueLastUpdatedAt
    await clock.advance(by: .seconds(1))
    store.currentValue = 1
    #expect(store.valueUpdateCount == 2)
    #expect(store.valueLastUpdatedAt != date)
    store.currentValue = 2
    #expect(await values.next() == 2)
    #expect(await changes.next() == 2)
    for count in 1...3 { #expect(await states.next()?.valueUpdateCount == count) }
  }

  @Test("A value that is not equatable is emitted, even if it is set right after a reset")
  func behindReset() async {
    var context = OperationContext()
    context.operationClock = clock
    let store = OperationStore.detached(
      query: Query(path: ["opaque"]) { _ in Opaque(id: 0) }, initialContext: context)
    store.currentValue = Opaque(id: 1)
    var values = store.values.makeAsyncIterator()
    #expect(await values.next()??.id == 1)
    await clock.advance(by: .seconds(1))
    store.withExclusiveAccess {
      store.resetState()
      store.currentValue = Opaque(id: 2)
    }
    #expect(await values.next()??.id == 2)
  }

  @Test("A value that is not equatable is emitted for a reset and a write at one moment")
  func resetAtOneMoment() async {
    var context = OperationContext()
    context.operationClock = clock
    let store = OperationStore.detached(
      query: Query(path: ["opaque"]) { _ in Opaque(id: 0) }, initialContext: context)
    store.currentValue = Opaque(id: 1)
    var values = store.values.makeAsyncIterator()
    #expect(await values.next()??.id == 1)
    store.withExclusiveAccess {
      store.resetState()
      store.currentValue = Opaque(id: 2)
    }
    #expect(await values.next()??.id == 2)
  }

  @Test("Values that are not equatable have stamps, which edits, runs and resets keep apart")
  func stamps() async {
    let store = OperationStore.detached(query: Query(path: ["opaque"]) { _ in Opaque(id: 0) })
    var seen = [store.state]
    func isNew() -> Bool {
      defer { seen.append(store.state) }
      return !seen.contains { $0.hasSameValue(as: store.state) }
    }
    store.currentValue = Opaque(id: 1)
    #expect(isNew())
    let first = store.beginEdit { $0 = Opaque(id: 2) }
    #expect(isNew())
    let task = store.runTask()
    #expect(!isNew(), "nothing but the loading flag has changed")
    store.endEdit(first, isSuccess: false)
    #expect(store.state.hasSameValue(as: seen[1]))
    let second = store.beginEdit { $0 = Opaque(id: 3) }
    #expect(isNew())
    store.endEdit(second, isSuccess: true)
    #expect(!isNew(), "it was displayed before")
    task.cancel()
    store.resetState()
    #expect(store.state.hasSameValue(as: seen[0]))
    store.currentValue = Opaque(id: 1)
    #expect(isNew())
  }

  @Test("Stamps tell pending edits apart, and do not change when one is confirmed")
  func stampsOfEdits() async {
    let remote = Remote<Opaque>()
    let store = OperationStore.detached(query: remote.query())
    var seen: [QueryState<Opaque, any Error>] = [store.state]
    func isNew() -> Bool {
      defer { seen.append(store.state) }
      return !seen.contains { $0.hasSameValue(as: store.state) }
    }
    store.currentValue = Opaque(id: 1)
    #expect(isNew())
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    let confirmed = store.beginEdit { $0 = Opaque(id: 2) }
    #expect(isNew())
    store.endEdit(confirmed, isSuccess: true)
    #expect(store.state.hasSameValue(as: seen[2]), "it was displayed before")
    let failing = (3...4).map { id in
      let edit = store.beginEdit { $0 = Opaque(id: id) }
      #expect(isNew())
      return edit
    }
    for edit in failing.reversed() { store.endEdit(edit, isSuccess: false) }
    remote.yield(Opaque(id: 5))
    #expect(isNew())
    let last = store.beginEdit { $0 = Opaque(id: 6) }
    store.endEdit(last, isSuccess: true)
    seen.append(store.state)
    store.cancel()
    #expect(store.currentValue?.id == 6)
    #expect(isNew())
    _ = await run.result
  }

  @Test("An equal value of a run makes the value fresh")
  func equalValueIsFresh() async throws {
    let store = OperationClient(defaults: .testing, clock: clock)
      .store(for: remote.query().stale(after: .seconds(10)))
    store.currentValue = 1
    await clock.advance(by: .seconds(10))
    #expect(store.isStale)
    async let value = store.run()
    await remote.wait(forCalls: 1)
    remote.answer(1)
    _ = try await value
    #expect(!store.isStale)
    store.invalidate()
    #expect(store.isStale)
    store.currentValue = 1
    #expect(!store.isStale)
  }

  @Test("A reader of a value is not notified of a loading flag, nor of an error")
  func loadingIsNoNews() async {
    let store = makeStore()
    let received = Recorder<Int?>()
    let reader = Task {
      for await value in store.values {
        received.append(value)
        if value == 9 { break }
      }
    }
    await received.wait(forCount: 1)
    let task = store.runTask()
    store.setResult(to: .failure(Failed()))
    task.cancel()
    store.currentValue = 9
    await reader.value
    #expect(received.all == [nil, 9])
  }

  @Test("A value that is not equatable is emitted each time one is stored, and only then")
  func incomparable() async {
    let store = OperationStore.detached(query: Query(path: ["opaque"]) { _ in Opaque(id: 0) })
    let received = Recorder<Int?>()
    let reader = Task {
      for await value in store.values {
        received.append(value?.id)
        if value?.id == 2 { break }
      }
    }
    await received.wait(forCount: 1)
    store.currentValue = Opaque(id: 1)
    await received.wait(forCount: 2)
    let task = store.runTask()
    task.cancel()
    store.currentValue = Opaque(id: 1)
    await received.wait(forCount: 3)
    store.currentValue = Opaque(id: 2)
    await reader.value
    #expect(received.all == [nil, 1, 1, 2])
  }

  @Test("A stream of one member emits only the changes of that member")
  func members() async {
    let store = makeStore()
    var counts = store.changes(of: \.errorUpdateCount).makeAsyncIterator()
    #expect(await counts.next() == 0)
    store.currentValue = 1
    store.currentValue = 2
    store.setResult(to: .failure(Failed()))
    #expect(await counts.next() == 1)
  }

  @Test("Statuses go from idle through loading to the result")
  func statuses() async throws {
    let store = makeStore()
    var statuses = store.statuses.makeAsyncIterator()
    #expect(await statuses.next()?.isIdle == true)
    async let value = store.run()
    await remote.wait(forCalls: 1)
    #expect(await statuses.next()?.isLoading == true)
    remote.answer(1)
    _ = try await value
    #expect(await statuses.next()?.isSuccess == true)
    store.setResult(to: .failure(Failed()))
    #expect(await statuses.next()?.isFailure == true)
  }

  @Test("Equal statuses are emitted once if values and failures are equatable")
  func typedStatuses() async {
    let query = Query(path: ["typed"], failure: Failed.self) { _ throws(Failed) in 1 }
    let store = OperationStore.detached(query: query)
    var statuses = store.statuses.makeAsyncIterator()
    #expect(await statuses.next() == .idle)
    store.currentValue = 1
    #expect(await statuses.next() == .result(.success(1)))
    store.currentValue = 1
    store.setResult(to: .failure(Failed()))
    #expect(await statuses.next() == .result(.failure(Failed())))
  }

  @Test("Events begin with the current state, and are all buffered for a late reader")
  func events() async throws {
    let store = makeStore()
    var events = store.events.makeAsyncIterator()
    async let value = store.run()
    await remote.wait(forCalls: 1)
    remote.yield(1)
    remote.answer(2)
    _ = try await value
    var names: [String] = []
    while names.last != "ended 2", let event = await events.next() { names.append(event.name) }
    #expect(
      names == [
        "state nil", "started", "state nil…", "state 1…", "yielded 1", "state 2", "ended 2",
      ])
  }

  @Test("The buffering determines which states an idle reader loses")
  func buffering() async {
    let store = makeStore()
    var oldest = store.states(buffering: .oldest(2)).makeAsyncIterator()
    var newest = store.states(buffering: .newest(2)).makeAsyncIterator()
    for value in 1...5 { store.currentValue = value }
    #expect(await oldest.next()?.currentValue == nil)
    #expect(await oldest.next()?.currentValue == 1)
    #expect(await newest.next()?.currentValue == 4)
    #expect(await newest.next()?.currentValue == 5)
  }

  @Test("A stream is a subscriber: it starts a run, holds it, and unsubscribes at its end")
  func isSubscriber() async {
    let store = OperationClient(defaults: .testing).store(for: remote.query())
    let reader = Task {
      for await value in store.values where value == 1 { break }
    }
    await remote.wait(forCalls: 1)
    #expect(store.subscriberCount == 1)
    #expect(store.leaseCount == 1)
    reader.cancel()
    await reader.value
    await remote.waitForCancellation()
    #expect(store.subscriberCount == 0)
    #expect(!store.isLoading)
  }

  @Test("A stream subscribes when its iterator is created, and again for the next iterator")
  func iterators() async {
    let store = makeStore()
    let stream = store.states
    #expect(store.subscriberCount == 0)
    do {
      var first = stream.makeAsyncIterator()
      var second = stream.makeAsyncIterator()
      #expect(store.subscriberCount == 2)
      _ = await (first.next(), second.next())
    }
    #expect(store.subscriberCount == 0)
  }
}
