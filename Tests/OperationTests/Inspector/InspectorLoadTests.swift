import Foundation
import Testing

@testable import Operation

/// Peers that are slow, many, or send invalid lines.
@Suite("The inspector under load", .timeLimit(.minutes(5))) struct InspectorLoadTests {
  private let directory = SocketDirectory()
  // Under a sanitizer a test can last longer than the default retention.
  private let client = OperationClient(retention: .forever)
  private let inspector: OperationInspector

  init() throws { inspector = try client.serveInspector(at: directory.socket) }

  private func store(_ number: Int) -> OperationStore<QueryState<Int, any Error>> {
    client.store(for: Query<Int, any Error>(path: ["stores", number]) { _ in number })
  }

  @Test(
    "A peer that does not read gets the newest states and a count of the others, and delays none")
  func stuckPeer() async throws {
    // More than fits into the buffers of a socket.
    let stores = (0..<2_000).map(store)
    let stuck = try InspectingPeer(at: inspector.path, reads: false)
    let quick = try InspectingPeer(at: inspector.path)
    _ = try await quick.line("snapshot")
    for number in 1...4 {
      stores[7].currentValue = number
      try await quick.store("stores", "7") { $0.value == "\(number)" || $0.valueUpdates > number }
      if number == 2 { client.clearStore(with: ["stores", 8]) }
    }
    for _ in 0..<1_000 { try await stores[9].fetch() }
    try await quick.store("stores", "9") { $0.valueUpdates == 1_000 }
    stuck.read()
    try await stuck.store("stores", "9") { $0.valueUpdates == 1_000 }
    let changes = stuck.lines.all.compactMap { $0 }.filter { $0.type == "changes" }
    let seen = changes.flatMap { $0.stores ?? [] }
    #expect(changes.flatMap { $0.removed ?? [] }.count == 1)
    #expect(seen.count { $0.path == ["stores", "7"] } == 1)
    #expect(seen.last { $0.path == ["stores", "7"] }?.value == "4")
    // 4 writes and 1,000 fetches, three events of each fetch, and the event of the removal.
    let results = seen.count { ["7", "9"].contains($0.path[1]) }
    let events = changes.reduce(0) { $0 + ($1.events?.count ?? 0) }
    let missed = changes.reduce(0) { $0 + ($1.missed ?? 0) }
    #expect(results + events + missed == 1_004 + 3_001)
    #expect(events <= 2_000)
    #expect(changes.last?.counts?["runs"] == 1_000)
  }

  private struct Slow: CustomDebugStringConvertible, Sendable {
    let latch: ThreadLatch
    let began: Latch

    var debugDescription: String {
      began.open()
      latch.wait()
      return "slow"
    }
  }

  @Test("A slow description delays only the inspector") func slowDescription()
    async throws
  {
    let value = Slow(latch: ThreadLatch(), began: Latch())
    let slow = client.store(for: Query<Slow, any Error>(path: ["slow"]) { _ in value })
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    slow.currentValue = value
    await value.began.wait()
    for _ in 0..<100 { try await store(1).fetch() }
    try await slow.fetch()
    inspector.cancel()
    #expect(SocketDirectory.mode(of: inspector.path) == nil)
    for _ in 0..<10 { value.latch.open() }
    #expect(await peer.end() != nil)
  }

  @Test("All of many changes arrive in messages of limited size") func manyStores() async throws {
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    for number in 0..<2_000 { store(number).currentValue = number }
    for number in 0..<2_000 where number.isMultiple(of: 100) {
      try await peer.store("stores", "\(number)") { $0.value == "\(number)" }
    }
    let sizes = peer.lines.all.compactMap { $0?.type == "changes" ? $0?.stores?.count : nil }
    #expect(sizes.allSatisfy { $0 <= 500 })
  }

  @Test("A line in several packets is one command, and several lines in one packet are several")
  func halfLines() async throws {
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    for part in [#"{"id":1,"#, #""command":"unw"#, #"atch"}"#, "\n\n{\"id\":2,"] { peer.send(part) }
    #expect(try await peer.line { $0.id == 1 }.ok == true)
    peer.send("\"command\":\"unwatch\"}\n{\"id\":3,\"command\":\"unwatch\"}\n")
    #expect(try await peer.line { $0.id == 3 }.ok == true)
    #expect(peer.lines.all.compactMap { $0?.id } == [1, 2, 3])
  }

  @Test(
    "An invalid command gets a reply with an error, and the connection continues",
    arguments: [
      (#"{"id":7,"command":"explode"}"#, 7), (#"{"id":7}"#, 7), (#"{"id":7,"command":1}"#, 7),
      ("explode", 0), ("[1]", 0), ("\u{fffd}\0", 0), (#"{"command":"watch","store":1e99}"#, 0),
      (#"{"id":7,"command":"watch","store":99}"#, 7), (#"{"id":7,"command":"reset"}"#, 7),
      (#"{"id":7,"command":"offline"}"#, 7), (String(repeating: "[", count: 100_000), 0),
    ])
  func badCommands(line: String, id: Int) async throws {
    let peer = try InspectingPeer(at: inspector.path)
    peer.send(line + "\n")
    let reply = try await peer.line("reply")
    #expect(reply.id == id && reply.ok == false && reply.error?.isEmpty == false)
    #expect(try await peer.command(8, #""command":"unwatch""#).ok == true)
  }

  @Test("A line without an end ends the connection, and others continue") func endlessLine()
    async throws
  {
    let other = try InspectingPeer(at: inspector.path)
    _ = try await other.line("snapshot")
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("snapshot")
    let megabyte = String(repeating: "a", count: 1 << 20)
    let wasTaken = (0..<10).allSatisfy { _ in peer.send(megabyte) }
    #expect(!wasTaken)
    #expect(await peer.end() == "A line has more than 1048576 bytes.")
    #expect(try await other.command(1, #""command":"unwatch""#).ok == true)
  }

  @Test("The inspector reads no more commands from a peer that reads no replies")
  func unreadReplies() async throws {
    let text = client.store(for: Query<String, any Error>(path: ["text"]) { _ in "" })
    text.currentValue = String(repeating: ".", count: 10_000)
    let other = try InspectingPeer(at: inspector.path)
    let id = try await other.store("text").id
    let peer = try InspectingPeer(at: inspector.path, reads: false)
    let padding = String(repeating: ".", count: 1_000)
    let command = #"{"id":1,"command":"watch","store":\#(id),"padding":"\#(padding)"}"# + "\n"
    let sent = Monitor(0)
    Thread.detachNewThread {
      for _ in 0..<2_000 where peer.send(command) { sent.update { $0 += 1 } }
    }
    await sent.wait { $0 >= 100 }
    for id in 1...50 { _ = try await other.command(id, #""command":"unwatch""#) }
    // Two megabytes do not fit into the buffers of a socket.
    #expect(sent.value < 2_000)
    peer.read()
    await peer.lines.wait { $0.count { $0?.type == "detail" } == 2_000 }
  }

  private struct Counted: CustomDebugStringConvertible, Sendable {
    let count: Monitor<Int>

    var debugDescription: String {
      count.update { $0 += 1 }
      return String(repeating: ".", count: 10_000)
    }
  }

  @Test("Each command of one packet is performed when the peer has taken the replies before it")
  func manyCommands() async throws {
    let count = Monitor(0)
    let store = client.store(
      for: Query<Counted, any Error>(path: ["counted"]) { _ in Counted(count: count) })
    store.currentValue = Counted(count: count)
    let other = try InspectingPeer(at: inspector.path)
    let id = try await other.store("counted").id
    let peer = try InspectingPeer(at: inspector.path, reads: false)
    let command = #"{"command":"watch","store":\#(id)}"# + "\n"
    peer.send(String(repeating: command, count: 1_000))
    for id in 1...250 { _ = try await other.command(id, #""command":"unwatch""#) }
    // Ten megabytes do not fit into the buffers of a socket.
    #expect(count.value < 200)
    peer.read()
    await peer.lines.wait { $0.count { $0?.type == "detail" } == 1_000 }
  }

  @Test("A place is free for a peer that connects after another one has left")
  func freePlace() async throws {
    let value = Slow(latch: ThreadLatch(), began: Latch())
    let slow = client.store(for: Query<Slow, any Error>(path: ["slow"]) { _ in value })
    var peers: [InspectingPeer] = []
    for _ in 0..<16 {
      peers.append(try InspectingPeer(at: inspector.path))
      _ = try await peers.last?.line("snapshot")
    }
    slow.currentValue = value
    await value.began.wait()
    // The inspector finds both at once.
    peers.removeLast().hangUp()
    let late = try InspectingPeer(at: inspector.path)
    for _ in 0..<100 { value.latch.open() }
    await late.lines.wait { !$0.isEmpty }
    #expect(late.lines.all[0]?.type == "hello")
  }

  @Test("Sixteen of a thousand connections are served, and a free place is used again")
  func manyPeers() async throws {
    var peers: [InspectingPeer] = []
    for _ in 0..<16 {
      peers.append(try InspectingPeer(at: inspector.path))
      _ = try await peers.last?.line("snapshot")
    }
    for _ in 0..<41 {
      let refused = try (0..<24).map { _ in try InspectingPeer(at: inspector.path) }
      for peer in refused {
        #expect(
          await peer.end() == "The inspector has 16 connections, and accepts no more.")
      }
    }
    for peer in peers { #expect(try await peer.command(1, #""command":"unwatch""#).ok == true) }
    peers.removeLast().hangUp()
    while true {
      let late = try InspectingPeer(at: inspector.path)
      await late.lines.wait { !$0.isEmpty }
      if late.lines.all[0]?.type == "hello" { break }
    }
  }
}
