import Testing

@testable import posts

@Suite struct ScreenTests {
  @Test("In a pipe, everything is a line")
  func plain() {
    var text = ScreenText(.plain)
    #expect(text.progress("posts: loading") == "posts: loading\n")
    #expect(text.note("again") == "again\n")
    #expect(text.line("20 posts") == "20 posts\n")
    #expect(text.clear() == "")
  }

  @Test("On a terminal, the next line replaces the progress")
  func terminal() {
    var text = ScreenText(.terminal(width: 80))
    #expect(text.progress("one") == "one")
    #expect(text.progress("two") == "\r\u{1B}[Ktwo")
    #expect(text.line("done") == "\r\u{1B}[Kdone\n")
    #expect(text.line("more") == "more\n")
  }

  @Test("A note is written above the progress, which remains")
  func note() {
    var text = ScreenText(.terminal(width: 80))
    #expect(text.note("before") == "before\n")
    #expect(text.progress("one") == "one")
    #expect(text.note("again") == "\r\u{1B}[Kagain\none")
    #expect(text.clear() == "\r\u{1B}[K")
    #expect(text.clear() == "")
  }

  @Test("Progress is cut to one line", arguments: [(5, "long"), (4, "lon"), (1, ""), (0, "")])
  func width(width: Int, shown: String) {
    var text = ScreenText(.terminal(width: width))
    #expect(text.progress("long") == shown)
    #expect(text.note("x").hasSuffix("x\n" + shown))
  }

  @Test("Control characters of a text are not written", arguments: ["\u{1B}", "\n", "\u{9B}"])
  func control(character: String) {
    var text = ScreenText(.terminal(width: 80))
    #expect(text.line("a\(character)b") == "a b\n")
    #expect(text.progress("a\(character)b") == "a b")
  }

  @Test("A screen writes lines in the order in which they are printed")
  @MainActor func order() {
    var written = ""
    let screen = Screen(.plain) { written += $0 }
    screen.line("a")
    screen.progress("b")
    screen.note("c")
    screen.clear()
    screen.line()
    #expect(written == "a\nb\nc\n\n")
  }
}
