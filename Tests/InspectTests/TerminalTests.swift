import Glibc
import Testing

@testable import inspect

/// The terminal form as a program of its own, in a pseudo-terminal.
@Suite(.serialized, .timeLimit(.minutes(5))) struct TerminalTests {
  @Test("The screen follows the keys", arguments: [(80, 24), (120, 40)])
  func keys(_ columns: Int, _ rows: Int) async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime, columns: columns, rows: rows)
      let peer = try program.serveBlog()
      try child.wait { $0.text.contains("6 stores") && $0.lines.last?.contains("quit") == true }
      print(child.screen.text)
      #expect(child.screen.lines.count == rows)
      #expect(child.screen.lines[4].hasPrefix(">    authors/7"))
      try child.type("j")
      try child.wait { $0.lines[5].hasPrefix(">") }
      try child.type("\u{1B}[B\u{1B}[B\u{1B}[B\u{1B}[B\r")
      let watch = try peer.command()
      #expect(watch.command == "watch" && watch.store == 3)
      try peer.send(Blog.detail(Blog.stores[2]))
      try child.wait(for: "stale after")
      print(child.screen.text)
      try child.type("q")
      #expect(try peer.command().command == "unwatch")
      try child.wait { $0.lines[3].contains("PATH") }
      try child.type("q")
      #expect(try child.waitForEnd() == 0)
      #expect(child.isInOriginalMode && child.screen.isCursorVisible)
      #expect(child.screen.unknown == [])
    }
  }
}
