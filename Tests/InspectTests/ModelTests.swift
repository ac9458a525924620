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

  @Test("Of two stores with one number in a snapshot, the last one counts") func duplicates() throws
  {
    let model = try Blog.model([Blog.store(1, ["a"], "Q"), Blog.store(1, ["b"], "Q")])
    #expect(model.stores.mapValues(\.name) == [1: "b"])
  }

  @Test("A greeting and changes of another version may have few fields") func fewFields() throws {
    var model = InspectorModel()
    model.receive(try Blog.message(#"{"type":"hello","program":"p","now":7}"#))
    #expect(model.hello == Hello(program: "p", pid: 0, started: 7, now: 7))
    model.receive(try Blog.message(#"{"type":"snapshot","counts":{"hits":3},"stores":[]}"#))
    model.receive(try Blog.message(#"{"type":"changes","events":[{"store":1,"kind":"hit"}]}"#))
    model.receive(try Blog.message(#"{"type":"later"}"#))
    #expect(model.counts == Counts(hits: 3) && model.connection == .connected)
    model.receive(try Blog.message(#"{"type":"bye"}"#))
    #expect(model.connection == .ended(reason: ""))
  }

  @Test("A date out of all range hides no store") func dates() throws {
    let fields = #""path":["a"],"updated":"#
    let stores = [
      #"{"id":1,\#(fields)"inf"}"#, #"{"id":2,\#(fields)"nan"}"#, #"{"id":3,"path":[]}"#,
    ]
    let line = #"{"type":"snapshot","counts":{},"stores":[\#(stores.joined(separator: ","))]}"#
    var model = try Blog.model([])
    model.receive(try Blog.message(line))
    #expect(model.stores.count == 3)
    #expect(model.stores[1]?.lastResult == 1e12 && model.stores[2]?.lastResult == nil)
  }

  @Test("A reply has the error of a command that was refused") func replies() throws {
    #expect(try Blog.message(Blog.reply(4)) == .reply(id: 4, error: nil))
    #expect(try Blog.message(Blog.reply(4, error: "no")) == .reply(id: 4, error: "no"))
    let line = #"{"type":"reply","id":4,"ok":false}"#
    #expect(try Blog.message(line) == .reply(id: 4, error: "The command failed."))
  }

  @Test("A command is described for its reply") func commandTexts() throws {
    let model = try Blog.model()
    #expect(InspectorCommand.perform(.reset, store: 4).text(in: model) == "reset posts/3")
    #expect(InspectorCommand.perform(.clear, store: 99).text(in: model) == "clear a store")
    #expect(InspectorCommand.offline(true).text(in: model) == "go offline")
    #expect(InspectorCommand.offline(false).text(in: model) == "go online")
    #expect(InspectorCommand.watch(store: 4).text(in: model) == nil)
  }

  @Test(
    "An event is described by its kind, its run and what it notes",
    arguments: [
      ("added", nil, "added"), ("removed", "evicted", "removed"), ("hit", nil, "hit"),
      ("later", "x", "later: x"), ("runStarted", nil, "run 3 started (fetch)"),
      ("attempt", nil, "run 3 attempt 1"), ("waiting", "a lock", "run 3 waits: a lock"),
      ("paused", "offline", "run 3 paused: offline"), ("yielded", nil, "run 3 yielded"),
      ("pageBegan", "2", "run 3 began a page: 2"), ("pageEnded", "2", "run 3 ended a page: 2"),
      ("joined", nil, "run 3 joined"), ("runEnded", "no", "run 3 ended: unknown outcome: no"),
    ])
  func eventTexts(_ kind: String, _ message: String?, _ text: String) {
    var event = InspectorEvent(store: 1, time: 0, kind: kind, run: 3, cause: "fetch")
    event.message = message
    #expect(event.text == text)
    event.run = nil
    event.cause = nil
    let unnumbered = text.replacing("run 3", with: "run").replacing(" (fetch)", with: "")
    #expect(event.text == unnumbered)
  }

  @Test("A run of pages counts them, and works again after a pause") func pages() {
    var run = RunRecord(
      InspectorEvent(store: 1, time: 0, kind: "runStarted", cause: "fetch"), number: 1)
    let kinds = [
      "paused", "pageBegan", "yielded", "pageEnded", "pageBegan", "yielded", "pageEnded",
    ]
    for (index, kind) in kinds.enumerated() {
      run.apply(InspectorEvent(store: 1, time: Double(index + 1), kind: kind))
    }
    #expect(run.phases.map(\.kind) == [.working, .paused, .working])
    #expect(run.phases.map(\.begin) == [0, 1, 2])
    #expect(run.notes(separator: ", ") == "fetch, 2 yields, 2 pages")
  }

  @Test("Runs without numbers are counted") func unnumberedRuns() {
    var timeline = Timeline()
    for kind in ["runStarted", "runEnded", "runStarted", "joined"] {
      timeline.apply(InspectorEvent(store: 1, time: 0, kind: kind))
    }
    #expect(timeline.runs.map(\.number) == [1, 2] && timeline.runs.map(\.joins) == [0, 1])
  }

  @Test(
    "An age has one unit",
    arguments: [
      (0.5, "now"), (59, "59s"), (61, "1m"), (7_300, "2h"), (90_000, "1d"), (1e12, "99999d"),
    ])
  func ages(_ seconds: Double, _ text: String) {
    #expect(shortDuration(seconds) == text)
  }

  @Test("A program that works as if offline is known as such from its greeting")
  func offlineFromStart() throws {
    var model = InspectorModel()
    model.receive(try Blog.message(#"{"type":"hello","program":"p","isOffline":true}"#))
    #expect(model.isOffline)
  }

  @Test("A detail that is closed is forgotten") func closedDetail() throws {
    var model = try Blog.model()
    model.receive(try Blog.message(Blog.detail(Blog.stores[3])))
    #expect(model.detail?.store.id == 4)
    model.closeDetail()
    #expect(model.detail == nil)
  }

  @Test("An event belongs to the run with its number, also when a later one has begun")
  func earlierRun() {
    var timeline = Timeline()
    for number in 1...2 {
      timeline.apply(InspectorEvent(store: 1, time: 0, kind: "runStarted", run: number))
    }
    timeline.apply(
      InspectorEvent(store: 1, time: 1, kind: "runEnded", run: 1, outcome: "success"))
    #expect(timeline.runs.map(\.outcome) == ["success", nil])
  }

  @Test("A run has the number of its latest attempt, and no duration before its start")
  func attemptsAndDuration() {
    var run = RunRecord(InspectorEvent(store: 1, time: 5, kind: "runStarted"), number: 1)
    for attempt in [2, 0] {
      run.apply(InspectorEvent(store: 1, time: 5, kind: "attempt", attempt: attempt))
    }
    #expect(run.attempts == 3)
    #expect(run.duration(now: 4) == 0 && run.duration(now: 6) == 1)
  }

  @Test("The last result is the later one of a value and an error") func lastResult() throws {
    let times = [(7, 9), (9, 7)].enumerated().map { index, times in
      #"{"id":\#(index),"path":[],"updated":\#(times.0),"failed":\#(times.1)}"#
    }
    let line = #"{"type":"snapshot","counts":{},"stores":[\#(times.joined(separator: ","))]}"#
    var model = InspectorModel()
    model.receive(try Blog.message(line))
    #expect(model.stores.mapValues(\.lastResult) == [0: 9, 1: 9])
  }

  @Test("The last element of a deep path has the rest of it") func deepPath() throws {
    let path = (1...70).map(String.init)
    let limited = try Blog.model([Blog.store(1, path, "Q")]).stores[1]?.path
    #expect(limited?.count == 64 && limited?.joined(separator: "/") == path.joined(separator: "/"))
    let longest = Array(path.prefix(64))
    #expect(try Blog.model([Blog.store(1, longest, "Q")]).stores[1]?.path == longest)
  }

  @Test(
    "Marks that reorder text are not written to a terminal",
    arguments: [0x202A, 0x202E, 0x2066, 0x2069])
  func marks(_ value: UInt32) throws {
    let mark = try #require(Unicode.Scalar(value))
    #expect("a\(mark)b".printable == "a b")
  }
}
