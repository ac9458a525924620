import Foundation
import TestSupport
import Testing

@testable import Operation

/// The stores of a client by their numbers, without a socket.
@Suite("The catalog of an inspector") struct InspectorCatalogTests {
  /// A catalog of a client, and a reader of the changes of the client.
  private struct Reading {
    let client: OperationClient
    let changes: (reader: OperationTaskID, subscription: OperationSubscription)
    var catalog = InspectorCatalog(describer: InspectorDescriber(limit: 10, redacting: nil))

    init(_ client: OperationClient) {
      self.client = client
      changes = client.hub.events.collectChanges()
    }

    mutating func update() -> InspectorUpdate {
      catalog.update(with: client.hub.events.changes.take(changes.reader), from: client)
    }
  }

  @Test("The events of a store that is removed before it has a number count as missed")
  func eventsWithoutNumber() {
    let client = OperationClient()
    var reading = Reading(client)
    _ = client.store(for: Query<Int, any Error>(path: ["short"]) { _ in 1 })
    client.clearStores()
    let update = reading.update()
    #expect(update.events.isEmpty && update.missed == 2)
  }

  @Test(
    "With two requests on one path, the events of one continue when the other one is removed",
    arguments: [(1, 2), (2, 1)])
  func clash(removed: Int, left: Int) async throws {
    try await OperationIssue.withHandler({ _ in }) { () async throws -> Void in
      let client = OperationClient()
      _ = client.store(for: Query<Int, any Error>(path: ["path"]) { _ in 1 })
      _ = client.store(for: Query<String, any Error>(path: ["path"]) { _ in "1" })
      var reading = Reading(client)
      #expect(reading.catalog.add(storesOf: client) == [1, 2])
      let store = try #require(reading.catalog.store(removed, in: client))
      client.remove([OpaqueOperationStore(store)])
      #expect(reading.update().removed == [removed])
      #expect(reading.update().events.isEmpty)
      _ = try await reading.catalog.store(left, in: client)?.erasedRun(using: nil)
      #expect(reading.update().events.last { $0.kind == "runEnded" }?.store == left)
    }
  }

  @Test("The events over the limit of the feed count as missed") func droppedEvents() {
    let client = OperationClient()
    var reading = Reading(client)
    for number in 0..<1_100 {
      _ = client.store(for: Query<Int, any Error>(path: [number]) { _ in 1 })
    }
    let update = reading.update()
    #expect(update.events.count == 1_000 && update.missed == 100)
  }

  @Test("Each fresh value is checked in turn, and one that is stale no more")
  func freshness() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    for number in 0..<3 {
      let query = Query<Int, any Error>(path: [number]) { _ in 1 }
      try await client.store(for: query.stale(after: .seconds(60))).fetch()
    }
    var catalog = InspectorCatalog(describer: InspectorDescriber(limit: 10, redacting: nil))
    let ids = catalog.add(storesOf: client)
    for id in ids { _ = catalog.describe(id, in: client) }
    #expect(catalog.checkFreshness(atMost: 3, in: client).isEmpty)
    await clock.advance(by: .seconds(60))
    let found = (0..<3).flatMap { _ in catalog.checkFreshness(atMost: 1, in: client) }
    #expect(found.sorted() == ids)
    _ = catalog.update(with: ChangeFeed.Changes(), from: client)
    for id in ids { _ = catalog.describe(id, in: client) }
    #expect(catalog.checkFreshness(atMost: 3, in: client).isEmpty)
    let repeated = catalog.update(with: ChangeFeed.Changes(), from: client).changed
    #expect(repeated.isEmpty, "what a check has found is not found again")
  }

  private struct Refusal: Error {}

  @Test("Each wait for a retry is noted once, also when no state between two was described")
  func waits() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let remote = Remote<Int>()
    let query = remote.query().retry(limit: 2).backoff(.constant(.seconds(5)))
    let store = client.store(for: query)
    var reading = Reading(client)
    func noted() -> [Int?] {
      _ = reading.catalog.describe(1, in: client)
      return reading.update().events.filter { $0.kind == "waiting" }.map(\.attempt)
    }
    let run = Task { try await store.fetch() }
    for call in 0..<2 {
      await remote.wait(forCalls: call + 1)
      remote.fail(Refusal(), call: call)
      await clock.sleepers(atLeast: 1)
      if call == 0 { _ = reading.catalog.add(storesOf: client) }
      #expect(noted() == [call + 1])
      #expect(noted().isEmpty && noted().isEmpty)
      await clock.advance(by: .seconds(5))
    }
    await remote.wait(forCalls: 3)
    remote.answer(1, to: 2)
    #expect(try await run.value == 1)
    #expect(noted().isEmpty)
  }

  @Test("A pause is noted once, and again when it begins again") func pauses() async throws {
    let network = ManualNetworkObserver()
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, networkObserver: network), clock: ManualClock())
    network.set(.disconnected)
    let query = Query<Int, any Error>(path: ["paused"]) { _ in 1 }
    let store = client.store(for: query.networkMode(.online))
    var reading = Reading(client)
    #expect(reading.catalog.add(storesOf: client) == [1])
    func pauses() -> Int {
      _ = reading.catalog.describe(1, in: client)
      return reading.update().events.count { $0.kind == "paused" }
    }
    for _ in 0..<2 {
      let run = Task { try await store.fetch() }
      #expect(await eventually { store.status.isPaused })
      #expect(pauses() == 1 && pauses() == 0 && pauses() == 0)
      store.cancel()
      _ = await run.result
      #expect(pauses() == 0)
    }
  }

  @Test("A store is described with its failures, its edits and its place in a queue")
  func facts() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let describer = InspectorDescriber(limit: 100, redacting: nil)
    let failing = Query<[Int], any Error>(path: ["list"]) { _ in throw Refusal() }
    let list = client.store(for: failing)
    await #expect(throws: Refusal.self) { try await list.fetch() }
    let failed = list.inspect(1, by: describer)
    #expect(
      failed.resultCount == 1 && failed.facts.failed == client.clock.now().timeIntervalSince1970)
    let edits = await list.optimistically {
      $0 = [1]
    } while: {
      list.inspect(1, by: describer).use.edits
    }
    #expect(failed.use.edits == 0 && edits == 1)
    list.currentValue = [1, 2]
    var detailed = list.inspect(1, by: describer)
    list.addDetail(to: &detailed, by: describer)
    #expect(detailed.detail?.pages == nil)
    let remote = Remote<Int>()
    let stores = ["first", "second"].map { client.store(for: remote.query([$0]).serialized(in: 1)) }
    let first = Task { try await stores[0].fetch() }
    await remote.wait(forCalls: 1)
    let second = Task { try await stores[1].fetch() }
    #expect(await eventually { stores[1].inspect(1, by: describer).use.queued == 1 })
    #expect(stores[0].inspect(1, by: describer).use.queued == 0)
    remote.answer(1)
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    #expect(try await [first.value, second.value] == [1, 2])
  }

  @Test("A value that was found to be stale for one peer has changed for the others")
  func foundStale() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = Query<Int, any Error>(path: ["aging"]) { _ in 1 }
    try await client.store(for: query.stale(after: .seconds(60))).fetch()
    var reading = Reading(client)
    let ids = reading.catalog.add(storesOf: client)
    _ = reading.catalog.describe(ids[0], in: client)
    #expect(reading.update().changed.isEmpty)
    await clock.advance(by: .seconds(60))
    #expect(reading.catalog.describe(ids[0], in: client)?.facts.isStale == true)
    #expect(reading.update().changed == ids)
    _ = reading.catalog.describe(ids[0], in: client)
    #expect(reading.update().changed.isEmpty)
  }

  @Test("A store whose run gets its turn has changed") func turn() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let remote = Remote<Int>()
    let stores = ["first", "second"].map { client.store(for: remote.query([$0]).serialized(in: 1)) }
    var reading = Reading(client)
    let ids = reading.catalog.add(storesOf: client)
    let first = Task { try await stores[0].fetch() }
    await remote.wait(forCalls: 1)
    let second = Task { try await stores[1].fetch() }
    let describer = InspectorDescriber(limit: 100, redacting: nil)
    #expect(await eventually { stores[1].inspect(1, by: describer).use.queued == 1 })
    let id = try #require(ids.first { reading.catalog.store($0, in: client)?.path == ["second"] })
    _ = reading.update()
    remote.answer(1)
    await remote.wait(forCalls: 2)
    #expect(reading.update().changed.contains(id))
    #expect(reading.catalog.describe(id, in: client)?.use.queued == 0)
    remote.answer(2, to: 1)
    #expect(try await [first.value, second.value] == [1, 2])
  }

  @Test("A store that has read another one has changed when that one gets a new number")
  func newNumber() async throws {
    let clock = ManualClock()
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(5)))
    let read = Query<Int, any Error>(path: ["read"]) { _ in 1 }
    let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(read) }
    let store = client.store(for: reader)
    let subscription = store.subscribe { _ in }
    try await store.fetch()
    let evicted = client.store(for: read)
    var reading = Reading(client)
    let ids = reading.catalog.add(storesOf: client)
    let id = try #require(ids.first { reading.catalog.store($0, in: client)?.path == ["reader"] })
    for id in ids { _ = reading.catalog.describe(id, in: client) }
    await clock.advance(by: .seconds(6))
    #expect(reading.update().removed == ids.filter { $0 != id })
    #expect(client.store(for: read) === evicted)
    let new = reading.update().changed
    #expect(new == [3])
    _ = reading.catalog.describe(3, in: client)
    #expect(reading.update().changed == [id])
    #expect(reading.catalog.describe(id, in: client)?.use.reads == [3])
    subscription.cancel()
  }
}
