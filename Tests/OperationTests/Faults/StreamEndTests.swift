import Foundation
import Operation
import Testing

/// The ends of streams at a shutdown while another thread delivers.
@Suite(.timeLimit(.minutes(5))) struct StreamEndTests {
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
  private let isBlocked = Monitor(false)
  private let latch = ThreadLatch()

  private func store(_ name: String) -> OperationStore<QueryState<Int, any Error>> {
    client.store(for: OpenQuery(script: Script(), path: [name]))
  }

  /// Keeps the first caller until the client is shut down.
  private func block() {
    let wasBlocked = isBlocked.update { isBlocked in
      defer { isBlocked = true }
      return isBlocked
    }
    if !wasBlocked { latch.wait() }
  }

  /// Shuts the client down while a thread of its own is kept in the delivery of its change, behind which
  /// another change waits.
  private func shutDown(
    _ other: OperationClient? = nil, first: @escaping @Sendable () -> Void,
    second: @Sendable () -> Void
  ) async {
    Thread.detachNewThread { first() }
    await isBlocked.wait { $0 }
    second()
    await (other ?? client).shutdown(within: .zero)
    latch.open()
  }

  @Test("The streams of a store end with its last state, and after all events") func ofStore()
    async
  {
    let store = store("a")
    let subscription = store.subscribe { _ in if store.currentValue != nil { block() } }
    var events = store.events.makeAsyncIterator()
    var states = store.states.makeAsyncIterator()
    #expect(await events.next() != nil)
    #expect(await states.next() != nil)
    await shutDown {
      store.currentValue = 1
    } second: {
      store.currentValue = 2
    }
    var values: [Int?] = []
    while let event = await events.next() {
      if case .stateChanged(let state) = event { values.append(state.currentValue) }
    }
    #expect(values == [1, 2])
    var last: Int?
    while let state = await states.next() { last = state.currentValue }
    #expect(last == 2)
    subscription.cancel()
  }

  @Test("The events of a client end after all of them") func ofEvents() async {
    struct Logger: OperationLogger {
      let block: @Sendable () -> Void
      func log(_ event: OperationClientEvent) { block() }
    }
    let subscription = client.log(to: Logger { block() })
    var events = client.events.makeAsyncIterator()
    await shutDown {
      _ = store("a")
    } second: {
      _ = store("b")
    }
    #expect(await events.next()?.path == ["a"])
    #expect(await events.next()?.path == ["b"])
    #expect(await events.next() == nil)
    subscription.cancel()
  }

  @Test("The changes of a client end after all of them") func ofChanges() async {
    let subscription = client.subscribe { _ in block() }
    var changes = client.storeChanges().makeAsyncIterator()
    await shutDown {
      _ = store("a")
    } second: {
      _ = store("b")
    }
    #expect(await changes.next()?.storesAdded.map(\.path) == [["a"]])
    #expect(await changes.next()?.storesAdded.map(\.path) == [["b"]])
    #expect(await changes.next() == nil)
    subscription.cancel()
  }

  @Test("The activities of a client end with the last one") func ofActivities() async {
    let stores = [store("a"), store("b")]
    // Before the other stream: its closure keeps the thread that delivers.
    var blocking = client.activities
      .map { activity in
        if activity.queries.failed > 0 { block() }
        return activity
      }.makeAsyncIterator()
    var activities = client.activities.makeAsyncIterator()
    #expect(await blocking.next() != nil)
    #expect(await activities.next() != nil)
    await shutDown {
      stores[0].setResult(to: .failure(Refused()))
    } second: {
      stores[1].setResult(to: .failure(Refused()))
    }
    var last: OperationActivity?
    while let activity = await activities.next() { last = activity }
    #expect(last?.queries.failed == 2)
  }

  @Test("The calls of an outbox end with the last ones") func ofOutbox() async throws {
    let storage = MemoryStorage()
    try await interruptCalls(["one", "two"], in: storage)
    let client = outboxProgram(storage)
    let outbox = client.outbox
    try await outbox.load()
    let ids = outbox.calls.map(\.id)
    // Before the other stream: its closure keeps the thread that delivers.
    var blocking = outbox.values
      .map { calls in
        if calls.count == 1 { block() }
        return calls
      }.makeAsyncIterator()
    var values = outbox.values.makeAsyncIterator()
    #expect(await blocking.next()?.count == 2)
    #expect(await values.next()?.count == 2)
    await shutDown(client) {
      outbox.discard(ids[0])
    } second: {
      outbox.discard(ids[1])
    }
    var last: [OutboxCall]?
    while let calls = await values.next() { last = calls }
    #expect(last == [])
  }

  @Test("A chain ends while an earlier request has no value") func ofChain() async {
    let first = store("a")
    let chain = first.chain { OpenQuery(script: Script(), path: ["b", $0]) }
    var values = chain.makeAsyncIterator()
    var longer = chain.chain { OpenQuery(script: Script(), path: ["c", $0]) }.makeAsyncIterator()
    await client.shutdown(within: .zero)
    #expect(await values.next() == .some(nil))
    #expect(await values.next() == nil)
    #expect(await longer.next() == .some(nil))
    #expect(await longer.next() == nil)
  }

  @Test("A reader of the changes does not keep the client alive") func lifetime() {
    weak var released: OperationClient?
    var client: OperationClient? = OperationClient()
    released = client
    let changes = client?.storeChanges().makeAsyncIterator()
    client = nil
    #expect(released == nil)
    withExtendedLifetime(changes) {}
  }

  @Test("A stream that begins in a delivery after a shutdown has the state, and ends")
  func afterShutdown() async {
    let store = store("a")
    store.currentValue = 7
    await client.shutdown(within: .zero)
    // The second subscription is made while the store delivers to the first one.
    var values = store.values.flatMapLatest { _ in store.values }.makeAsyncIterator()
    #expect(await values.next() == 7)
    #expect(await values.next() == nil)
  }
}
