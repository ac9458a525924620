import Testing

@testable import inspect

@Suite struct ModelTests {
  @Test("The first two messages fill the model") func snapshot() throws {
    let model = try Blog.model()
    #expect(model.connection == .connected)
    #expect(model.hello?.program == "posts" && model.hello?.canGoOffline == true)
    #expect(model.stores.count == 6)
    #expect(model.counts.hits == 120 && model.counts.retries == 4)
    #expect(model.stores[4]?.status == .failure)
    #expect(model.stores[4]?.error == "the server answered with status 503")
    #expect(model.stores[6]?.links.reads == [2])
    #expect(model.stores[3]?.lastResult == nil && model.stores[3]?.numbers.leases == 2)
  }

  @Test("A change replaces a store, and a removal removes it with its runs") func changes() throws {
    var model = try Blog.model()
    model.receive(try Blog.message(Blog.changes(events: Blog.retriedRun, missed: 7)))
    #expect(model.timelines[4]?.runs.count == 1 && model.missed == 7)
    let version = model.version
    model.receive(
      try Blog.message(
        Blog.changes(stores: [Blog.store(1, ["posts"], "PostsQuery", status: "loading")])))
    #expect(model.stores[1]?.status == .loading && model.version > version)
    model.receive(try Blog.message(Blog.changes(removed: [4], missed: 1, isOffline: true)))
    #expect(model.stores[4] == nil && model.timelines[4] == nil)
    #expect(model.missed == 8 && model.isOffline)
    model.receive(try Blog.message(Blog.changes(events: [Blog.event(4, "hit")])))
    #expect(model.timelines[4] == nil)
  }

  @Test("Unknown fields, unknown messages and missing fields are ignored") func tolerance() throws {
    #expect(try Blog.message(#"{"type":"later","x":1}"#) == .unknown(type: "later"))
    let line = #"{"type":"changes","time":1,"new":[],"stores":[{"id":1,"path":["a"],"x":null}]}"#
    guard case .changes(let changes) = try Blog.message(line) else {
      Issue.record("not changes")
      return
    }
    #expect(changes.stores.first?.status == .idle && changes.stores.first?.kind == "other")
    #expect(throws: (any Error).self) { try Blog.message("[1]") }
    #expect(throws: (any Error).self) { try Blog.message("{") }
  }

  @Test("The reason of a goodbye is kept when the connection ends") func goodbye() throws {
    var model = try Blog.model()
    model.receive(try Blog.message(#"{"type":"bye","reason":"The client has ended."}"#))
    model.end(reason: "lost")
    #expect(model.connection == .ended(reason: "The client has ended."))
    model.reconnect()
    #expect(model == InspectorModel())
  }

  @Test("Commands are lines of the protocol") func commands() {
    #expect(
      InspectorCommand.watch(store: 3).line(id: 7) == #"{"id":7,"command":"watch","store":3}"#)
    #expect(InspectorCommand.unwatch.line(id: 8) == #"{"id":8,"command":"unwatch"}"#)
    #expect(
      InspectorCommand.perform(.invalidate, store: 1).line(id: 9)
        == #"{"id":9,"command":"invalidate","store":1}"#)
    #expect(
      InspectorCommand.offline(true).line(id: 1) == #"{"id":1,"command":"offline","value":true}"#)
  }

  @Test("A run has the phases, attempts and joins of its events") func timeline() throws {
    var model = try Blog.model()
    model.receive(try Blog.message(Blog.changes(events: Blog.retriedRun)))
    let run = try #require(model.timelines[4]?.runs.first)
    #expect(run.number == 3 && run.attempts == 2 && run.joins == 1)
    #expect(run.phases.map(\.kind) == [.working, .waiting, .working])
    #expect(run.phases.map { $0.begin - Blog.now } == [-4, -3, -2])
    #expect(run.outcome == "failure" && run.duration(now: Blog.now) == 3)
    #expect(run.notes() == "invalidation · 2 attempts · 1 join · status 503")
  }

  @Test("An event without a run belongs to the last one, and a late attempt begins one")
  func unnumbered() {
    var timeline = Timeline()
    func apply(_ kind: String, run: Int? = nil, at time: Double, attempt: Int? = nil) {
      timeline.apply(InspectorEvent(store: 1, time: time, kind: kind, run: run, attempt: attempt))
    }
    apply("runEnded", run: 1, at: 0)
    #expect(timeline.runs.isEmpty)
    apply("attempt", run: 2, at: 1, attempt: 1)
    apply("paused", at: 2)
    apply("hit", at: 2)
    #expect(timeline.runs.map(\.number) == [2] && timeline.hits == 1)
    #expect(timeline.runs[0].attempts == 2)
    #expect(timeline.runs[0].phases.map(\.kind) == [.working, .paused])
    for number in 3..<100 { apply("runStarted", run: number, at: Double(number)) }
    #expect(timeline.runs.count == Timeline.limit && timeline.runs.last?.number == 99)
  }

  @Test("Lines are found in any pieces, and a line over the limit is reported") func lines() {
    var buffer = LineBuffer(limit: 10)
    var lines: [String] = []
    for byte in "ab\n\ncde\nf".utf8 {
      buffer.append([byte])
      while let line = buffer.next() { lines.append(String(decoding: line, as: UTF8.self)) }
    }
    #expect(lines == ["ab", "", "cde"])
    buffer.append(Array("ghi\njk".utf8))
    #expect(buffer.next().map { String(decoding: $0, as: UTF8.self) } == "fghi")
    #expect(buffer.next() == nil && !buffer.isOverLimit)
    buffer.append(Array("0123456789".utf8))
    #expect(buffer.next() == nil && buffer.isOverLimit)
  }

  @Test("A socket's name has the program, its process and a number") func socketNames() {
    let name = SocketName("my-app-12-1.sock")
    #expect(name?.program == "my-app" && name?.pid == 12)
    for other in [
      "posts.sock", "posts-1.sock", "posts-a-1.sock", "posts-1-1.txt", "posts-1-b.sock",
    ] {
      #expect(SocketName(other) == nil)
    }
  }
}
