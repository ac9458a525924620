import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Operation

/// The parts of an inspector without a socket.
@Suite("The parts of an inspector") struct InspectorMachineTests {
  @Test("Bytes of any packets are split into lines, up to a limit") func lines() {
    struct Walk {
      var lines = InspectorLines(limit: 3)
      var sent: [UInt8] = []
      var received: [[UInt8]] = []
    }
    let packets: [[UInt8]] = ["", "a", "\n", "bc\n", "\nde", "f\ng\n"].map { Array($0.utf8) }
    exhaust("InspectorLines", events: packets, length: 5, from: Walk()) { walk, packet in
      walk.sent += packet
      walk.received += walk.lines.append(packet)
      var parts = walk.sent.split(separator: 10, omittingEmptySubsequences: false)
      let longest = parts.firstIndex { $0.count > 3 }
      try mustHold(walk.lines.isOverLimit == (longest != nil), "the limit is three bytes")
      parts.removeSubrange((longest ?? parts.count - 1)...)
      let expected = parts.filter { !$0.isEmpty }.map { Array($0) }
      try mustHold(walk.received == expected, "the lines before the limit are received")
      return true
    }
  }

  private enum BacklogStep { case change(Int), remove(Int), event, take }

  private struct BacklogWalk {
    var backlog = InspectorBacklog(eventLimit: 2)
    /// The result count of each store, and what the peer has.
    var counts: [Int: Int] = [:]
    var peer: [Int: Int] = [:]
    var results = 0
    var received = 0
    var events = 0

    mutating func step(_ step: BacklogStep) throws -> Bool {
      switch step {
      case .change(let id):
        counts[id, default: 0] += 1
        results += 1
        backlog.note(InspectorUpdate(changed: [id]))
      case .remove(let id):
        // A number is not used again.
        guard let count = counts.removeValue(forKey: id), peer[id] != nil || count < 3 else {
          return false
        }
        backlog.note(InspectorUpdate(removed: [id]))
      case .event:
        events += 1
        backlog.note(InspectorUpdate(events: [InspectedEvent(store: 1, time: 0, kind: "hit")]))
      case .take: try take()
      }
      return true
    }

    mutating func take() throws {
      let batch = backlog.take(storeLimit: 1)
      try mustHold(batch.changed.count <= 1 && batch.events.count <= 2, "a message is bounded")
      try mustHold(batch.events.count + batch.missed == events, "each event is sent or counted")
      events = 0
      for id in batch.removed {
        try mustHold(peer.removeValue(forKey: id) != nil, "the peer has each removed store")
      }
      for id in batch.changed {
        let count = counts[id] ?? -1
        try mustHold(count > 0, "no removed store is sent")
        let missed = backlog.noteSent(id, resultCount: count)
        let earlier = peer.updateValue(count, forKey: id)
        try mustHold(missed == earlier.map { count - $0 - 1 } ?? 0, "the missed results count")
      }
      if backlog.isEmpty {
        try mustHold(Set(peer.keys) == Set(counts.keys), "the peer has all stores")
        try mustHold(peer == counts, "the peer has the newest states")
      }
    }
  }

  @Test("A backlog has each store once with its newest state, and counts what it omits")
  func backlog() {
    let events: [BacklogStep] = [.change(1), .change(2), .remove(1), .event, .take]
    exhaust("InspectorBacklog", events: events, length: 8, from: BacklogWalk()) { walk, step in
      try walk.step(step)
    }
  }

  @Test("A backlog that is not read does not grow with stores that are added and removed")
  func shortLivedStores() {
    var backlog = InspectorBacklog()
    for id in 0..<100_000 {
      backlog.note(InspectorUpdate(changed: [id]))
      backlog.note(InspectorUpdate(removed: [id]))
    }
    #expect(backlog.isEmpty && backlog.storedCount < 100)
  }

  @Test("A feed lists a store once between two reads, and events up to a limit") func feed() throws
  {
    let client = OperationClient()
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    let feed = client.hub.events.changes
    store.currentValue = 1
    #expect(feed.take(.next()).stores.isEmpty)
    let (reader, collecting) = client.hub.events.collectChanges()
    for value in 2...4 { store.currentValue = value }
    for number in 0..<1_100 {
      _ = client.store(for: Query<Int, any Error>(path: [number]) { _ in 1 })
    }
    let changes = feed.take(reader)
    #expect(changes.stores.first === store && changes.stores.count == 1_101)
    #expect(changes.events.count == 1_000 && changes.droppedEventCount == 100)
    #expect(feed.take(reader).stores.isEmpty)
    store.currentValue = 5
    collecting.cancel()
    store.currentValue = 6
    #expect(feed.take(reader).stores.isEmpty && !client.hub.events.isObserved)
    // The store is no longer listed, so that the next reader finds it.
    let again = client.hub.events.collectChanges()
    store.currentValue = 7
    #expect(feed.take(again.reader).stores.first === store)
    withExtendedLifetime(again) {}
  }

  @Test("An earlier reader removes no change of the next one, and does not end it")
  func nextReader() {
    let client = OperationClient()
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    let (events, feed) = (client.hub.events, client.hub.events.changes)
    let first = events.collectChanges()
    store.currentValue = 1
    let second = events.collectChanges()
    store.currentValue = 2
    #expect(feed.take(first.reader).stores.isEmpty)
    #expect(feed.take(second.reader).stores.first === store)
    first.subscription.cancel()
    store.currentValue = 3
    #expect(feed.take(second.reader).stores.first === store && events.hasReader)
    second.subscription.cancel()
    #expect(!events.hasReader)
  }

  @Test("A description has no optional around it, and ends at the limit, between two scalars")
  func describing() {
    let describer = InspectorDescriber(limit: 8, redacting: nil)
    let texts: [(Any, String, Bool)] = [
      (Optional(5) as Any, "5", false), (Int?.none as Any, "nil", false),
      ([1, 2], "[1, 2]", false),
      ("abcdefgh", "\"abcdefg", true), ("abcdéé", "\"abcdé", true), ("", "\"\"", false),
      ([1.5, 22.5, 333.5], "[1.5, 22", true),
    ]
    for (value, text, isTruncated) in texts {
      let described = describer.full(value, at: [])
      #expect(described.text == text && described.isTruncated == isTruncated)
      #expect(describer.short(value, at: []) == text)
    }
  }

  private struct Counted: CustomDebugStringConvertible, Identifiable {
    static let count = Atomic(0)
    let id: Int

    var debugDescription: String {
      Self.count.wrappingAdd(1, ordering: .relaxed)
      return "\(id)"
    }
  }

  @Test("Of a long list, only the displayed elements are described") func longList() {
    let describer = InspectorDescriber(limit: 8, redacting: nil)
    let list = (0..<100_000).map { Counted(id: $0) }
    for list in [list as Any, IdentifiedArray(list)] {
      let described = describer.full(list, at: [])
      #expect(described.text == "[0, 1, 2" && described.isTruncated)
    }
    #expect(Counted.count.load(ordering: .relaxed) <= 16)
  }

  @Test("The graph returns the neighbours of a path, up to a limit") func neighbours() {
    var graph = DependencyGraph()
    for number in 0..<10 {
      let run = LaunchID(run: .next())
      _ = graph.note(run, of: ["reader", number], reads: ["source"])
      if number > 0 { graph.end(run, of: ["reader", number], isCancelled: false) }
    }
    #expect(graph.dependencies(of: ["reader", 0], limit: 3).reads == [["source"]])
    #expect(graph.dependencies(of: ["reader", 1], limit: 3).reads == [["source"]])
    #expect(graph.dependencies(of: ["source"], limit: 20).readers.count == 10)
    #expect(graph.dependencies(of: ["source"], limit: 3).readers.count == 3)
    #expect(graph.dependencies(of: ["other"], limit: 3).readers.isEmpty)
  }

  @Test("An event has the name of its occurrence, and its run, page or eviction") func events() {
    let run = OperationClientEvent.Run(id: .next(), cause: .poll)
    let describer = InspectorDescriber(limit: 100) { $1 == "2" ? "two" : nil }
    func inspect(
      _ occurrence: OperationClientEvent.Occurrence, isEviction: Bool = false
    ) -> InspectedEvent {
      var event = OperationClientEvent(
        date: Date(timeIntervalSince1970: 5), path: ["a"], kind: .pages, occurrence: occurrence)
      event.isEviction = isEviction
      return InspectedEvent(event, of: 1, describedBy: describer)
    }
    let events: [(String, OperationClientEvent.Occurrence)] = [
      ("joined", .joined(run)), ("pageBegan", .pageBegan(run, page: "2")),
      ("pageEnded", .pageEnded(run, page: "2")), ("yielded", .yielded(run)),
    ]
    for (kind, occurrence) in events {
      let event = inspect(occurrence)
      #expect(event.kind == kind && event.store == 1 && event.time == 5)
      #expect(event.run == run.id.rawValue && event.cause == "poll")
      #expect(event.message == (kind.hasPrefix("page") ? "two" : nil))
    }
    #expect(inspect(.storeRemoved, isEviction: true).message == "evicted")
    #expect(inspect(.answeredFromCache).kind == "hit")
    #expect(inspect(.storeRemoved).message == nil && inspect(.storeRemoved).run == nil)
  }

  @Test("The detail of a store has the rules that its request sets") func rules() {
    let client = OperationClient()
    let describer = InspectorDescriber(limit: 100, redacting: nil)
    func rules(_ store: some InspectableStore) -> [String: String] {
      var inspected = store.inspect(1, by: describer)
      store.addDetail(to: &inspected, by: describer)
      let rules = (inspected.detail?.rules ?? []).map { ($0.name, $0.value) }
      return Dictionary(uniqueKeysWithValues: rules)
    }
    let query = Query<Int, any Error>(path: ["query"]) { _ in 1 }.stale(after: .seconds(60))
      .retained(.forever).staleIfError(for: .seconds(90)).rerun(every: .seconds(5))
    let first = rules(client.store(for: query))
    #expect(first["stale"] == "after 60.0 seconds" && first["retained"] == "forever")
    #expect(first["stale if error"] == "up to 90.0 seconds" && first["triggers"] == "1")
    #expect(first["runs automatically"] == "yes" && first["limit of calls"] == nil)
    let pages = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, _ in paging.pageId }
    let store = client.store(
      for: pages.staleWhen { _, _ in true }.maxPages(3).deduplicated { _, _ in true }.manual())
    let second = rules(store)
    #expect(second["runs automatically"] == "no, its condition is not satisfied")
    #expect(second["stale"] == "by a predicate" && second["joins runs"] == "by a predicate")
    #expect(second["limit of pages"] == "3" && second["triggers"] == nil)
    #expect(store.inspect(1, by: describer).facts.kind == "paginated")
  }

  @Test("Runs that wait in a queue are counted, and those in flight are not") func queued() {
    var queues = SerialQueuesMachine<Int>()
    let runs = (0..<3).map { _ in TaskNode() }
    let ids = runs.map(\.id)
    let scope = SerialScope("scope", limit: 2)
    #expect(queues.waitingCount(of: ids, in: scope) == 0)
    for run in runs { queues.append(run, to: scope) }
    #expect(queues.waitingCount(of: ids, in: scope) == 1)
    #expect(queues.waitingCount(of: [ids[0]], in: scope) == 0)
    _ = queues.remove(ids[0], from: scope)
    #expect(queues.waitingCount(of: ids, in: scope) == 0)
  }

  @Test("A backlog keeps the newest events, and counts a reset as no missed result")
  func backlogCounts() {
    var backlog = InspectorBacklog(eventLimit: 2)
    let events = (1...3).map { InspectedEvent(store: $0, time: 0, kind: "hit") }
    backlog.note(InspectorUpdate(events: events))
    let batch = backlog.take(storeLimit: 1)
    #expect(batch.events.map(\.store) == [2, 3] && batch.missed == 1 && backlog.isEmpty)
    backlog.note(InspectorUpdate(missed: 5))
    #expect(!backlog.isEmpty && backlog.take(storeLimit: 1).missed == 5)
    #expect(backlog.noteSent(1, resultCount: 3) == 0 && backlog.noteSent(1, resultCount: 0) == 0)
    backlog.note(InspectorUpdate(removed: [1]))
    #expect(!backlog.isEmpty && backlog.take(storeLimit: 1).removed == [1])
  }

  @Test("A redacting closure gets the description before it is shortened, and its text is cut")
  func redactedLength() {
    let long = String(repeating: ".", count: 600)
    let describer = InspectorDescriber(limit: 1_000) { "\($1.utf8.count)" }
    #expect(describer.short(long, at: []) == "602" && describer.full(long, at: []).text == "602")
    let longer = InspectorDescriber(limit: 8) { _, _ in "123456789" }.full(1, at: [])
    #expect(longer.text == "12345678" && longer.isTruncated)
  }

  private struct Local {}

  @Test("A description has no address of a private type") func privateType() {
    let describer = InspectorDescriber(limit: 1_000, redacting: nil)
    #expect(describer.full([Local()], at: []).text.contains("Local()"))
    #expect(!describer.full([Local()], at: []).text.contains("$"))
  }
}
