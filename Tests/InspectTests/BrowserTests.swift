import Foundation
import Testing

@testable import inspect

/// The page in headless Chromium.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: Browser.path != nil, "Chromium is not installed: `apt-get install chromium`"))
struct BrowserTests {
  @Test("A store is found by typing, invalidated by a button, and its run is drawn")
  func invalidate() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address)
      let peer = try program.serveBlog()
      try browser.wait(until: "$('title').textContent === 'posts'")
      try browser.wait(until: "state.rows.length === 6")
      try browser.press("/")
      try browser.type("posts 3 503")
      try browser.wait(until: "state.rows.length === 1")
      try browser.press("Enter")
      let watch = try peer.command()
      #expect(watch.command == "watch" && watch.store == 4)
      try peer.send(Blog.detail(Blog.stores[3]))
      try browser.wait(until: "$('rules').textContent.includes('60 s')")
      #expect(try browser.value("$('name').textContent") == "posts/3")
      _ = try browser.value("$('do-invalidate').click()")
      let command = try peer.command()
      #expect(command.command == "invalidate" && command.store == 4)
      try peer.send(Blog.reply(command.id))
      try browser.wait(until: "$('toast').textContent === 'invalidate posts/3: done'")
      let store = Blog.store(4, ["posts", "3"], "PostQuery", age: 0, value: "Post(id: 3)", runs: 4)
      try peer.send(Blog.changes(stores: [store], events: Blog.retriedRun))
      try browser.wait(until: "$('runs').querySelectorAll('svg rect').length === 3")
      let label = try browser.value("$('runs').querySelector('svg g').textContent")
      #expect(label.contains("#3") && label.contains("failure 3.0 s"))
      try browser.wait(until: "$('status').textContent.includes('success')")
    }
  }

  @Test("A run that ended at the time zero has ended, and commands arrive in their order")
  func order() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      // A fragment that is no text.
      try browser.open(web.address + "#%")
      let peer = try program.serveBlog()
      try browser.wait(until: "state.rows.length === 6")
      let outcome = "outcomeOf({ started: 0, ended: 0, outcome: 'success' })"
      #expect(try browser.value(outcome) == "success")
      #expect(try browser.value("durationOf({ started: 0, ended: 0 })") == "0")
      let watch = "(number) => command({ command: 'watch', store: number })"
      _ = try browser.value("[...Array(40).keys()].map(\(watch))")
      for number in 0..<40 { #expect(try peer.command().store == number) }
    }
  }

  @Test("A program that refuses the connection has not ended, and is asked again")
  func refusal() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program, arguments: ["--wait"])
      let browser = try Browser()
      try browser.open(web.address)
      try program.accept().send(#"{"type":"bye","reason":"It is full."}"#)
      try browser.wait(until: "$('banner').textContent === 'It is full.'")
      let peer = try program.serveBlog()
      try browser.wait(until: "state.rows.length === 6 && $('banner').hidden")
      withExtendedLifetime(peer) {}
    }
  }

  @Test("A store with a very long path is a row") func deepPath() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address)
      let path = (1...5_000).map(String.init)
      let peer = try program.serveBlog([Blog.store(1, path, "Q"), Blog.store(2, ["a"], "Q")])
      try browser.wait(until: "state.rows.length === 2")
      try browser.wait(until: "state.rows.some((row) => row.label.endsWith('/4999/5000'))")
      withExtendedLifetime(peer) {}
    }
  }

  @Test("Data of the program is displayed as text") func text() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address + "#bad/%3Cscript%3Ewindow.isRun%3D1%3C%2Fscript%3E")
      let bad = "<script>window.isRun=1</script>"
      let image = "<img src=x onerror='window.isRun=1'>"
      let store = Blog.store(
        1, ["bad", bad], image, status: "failure", error: image, value: bad, reads: [2])
      let other = Blog.store(2, [image], bad, readBy: [1])
      let peer = try program.serveBlog([store, other])
      #expect(try peer.command().store == 1)
      var detail = store
      detail["rules"] = [["name": bad, "value": image]]
      detail["calls"] = [["arguments": bad, "status": image]]
      try peer.send(Blog.json(["type": "detail", "time": Blog.now, "store": detail]))
      try peer.send(
        Blog.changes(events: [
          Blog.event(1, "runStarted", run: 1, cause: bad),
          Blog.event(1, "runEnded", run: 1, outcome: image, message: bad),
        ]))
      try browser.wait(until: "$('runs').querySelector('svg g') && $('calls').textContent")
      try browser.wait(until: "$('graph').querySelectorAll('g.node').length === 2")
      #expect(try browser.value("$('value').textContent") == bad)
      #expect(try browser.value("$('rules').firstChild.textContent") == bad)
      _ = try browser.value("select(null)")
      try browser.wait(until: "$('log').children.length === 2")
      #expect(try browser.value("document.querySelectorAll('script').length") == "1")
      #expect(try browser.value("document.querySelectorAll('img').length") == "0")
      #expect(try browser.value("window.isRun") == "undefined")
    }
  }

  @Test("The keyboard moves, folds and unfolds, and a screen reader reads the tree") func keyboard()
    async throws
  {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address)
      let peer = try program.serveBlog()
      try browser.wait(until: "state.rows.length === 6")
      #expect(try browser.value("document.activeElement.id") == "grid")
      for _ in 0..<3 { try browser.press("ArrowDown") }
      var commands = ""
      for _ in 0..<3 { commands += "\(try peer.command().store ?? 0) " }
      #expect(commands == "6 5 1 ")
      let row = "document.getElementById($('grid').getAttribute('aria-activedescendant'))"
      let attributes = ["aria-selected", "aria-expanded", "aria-level", "aria-rowindex"]
        .map { "\(row).getAttribute('\($0)')" }.joined(separator: " + ' ' + ")
      #expect(try browser.value(attributes) == "true true 1 4")
      try browser.press("ArrowLeft")
      try browser.wait(until: "state.rows.length === 3")
      #expect(try browser.value("\(row).getAttribute('aria-expanded')") == "false")
      try browser.press("ArrowRight")
      try browser.wait(until: "state.rows.length === 6")
      try browser.press("i")
      #expect(try peer.command().command == "invalidate")
      try browser.press("Escape")
      #expect(try peer.command().command == "unwatch")
      try browser.wait(until: "!$('overview').hidden && $('graph-all').querySelector('g.node')")
      _ = try browser.value("$('graph-all').querySelector('g.node').focus()")
      try browser.press("Enter")
      #expect(try peer.command().command == "watch")
    }
  }

  @Test("Ten thousand stores and a thousand changes a second are drawn without a pause") func many()
    async throws
  {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address)
      func store(_ id: Int, runs: Int = 0) -> Blog.Fields {
        Blog.store(id, ["items", "\(id / 100)", "\(id)"], "ItemQuery", value: "v", runs: runs)
      }
      let peer = try program.serveBlog((0..<10_000).map { store($0) })
      try browser.wait(until: "state.stores.size === 10000 && state.rows.length > 10000")
      #expect(try browser.value("$('body').querySelectorAll('.row').length < 80") == "true")
      // The longest frame while a second of changes arrives.
      _ = try browser.value(
        """
        (window.longest = 0, window.last = performance.now(), (function frame() {
          const time = performance.now();
          window.longest = Math.max(window.longest, time - window.last);
          window.last = time;
          requestAnimationFrame(frame);
        })())
        """)
      for round in 1...10 {
        try peer.send(
          Blog.changes(stores: (0..<100).map { store($0 * 97 % 10_000, runs: round) }))
        try browser.wait(until: "state.stores.get(97).runs === \(round)")
      }
      _ = try browser.value("$('body').scrollTop = 140000")
      try browser.wait(until: "$('row-5000')?.textContent.includes('success')")
      let longest = try #require(Double(try browser.value("window.longest")))
      #expect(longest < 1_000, "a frame took \(longest) ms")
      try browser.press("/")
      try browser.type("9999")
      try browser.wait(until: "state.rows.length === 1 && !$('row-0').hidden")
    }
  }

  @Test("The end is displayed, and with --wait the next start, with the store of the same path")
  func restart() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      var program: FakeProgram? = try FakeProgram(runtime, pid: 1)
      let web = try WebChild(try #require(program), arguments: ["--wait"])
      let browser = try Browser()
      try browser.open(web.address + "#posts/3")
      try {
        let peer = try #require(program).serveBlog(pid: 1)
        #expect(try peer.command().store == 4)
        try browser.wait(until: "$('live').textContent === '● live'")
      }()
      program = nil
      try browser.wait(until: "$('banner').textContent.includes('Waiting for its next start')")
      try browser.wait(until: "$('do-refetch').disabled")
      let next = try FakeProgram(runtime, pid: 2)
      let moved = Blog.store(99, ["posts", "3"], "PostQuery")
      let peer = try next.serveBlog([moved], pid: 2)
      #expect(try peer.command().store == 99)
      try browser.wait(until: "$('banner').hidden && $('facts').textContent.includes('pid 2')")
    }
  }
}
