import Foundation
import Testing

@testable import Operation

/// The lines that a peer of an inspector receives.
@Suite("The inspector", .timeLimit(.minutes(5))) struct InspectorTests {
  private let directory = SocketDirectory()
  private let clock = ManualClock()
  private let network = ManualNetworkObserver()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, networkObserver: network), clock: clock)
  }

  private struct Refusal: Error {}

  private func number(_ path: OperationPath, _ number: Int = 1) -> Query<Int, any Error> {
    Query(path: path) { _ in number }
  }

  private func inspector(
    readOnly: Bool = false, valueLimit: Int = 1_000,
    redacting: (@Sendable (OperationPath, String) -> String?)? = nil
  ) throws -> OperationInspector {
    try client.serveInspector(
      at: directory.socket, named: "test", readOnly: readOnly, valueLimit: valueLimit,
      redacting: redacting)
  }

  @Test("A peer gets a greeting, and then all stores") func greeting() async throws {
    let inspector = try inspector()
    let store = client.store(for: number(["numbers", 3]).stale(after: .seconds(60)))
    await clock.advance(by: .seconds(10))
    try await store.fetch()
    let peer = try InspectingPeer(at: inspector.path)
    let hello = try await peer.line("hello")
    #expect(hello.protocol == 1 && hello.pid == Int(getpid()) && hello.name == "test")
    #expect(hello.program?.isEmpty == false)
    #expect(hello.readOnly == false && hello.canGoOffline == true && hello.isOffline == false)
    #expect(hello.now == clock.now().timeIntervalSince1970)
    #expect(hello.started == clock.now().timeIntervalSince1970 - 10)
    let snapshot = try await peer.line("snapshot")
    #expect(snapshot.counts?["runs"] == 0 && snapshot.stores?.count == 1)
    let seen = try #require(snapshot.stores?.first)
    #expect(seen.path == ["numbers", "3"] && seen.kind == "query" && seen.status == "success")
    #expect(seen.request.contains("Query<") && seen.value == "1" && seen.error == nil)
    #expect(!seen.isStale && seen.updated == hello.now && seen.valueUpdates == 1)
    #expect(seen.subscribers == 0 && seen.leases == 0 && seen.runs == 0)
    withExtendedLifetime(inspector) {}
  }

  @Test("Without a peer no change is collected, and with a peer no store is observed")
  func collecting() async throws {
    let inspector = try inspector()
    let store = client.store(for: number(["number"]))
    #expect(!client.hub.events.isObserved && !client.hub.events.hasReader)
    let peer = try InspectingPeer(at: inspector.path)
    try await peer.store("number")
    #expect(client.hub.events.isObserved && client.hub.events.hasReader)
    #expect(store.subscriberCount == 0 && !store.isLoading && store.valueUpdateCount == 0)
    peer.hangUp()
    #expect(await eventually { !client.hub.events.isObserved && !client.hub.events.hasReader })
    // The second peer receives changes that were made between both.
    store.currentValue = 5
    let second = try InspectingPeer(at: inspector.path)
    try await second.store("number") { $0.value == "5" }
    store.currentValue = 6
    try await second.store("number") { $0.value == "6" }
    withExtendedLifetime(inspector) {}
  }

  @Test("A run sends its events, its counts and the states of its store") func runs() async throws {
    let inspector = try inspector()
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    let remote = Remote<Int>()
    let store = client.store(for: remote.query(["remote"]))
    let run = Task { try await store.fetch() }
    let loading = try await peer.store("remote") { $0.status == "loading" }
    #expect(loading.runs == 1 && loading.leases == 1)
    await remote.wait(forCalls: 1)
    remote.fail(Refusal())
    _ = await run.result
    let ended = try await peer.event { $0.kind == "runEnded" }
    #expect(ended.outcome == "failure" && ended.message?.contains("Refusal") == true)
    #expect(ended.store == loading.id && ended.cause == "fetch" && ended.run != nil)
    #expect(try await peer.event { $0.kind == "added" }.store == loading.id)
    #expect(try await peer.event { $0.kind == "runStarted" }.run == ended.run)
    #expect(try await peer.event { $0.kind == "attempt" }.attempt == 0)
    let failed = try await peer.store("remote") { $0.status == "failure" }
    #expect(failed.errorUpdates == 1 && failed.error?.contains("Refusal") == true)
    let counts = try await peer.line { $0.type == "changes" && $0.counts?["failures"] == 1 }.counts
    #expect(counts?["runs"] == 1 && counts?["hits"] == 0)
    withExtendedLifetime(inspector) {}
  }

  @Test("A removed store is reported by its number") func removal() async throws {
    let inspector = try inspector()
    _ = client.store(for: number(["short"]))
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("short").id
    client.clearStores()
    #expect(try await peer.event { $0.kind == "removed" }.store == id)
    _ = client.store(for: number(["short"]))
    #expect(try await peer.line { $0.removed?.isEmpty == false }.removed == [id])
    try await peer.store("short") { $0.id != id }
    withExtendedLifetime(inspector) {}
  }

  @Test("A value that becomes stale is reported without a change of its store")
  func staleness() async throws {
    let inspector = try inspector()
    try await client.store(for: number(["number"]).stale(after: .seconds(60))).fetch()
    let peer = try InspectingPeer(at: inspector.path)
    #expect(try await peer.store("number").isStale == false)
    await clock.advance(by: .seconds(60))
    try await peer.store("number") { $0.isStale }
    withExtendedLifetime(inspector) {}
  }

  @Test("Dependencies are numbers of stores, on both sides, and their changes are reported")
  func dependencies() async throws {
    let inspector = try inspector()
    let source = number(["source"]).neverStale()
    let read = client.store(for: source)
    try await read.fetch()
    let query = Query<Int, any Error>(path: ["reader"]) { context in
      context.fixtureNumber == 1 ? try await context.ensure(source) : 2
    }
    let reader = client.store(for: query)
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("source") { $0.readBy.isEmpty }.id
    try await reader.fetch(using: .number(1))
    let reading = try await peer.store("reader") { !$0.reads.isEmpty }
    #expect(reading.reads == [id])
    #expect(try await peer.store("source") { !$0.readBy.isEmpty }.readBy == [reading.id])
    peer.lines.clear()
    try await reader.fetch()
    try await peer.store("source") { $0.readBy.isEmpty }
    withExtendedLifetime(inspector) {}
  }

  @Test("Waits and pauses are events") func waits() async throws {
    let inspector = try inspector()
    let query = Query<Int, any Error>(path: ["retry"]) { context in
      if context.operationRetryIndex == 0 { throw Refusal() }
      return 1
    }
    let retrying = client.store(
      for: query.retry(limit: 1).backoff(.constant(.seconds(5))))
    let paused = client.store(for: number(["paused"]).networkMode(.online))
    network.set(.disconnected)
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    let runs = [Task { try await retrying.fetch() }, Task { try await paused.fetch() }]
    #expect(try await peer.event { $0.kind == "waiting" }.message == "next attempt in 5000 ms")
    let pause = try await peer.event { $0.kind == "paused" }
    #expect(try await peer.store("paused") { $0.status == "paused" }.id == pause.store)
    network.set(.connected)
    await clock.advance(by: .seconds(5))
    for run in runs { _ = try await run.value }
    withExtendedLifetime(inspector) {}
  }

  @Test("A wait with a clock without a finite date is described")
  func waitWithoutDate() async throws {
    let clock = ManualClock(now: Date(timeIntervalSinceReferenceDate: .nan))
    let client = OperationClient(defaults: OperationDefaults(retryLimit: 0), clock: clock)
    let query = Query<Int, any Error>(path: ["retry"]) { _ in throw Refusal() }
    let store = client.store(for: query.retry(limit: 1).backoff(.constant(.seconds(5))))
    let run = Task { try await store.fetch() }
    await clock.sleepers(atLeast: 1)
    var catalog = InspectorCatalog(describer: InspectorDescriber(limit: 10, redacting: nil))
    let ids = catalog.add(storesOf: client)
    #expect(ids.compactMap { catalog.describe($0, in: client) }.count == 1)
    store.cancel()
    _ = await run.result
  }

  @Test("A peer that connects is shown no evicted store that only the program still refers to")
  func evictedStore() {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let stores = ["evicted", "used"].map { client.store(for: number([$0])) }
    let subscription = stores[1].subscribe { _ in }
    client.evictUnused()
    #expect(client.stores(matching: []).count == 2)
    var catalog = InspectorCatalog(describer: InspectorDescriber(limit: 10, redacting: nil))
    let ids = catalog.add(storesOf: client)
    let paths = ids.compactMap { catalog.store($0, in: client)?.path }
    #expect(paths == [["used"]])
    withExtendedLifetime((stores, subscription)) {}
  }

  @Test("The detail of a watched store follows the store") func detail() async throws {
    let inspector = try inspector(valueLimit: 300)
    let mutation = Mutation<String, String>(path: ["call"]) { arguments, _ in
      String(repeating: arguments, count: 100)
    }
    let store = client.store(for: mutation.serialized(in: "calls"))
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("call").id
    #expect(try await peer.command(1, #""command":"watch","store":\#(id)"#).ok == true)
    #expect(try await peer.line("detail").store?.calls?.isEmpty == true)
    try await store.mutate(with: "four")
    let detail = try await peer.line { $0.type == "detail" && $0.store?.status == "success" }.store
    #expect(
      detail?.calls?.first?.arguments == #""four""# && detail?.calls?.first?.status == "success")
    #expect(detail?.value.utf8.count == 300 && detail?.isTruncated == true)
    #expect(
      detail?.rules?.contains { $0.name == "limit of runs" && $0.value == "1 in its scope" } == true
    )
    #expect(try await peer.store("call") { $0.status == "success" }.value.utf8.count == 120)
    #expect(try await peer.command(2, #""command":"unwatch""#).ok == true)
    #expect(
      try await peer.command(3, #""command":"refetch","store":\#(id)"#).error
        == "A mutation cannot be fetched.")
    #expect(store.history.count == 1)
    withExtendedLifetime(inspector) {}
  }

  @Test("A redacting closure replaces descriptions of values, and is called with no lock held")
  func redaction() async throws {
    let store = client.store(for: Query<String, any Error>(path: ["secret"]) { _ in "" })
    store.currentValue = String(repeating: ".", count: 115) + "password: 1234567"
    let inspector = try inspector { [client] path, description in
      #expect(client.store(with: path)?.status.isSuccess == true)
      return path.first == OperationPath.Element("secret")
        ? description.replacing(#/password: \d+/#, with: "…") : nil
    }
    client.store(for: number(["hidden"])).currentValue = 1
    let peer = try InspectingPeer(at: inspector.path)
    #expect(try await peer.store("secret").value.hasSuffix("..…\""))
    #expect(try await peer.store("hidden").value == "hidden")
    withExtendedLifetime(inspector) {}
  }

  @Test("Commands fetch, invalidate, reset, cancel and clear a store") func commands() async throws
  {
    let inspector = try inspector()
    let remote = Remote<Int>()
    let store = client.store(for: remote.query(["remote"]).stale(after: .seconds(60)))
    store.currentValue = 7
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("remote").id
    #expect(try await peer.command(1, #""command":"refetch","store":\#(id)"#).ok == true)
    await remote.wait(forCalls: 1)
    #expect(try await peer.command(2, #""command":"cancel","store":\#(id)"#).ok == true)
    #expect(try await peer.event { $0.kind == "runEnded" }.outcome == "cancelled")
    #expect(!store.isStale)
    #expect(try await peer.command(3, #""command":"invalidate","store":\#(id)"#).ok == true)
    #expect(store.isStale && store.currentValue == 7)
    #expect(try await peer.command(4, #""command":"reset","store":\#(id)"#).ok == true)
    #expect(store.currentValue == nil)
    #expect(try await peer.command(5, #""command":"clear","store":\#(id)"#).ok == true)
    #expect(client.store(with: ["remote"]) == nil)
    #expect(
      try await peer.command(6, #""command":"reset","store":\#(id)"#).error
        == "There is no store \(id).")
    withExtendedLifetime(inspector) {}
  }

  @Test("A command sets a network observer that is set by hand") func offline() async throws {
    let inspector = try inspector()
    let peer = try InspectingPeer(at: inspector.path)
    #expect(try await peer.command(1, #""command":"offline","value":true"#).ok == true)
    #expect(network.currentStatus == .disconnected)
    _ = try await peer.line { $0.type == "changes" && $0.isOffline == true }
    #expect(
      try await peer.command(2, #""command":"offline""#).error == "The command has no value.")
    #expect(network.currentStatus == .disconnected)
    peer.lines.clear()
    #expect(try await peer.command(3, #""command":"offline","value":false"#).ok == true)
    #expect(network.currentStatus == .connected)
    _ = try await peer.line { $0.type == "changes" && $0.isOffline == false }
    let other = OperationClient()
    let second = try other.serveInspector(at: directory.socket + "2")
    let stranger = try InspectingPeer(at: second.path)
    #expect(try await stranger.line("hello").canGoOffline == false)
    #expect(try await stranger.command(1, #""command":"offline","value":true"#).ok == false)
    withExtendedLifetime((inspector, second)) {}
  }

  @Test(
    "A read-only inspector refuses commands",
    arguments: ["refetch", "invalidate", "reset", "cancel", "clear", "offline"])
  func readOnly(command: String) async throws {
    let inspector = try inspector(readOnly: true)
    let store = client.store(for: number(["number"]).neverStale())
    store.currentValue = 1
    let peer = try InspectingPeer(at: inspector.path)
    #expect(try await peer.line("hello").readOnly == true)
    let id = try await peer.store("number").id
    let reply = try await peer.command(1, #""command":"\#(command)","store":\#(id),"value":true"#)
    #expect(reply.ok == false && reply.error == "The inspector is read-only.")
    #expect(try await peer.command(2, #""command":"watch","store":\#(id)"#).ok == true)
    #expect(store.currentValue == 1 && !store.isStale && network.currentStatus == .connected)
    #expect(client.store(with: ["number"]) != nil)
    withExtendedLifetime(inspector) {}
  }

  @Test("A peer that watches a removed store gets the details of the store that it watches next")
  func watchedStoreRemoved() async throws {
    let inspector = try inspector()
    _ = client.store(for: number(["number"]))
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("number").id
    #expect(try await peer.command(1, #""command":"watch","store":\#(id)"#).ok == true)
    client.clearStores()
    _ = try await peer.line { $0.removed == [id] }
    peer.lines.clear()
    let store = client.store(for: number(["number"]))
    let second = try await peer.store("number").id
    store.currentValue = 5
    try await peer.store("number") { $0.value == "5" }
    #expect(peer.lines.all.allSatisfy { $0?.type != "detail" })
    #expect(try await peer.command(2, #""command":"watch","store":\#(second)"#).ok == true)
    #expect(try await peer.line("detail").store?.id == second)
    store.currentValue = 6
    #expect(
      try await peer.line { $0.type == "detail" && $0.store?.value == "6" }.store?.id == second)
    withExtendedLifetime(inspector) {}
  }

  @Test("A detail follows only its store, and is not sent after the end of the watch")
  func detailOfOneStore() async throws {
    let inspector = try inspector()
    let stores = ["watched", "other"].map { client.store(for: number([$0])) }
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("watched").id
    #expect(try await peer.command(1, #""command":"watch","store":\#(id)"#).ok == true)
    _ = try await peer.line("detail")
    peer.lines.clear()
    stores[1].currentValue = 5
    try await peer.store("other") { $0.value == "5" }
    #expect(try await peer.command(2, #""command":"unwatch""#).ok == true)
    stores[0].currentValue = 6
    try await peer.store("watched") { $0.value == "6" }
    // A reply to a later command comes after all that was sent before.
    #expect(try await peer.command(3, #""command":"unwatch""#).ok == true)
    #expect(peer.lines.all.allSatisfy { $0?.type != "detail" })
    withExtendedLifetime(inspector) {}
  }

  @Test("What a peer has sent before it closes the connection is performed")
  func commandsBeforeEnd() async throws {
    let inspector = try inspector()
    let store = client.store(for: number(["number"]).neverStale())
    store.currentValue = 1
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("number").id
    let nothing = String(repeating: #"{"command":"unwatch"}"# + "\n", count: 50)
    peer.send(nothing + #"{"command":"invalidate","store":\#(id)}"# + "\n")
    peer.hangUp()
    #expect(await eventually { store.isStale })
    withExtendedLifetime(inspector) {}
  }
}
