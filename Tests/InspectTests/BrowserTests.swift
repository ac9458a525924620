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
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
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
      try peer.send(
        Blog.changes(
          stores: [Blog.store(4, ["posts", "3"], "PostQuery", age: 0, value: "Post(id: 3)", runs: 4)],
          events: Blog.retriedRun))
      try browser.wait(until: "$('runs').querySelectorAll('svg rect').length === 3")
      let label = try browser.value("$('runs').querySelector('svg g').textContent")
      #expect(label.contains("#3") && label.contains("failure 3.0 s"))
      try browser.wait(until: "$('status').textContent.includes('success')")
    }
  }
}
