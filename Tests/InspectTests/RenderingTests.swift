import Foundation
import FoundationXML
import Testing

@testable import inspect

@Suite struct RenderingTests {
  private func lines(
    _ model: InspectorModel, columns: Int = 80, rows: Int = 24, keys: [Key] = [],
    isUnicode: Bool = true
  ) -> [StyledLine] {
    let size = TerminalSize(columns: columns, rows: rows)
    let screen = TerminalScreen(
      model: model, size: size, glyphs: .init(isUnicode: isUnicode), now: Blog.now)
    var view = TerminalView()
    for key in keys {
      view.update(model, height: TerminalScreen.height(size))
      _ = view.press(key, model: model, height: TerminalScreen.height(size))
    }
    return screen.lines(&view)
  }

  private func texts(_ lines: [StyledLine]) -> [String] {
    lines.map { line in
      var text = line.text
      while text.last == " " { text.removeLast() }
      return text
    }
  }

  @Test("The table in 80×24") func table() throws {
    let lines = texts(lines(try Blog.model()))
    let expected = """
       posts · pid 123 · up 12:34                                              ● live
       hits 120  joins 14  runs 88  failures 3  cancelled 1  retries 4  evictions 0
       6 stores  ↻ 1 loading  ‖ 1 paused  ✗ 1 failure  ✓ 3 success
       PATH             STATUS     AGE FRESH  SUB AWAIT  RUN  LAST ERROR
      >  authors/7      ✓ success  12s fresh    0     0    1
         create         ‖ paused     – –        0     0    1
       ▾ posts          ✓ success  12s fresh    2     0    4
           2            ✓ success   1m stale    0     0    1
           3            ✗ failure  12s stale    0     0    3  the server answered wit…
           10           ↻ loading    – –        0     2    1
      """
    #expect(Array(lines[..<10]) == expected.split(separator: "\n").map(String.init))
    #expect(lines[10..<23].joined() == "")
    #expect(lines[23] == " / filter  s sort  enter open  r refetch  i invalidate  ? keys  q quit")
  }

  @Test(
    "Every line has the width of the terminal",
    arguments: [(80, 24), (120, 40), (40, 10), (20, 5), (8, 3), (1, 1)])
  func widths(_ columns: Int, _ rows: Int) throws {
    let keys: [[Key]] = [
      [], [.character("?")], [.end, .enter], [.character("/"), .character("x")],
    ]
    for keys in keys {
      let lines = lines(try Blog.model(), columns: columns, rows: rows, keys: keys)
      #expect(lines.count == rows)
      #expect(lines.allSatisfy { $0.text.columns == columns })
    }
  }

  @Test("A wide terminal displays the whole error") func wide() throws {
    let lines = texts(lines(try Blog.model(), columns: 120, rows: 40))
    #expect(lines[8].hasSuffix("  the server answered with status 503"))
    #expect(lines.count == 40)
  }

  @Test("The detail has the value, the rules, the links and a bar for each run") func detail()
    throws
  {
    var model = try Blog.model()
    model.receive(try Blog.message(Blog.changes(events: Blog.retriedRun)))
    let store = Blog.stores[3].merging(["readBy": [6], "value": "Post(id: 3)"]) { $1 }
    model.receive(try Blog.message(Blog.changes(stores: [store])))
    model.receive(try Blog.message(Blog.detail(store)))
    let lines = texts(lines(model, keys: [.down, .down, .down, .down, .enter]))
    let expected = """
       posts/3  PostQuery · query
         ✗ failure  stale  last result 12s ago
         0 subscribers · 0 awaiters · 3 runs in flight · 3 values · 0 errors · 0 hits
         the server answered with status 503
       Value
         Post(id: 3)
       Runs                       █ attempt  ░ wait  ‖ pause
         #3    failure     3.0 s  ███████░░░░░░███████  invalidation · 2 attempts · 1…
       Read by
         ✓ authors/7
       Rules
         stale after  60 s
         retries      2
      """
    #expect(Array(lines[3..<16]) == expected.split(separator: "\n").map(String.init))
  }

  @Test("Each colour has one meaning, and without colours no code for one is sent") func colours()
    throws
  {
    let lines = lines(try Blog.model())
    #expect(lines[9].encoded(hasColour: true).contains("\u{1B}[36m ↻ loading"))
    #expect(lines[8].encoded(hasColour: true).contains("\u{1B}[31m ✗ failure"))
    #expect(lines[8].encoded(hasColour: true).contains("\u{1B}[33m stale"))
    #expect(lines[5].encoded(hasColour: true).contains("\u{1B}[35m ‖ paused"))
    #expect(lines[7].encoded(hasColour: true).contains("\u{1B}[32m ✓ success"))
    let plain = lines.map { $0.encoded(hasColour: false) }.joined()
    let codes = plain.split(separator: "\u{1B}[").dropFirst().map { $0.prefix { $0 != "m" } }
    #expect(Set(codes) == ["0", "1", "7", "1;7"])
  }

  @Test("ASCII is written to a terminal without UTF-8") func ascii() throws {
    for keys in [[], [Key.enter], [.character("?")]] {
      let lines = lines(try Blog.model(), keys: keys, isUnicode: false)
      #expect(lines.allSatisfy { $0.text.utf8.allSatisfy { $0 < 0x80 } })
    }
    let text = texts(lines(try Blog.model(), isUnicode: false)).joined(separator: "\n")
    #expect(text.contains("! failure") && text.contains("+ success") && text.contains("> loading"))
  }

  @Test("Data of a program cannot control the terminal") func printable() throws {
    let bad = "a\u{1B}[2Jb\nc\u{7}\u{202E}d\u{9B}"
    var store = Blog.store(1, [bad], bad, status: "failure", error: bad, value: bad)
    store["kind"] = bad
    let filter = [Key.character("/"), .character("\u{9B}"), .character("2"), .character("J")]
    for keys in [[], [Key.enter], filter, filter + [.enter]] {
      for line in lines(try Blog.model([store]), keys: keys) {
        #expect(
          !line.text.unicodeScalars.contains {
            $0.value < 0x20 || $0.value == 0x9B || $0.value == 0x202E
          })
      }
    }
  }

  @Test("Extreme numbers, times and paths are drawn", arguments: [Int.min, Int.max])
  func extremes(_ number: Int) throws {
    let time = number < 0 ? -1e308 : 1e308
    var model = try Blog.model([])
    let hello: Blog.Fields = ["type": "hello", "program": "p", "started": -time, "now": time]
    model.receive(try Blog.message(Blog.json(hello)))
    let path = Array(repeating: "a", count: 100_000)
    let store: Blog.Fields = [
      "id": 1, "path": path, "updated": time, "failed": -time, "runs": number,
      "subscribers": number, "leases": number, "edits": number, "queued": number,
      "valueUpdates": number, "reads": [number], "readBy": [1],
    ]
    let kinds = ["runStarted", "attempt", "waiting", "paused", "attempt", "runEnded", "runStarted"]
    let events = kinds.enumerated().map { index, kind -> Blog.Fields in
      [
        "store": 1, "time": index.isMultiple(of: 2) ? time : -time, "kind": kind,
        "attempt": number, "run": number,
      ]
    }
    for _ in 0..<2 {
      let changes = Blog.changes(stores: [store], events: events, missed: number, time: time)
      model.receive(try Blog.message(changes))
    }
    for order in 0..<StoreTree.Order.allCases.count {
      let sorting = Array(repeating: Key.character("s"), count: order)
      #expect(lines(model, keys: sorting).count == 24)
    }
    #expect(lines(model, keys: [.enter]).count == 24)
    let plain = PlainText(style: OutputStyle(environment: [:], isTerminal: false))
    #expect(plain.table(model, now: time).count == 3)
  }

  @Test("The end, missed changes and offline are displayed") func states() throws {
    var model = try Blog.model()
    model.receive(try Blog.message(Blog.changes(missed: 9, isOffline: true)))
    var lines = texts(lines(model))
    #expect(lines[0].hasSuffix("as if offline") && lines[2].hasSuffix("9 changes left out"))
    model.end(reason: "Press q to quit.")
    lines = texts(self.lines(model))
    #expect(lines[0].hasSuffix("ended"))
    #expect(lines[2] == " The program has ended. Press q to quit.")
    #expect(texts(self.lines(InspectorModel()))[0] == " inspect: connecting…")
  }

  @Test("A bar has its width for any run") func bars() throws {
    let bar = RunBar(width: 20, longest: 10, now: 100)
    var run = RunRecord(InspectorEvent(store: 1, time: 90, kind: "runStarted"), number: 1)
    #expect(bar.bar(run) == String(repeating: "█", count: 20))
    run.apply(InspectorEvent(store: 1, time: 95, kind: "paused"))
    #expect(bar.bar(run) == String(repeating: "█", count: 10) + String(repeating: "‖", count: 10))
    run.apply(InspectorEvent(store: 1, time: 90.001, kind: "runEnded"))
    #expect(bar.bar(run) == "█".fit(20))
    #expect(RunBar(width: 5, longest: 0, now: 90).bar(run) == "█    ")
  }

  @Test(
    "Texts are cut and padded by columns",
    arguments: [
      ("abc", 5, "abc  "), ("abcdef", 4, "abc…"), ("日本語", 5, "日本…"), ("日本語", 4, "日… "),
      ("e\u{301}a", 2, "e\u{301}a"), ("👩‍👧x", 5, "👩‍👧x"), ("🇩🇪x", 3, "🇩🇪x"), ("नमस्ते", 4, "नमस्ते"),
      ("กำ", 2, "กำ"), ("\u{1100}\u{1161}\u{11A8}x", 3, "\u{1100}\u{1161}\u{11A8}x"), ("ab", 0, ""),
      ("ab", 1, "…"),
    ])
  func fit(_ text: String, _ width: Int, _ expected: String) {
    #expect(text.fit(width) == expected)
  }

  @Test("Only lines that change are drawn again") func differences() {
    let first = TerminalSession.codes(from: [], to: ["a", "b"])
    #expect(first == "\u{1B}[?2026h\u{1B}[2J\u{1B}[1;1Ha\u{1B}[2;1Hb\u{1B}[?2026l")
    let second = TerminalSession.codes(from: ["a", "b"], to: ["a", "c"])
    #expect(second == "\u{1B}[?2026h\u{1B}[2;1Hc\u{1B}[?2026l")
  }

  @Test("A screen is drawn as an image, with its text as text") func image() throws {
    let store = Blog.store(1, ["<script>&", "<\u{301}\u{FFFE}&\u{301}"], "Q")
    let size = TerminalSize(columns: 80, rows: 24)
    let svg = ScreenDrawing(size: size).svg(lines(try Blog.model([store])))
    #expect(svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script"))
    #expect(svg.contains("&lt;\u{301} &amp;\u{301}"))
    #expect(XMLParser(data: Data(svg.utf8)).parse())
  }

  @Test("The detail has the latest calls first, the pages, and what is not complete") func calls()
    throws
  {
    var store = Blog.store(
      5, ["create"], "CreatePost", status: "paused", age: nil, queued: 2, reads: [99])
    var model = try Blog.model([store])
    store["edits"] = 1
    model.receive(try Blog.message(Blog.changes(stores: [store])))
    store["calls"] = (1...21).map { ["arguments": "title \($0)", "status": "success"] }
    store["pages"] = 3
    store["isTruncated"] = true
    model.receive(try Blog.message(Blog.json(["type": "detail", "store": store])))
    let lines = texts(lines(model, rows: 40, keys: [.enter]))
    #expect(lines[4] == "   ‖ paused  1 optimistic edit  2 calls in queue  3 pages")
    #expect(lines.contains("   … truncated") && lines.contains("     a store that was removed"))
    let calls = lines.drop { $0 != " Calls" }.filter { $0.contains("title") }
    #expect(calls.count == 20 && calls.first == "   success    title 21")
    #expect(calls.last == "   success    title 2")
  }

  @Test("The detail of a store that was removed says so") func removed() throws {
    func heading(isWatched: Bool) throws -> [String] {
      var model = try Blog.model()
      if isWatched { model.receive(try Blog.message(Blog.detail(Blog.stores[5]))) }
      let size = TerminalSize()
      var view = TerminalView()
      view.update(model, height: 19)
      #expect(view.press(.enter, model: model, height: 19) == .send(.watch(store: 6)))
      model.receive(try Blog.message(Blog.changes(removed: [6])))
      let screen = TerminalScreen(model: model, size: size, now: Blog.now)
      return texts(Array(screen.lines(&view)[3...7]))
    }
    let watched = try heading(isWatched: true)
    #expect(watched[0] == " authors/7  AuthorQuery · query · no longer in its client")
    #expect(watched[4] == "   Author(name: <script>)")
    let other = try heading(isWatched: false)
    #expect(other[0] == " A store that was removed")
    #expect(other[1] == "   The store is no longer in its client.")
  }

  @Test("A folded group has the number of its stores, and a column the sign of its order")
  func groups() throws {
    let model = try Blog.model([Blog.store(1, ["a", "b"], "Q"), Blog.store(2, ["a", "c"], "Q")])
    #expect(texts(lines(model, keys: [.left]))[4] == ">▸ a (2 stores)")
    #expect(texts(lines(model, keys: [.left], isUnicode: false))[4] == ">+ a (2 stores)")
    let reversed = [Key.character("S")]
    #expect(lines(model, keys: reversed)[3].text.hasPrefix(" PATH↑ "))
    #expect(lines(model, keys: reversed, isUnicode: false)[3].text.hasPrefix(" PATH^ "))
    let byStatus = [Key.character("s")]
    #expect(lines(model, keys: byStatus, isUnicode: false)[3].text.contains(" STATUSv "))
  }

  @Test("The bars of runs are drawn in ASCII where the terminal has no UTF-8") func plainBars()
    throws
  {
    var model = try Blog.model()
    model.receive(
      try Blog.message(
        Blog.changes(events: [
          Blog.event(6, "runStarted", after: -4, run: 1), Blog.event(6, "paused", after: -3),
          Blog.event(6, "waiting", after: -2), Blog.event(6, "attempt", after: -1, attempt: 1),
          Blog.event(6, "runEnded", outcome: "cancelled"),
        ])))
    let lines = texts(lines(model, columns: 120, keys: [.enter], isUnicode: false))
    let phases = ["#", "|", ".", "#"].map { String(repeating: $0, count: 10) }.joined()
    #expect(lines.contains("   #1    cancelled   4.0 s  \(phases)  2 attempts"))
  }

  @Test("The title has the access, and the end of a program that did not answer") func titles()
    throws
  {
    var model = InspectorModel()
    model.receive(try Blog.message(Blog.hello(isReadOnly: true)))
    #expect(texts(lines(model))[0].hasSuffix("  read-only · ● live"))
    var refused = InspectorModel()
    refused.receive(try Blog.message(#"{"type":"bye","reason":"It is full."}"#))
    let texts = texts(lines(refused))
    #expect(texts[0] == " inspect: refused" && texts[2] == " It is full.")
  }
}
