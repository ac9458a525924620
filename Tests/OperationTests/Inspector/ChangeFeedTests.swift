import Testing

@testable import Operation

@Suite("Changes of a client, for a slow reader") struct ChangeFeedTests {
  @Test(
    "More events than are kept are counted, and a subscriber receives all",
    arguments: [false, true])
  func manyEvents(isSubscribed: Bool) async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: Query<Int, any Error>(path: ["store"]) { _ in 1 })
    let failing = client.store(
      for: Query<Int, any Error>(path: ["failing"]) { _ in throw Failed() })
    let (reader, subscription) = client.hub.events.collectChanges()
    let received = Counter()
    let events = isSubscribed ? client.hub.events.subscribe { _ in received.increment() } : nil
    let count = ChangeFeed.eventLimit
    for _ in 0..<count { try await store.run() }
    for _ in 0..<10 { _ = try? await failing.run() }
    let changes = client.hub.events.changes.take(reader)
    #expect(changes.counts.runs == count + 10)
    #expect(changes.counts.failures == 10)
    #expect(changes.events.count == ChangeFeed.eventLimit)
    // Of each run its start, its attempt, and its end.
    #expect(changes.droppedEventCount == 3 * (count + 10) - changes.events.count)
    if isSubscribed { #expect(received.value == 3 * (count + 10)) }
    // The reader has taken the changes, so further events are kept.
    try await store.run()
    #expect(client.hub.events.changes.take(reader).events.count == 3)
    for subscription in [subscription, events] { subscription?.cancel() }
  }

  @Test("A store that changes when the reader has left is listed for the next reader")
  func readerLeft() {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: Query<Int, any Error>(path: ["store"]) { _ in 1 })
    let feed = client.hub.events.changes
    // The thread of the change has seen a reader.
    feed.append(store)
    let reader = feed.begin()
    feed.append(store)
    #expect(feed.take(reader).stores.first === store)
  }
}
