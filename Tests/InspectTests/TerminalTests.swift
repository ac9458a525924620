import Glibc
import Testing

@testable import inspect

/// The terminal form as a child process in a pseudo-terminal.
@Suite(.serialized, .timeLimit(.minutes(5))) struct TerminalTests {
  @Test("The screen follows each key", arguments: [(80, 24), (120, 40)])
  func keys(_ columns: Int, _ rows: Int) async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime, columns: columns, rows: rows)
      let peer = try program.serveBlog()
      try child.wait("the table") {
        $0.lines[4].hasPrefix(">  authors/7") && $0.lines[rows - 1].hasSuffix("quit")
      }
      #expect(child.screen.isAlternate && child.screen.isDrawing && child.screen.hasColour)
      #expect(!child.isInOriginalMode)
      try child.type("j")
      try child.wait { $0.lines[5].hasPrefix(">  create") && $0.lines[4].hasPrefix("   authors") }
      try child.type("\u{1B}[B ")
      try child.wait { $0.lines[6].hasPrefix(">▸ posts") && $0.lines[7].isEmpty }
      try child.type(" ")
      try child.wait { $0.lines[7].hasPrefix("     2") }
      try child.type("/5")
      try child.wait { $0.lines[rows - 1] == " Filter: 5_" && $0.lines[4].hasPrefix(">  posts/3") }
      try child.type("\u{1B}")
      try child.wait { $0.lines[6].hasPrefix(" ▾ posts") && $0.lines[rows - 1].hasSuffix("quit") }
      try child.type("s")
      try child.wait { $0.lines[3].contains("STATUS↓") && $0.lines[4].hasPrefix(" ▾ posts") }
      try child.type("?")
      try child.wait { $0.lines[3] == " Keys" && $0.text.contains("invalidate: mark as stale") }
      try child.type("x")
      try child.wait { $0.lines[3].hasPrefix(" PATH") }
      try child.type("q")
      #expect(try child.waitForEnd() == 0)
      #expect(child.isInOriginalMode && child.screen.isPlain)
      #expect(child.screen.unknown == [])
      try peer.waitForEnd()
    }
  }

  @Test("A store is opened, invalidated, and its run appears") func detail() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild(["posts"], in: runtime)
      let peer = try program.serveBlog()
      try child.wait(for: "posts · pid 123")
      try child.wait(for: "authors/7")
      try child.type("G\u{1B}[A\r")
      let watch = try peer.command()
      #expect(watch.command == "watch" && watch.store == 4)
      try peer.send(Blog.detail(Blog.stores[3]))
      try child.wait(for: "stale after  60 s")
      try child.type("i")
      let invalidate = try peer.command()
      #expect(invalidate.command == "invalidate" && invalidate.store == 4)
      try peer.send(Blog.reply(invalidate.id))
      try peer.send(Blog.changes(events: Blog.retriedRun))
      try child.wait {
        $0.lines[23] == " invalidate posts/3: done" && $0.text.contains("2 attempts")
      }
      try child.type("R")
      let reset = try peer.command()
      try peer.send(Blog.reply(reset.id, error: "The store is owned."))
      try child.wait { $0.lines[23] == " reset posts/3: The store is owned." }
      try child.type("\u{1B}")
      #expect(try peer.command().command == "unwatch")
      try child.wait { $0.lines[3].hasPrefix(" PATH") }
      try child.type("o")
      let offline = try peer.command()
      #expect(offline.command == "offline" && offline.value == true)
      try peer.send(Blog.changes(isOffline: true))
      try child.wait { $0.lines[0].hasSuffix("as if offline") }
    }
  }

  @Test("SIGWINCH draws the screen in its new size") func resizing() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      let peer = try program.serveBlog()
      try child.wait { $0.lines[23].hasSuffix("quit") }
      try child.resize(columns: 120, rows: 40)
      try child.wait { $0.lines[39].hasSuffix("quit") && $0.lines[8].hasSuffix("status 503") }
      try child.resize(columns: 50, rows: 10)
      try child.wait { $0.lines[9].hasPrefix(" / filter") && $0.lines[3].hasPrefix(" PATH") }
      withExtendedLifetime(peer) {}
    }
  }

  @Test(
    "A signal that ends the program restores the terminal",
    arguments: [SIGTERM, SIGINT, SIGHUP, SIGQUIT])
  func ending(_ signal: Int32) async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      let peer = try program.serveBlog()
      try child.wait { $0.lines[23].hasSuffix("quit") }
      #expect(!child.isInOriginalMode)
      child.send(signal)
      #expect(try child.waitForEnd() == 128 + signal)
      #expect(child.isInOriginalMode && child.screen.isPlain)
      try peer.waitForEnd()
    }
  }

  @Test("A trap restores the terminal") func trap() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      let peer = try program.serveBlog()
      try child.wait { $0.lines[23].hasSuffix("quit") }
      child.send(SIGILL)
      try child.wait("the main screen") { !$0.isAlternate && $0.isPlain }
      try peer.waitForEnd()
      #expect(child.isInOriginalMode)
    }
  }

  @Test("Stopping restores the terminal, and continuing draws again") func stopping() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      let peer = try program.serveBlog()
      try child.wait { $0.lines[23].hasSuffix("quit") }
      // The kernel ignores SIGTSTP in an orphaned process group, such as a new session.
      child.send(SIGTSTP)
      try child.wait("the table") {
        $0.departures == 1 && $0.isAlternate && $0.lines[23].hasSuffix("quit")
      }
      child.send(SIGSTOP)
      #expect(child.waitUntilStopped() == SIGSTOP)
      child.send(SIGCONT)
      try child.type("j")
      try child.wait { $0.lines[5].hasPrefix(">") }
      #expect(!child.isInOriginalMode)
      withExtendedLifetime(peer) {}
    }
  }

  @Test("The end of the program is reported, and its last state remains") func lost() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      try {
        let peer = try program.serveBlog()
        try child.wait(for: "authors/7")
        try peer.send(#"{"type":"bye","reason":"The client has ended."}"#)
      }()
      try child.wait { $0.lines[2].hasPrefix(" The program has ended. The client has ended.") }
      #expect(child.screen.text.contains("authors/7") && child.screen.lines[0].hasSuffix("ended"))
      try child.type("i")
      try child.wait { $0.lines[23] == " The program has ended." }
      try child.type("q")
      #expect(try child.waitForEnd() == 0)
    }
  }

  @Test("--wait finds the start of a program, and its next start") func waiting() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let child = try TerminalChild(["posts", "--wait"], in: runtime)
      try child.wait(for: "waiting for posts")
      try {
        let program = try FakeProgram(runtime, pid: 1)
        let peer = try program.serveBlog(pid: 1)
        try child.wait(for: "posts · pid 1 ")
        withExtendedLifetime(peer) {}
      }()
      try child.wait(for: "The program has ended. Waiting for its next start.")
      let program = try FakeProgram(runtime, pid: 2)
      let peer = try program.serveBlog(Array(Blog.stores[..<1]), pid: 2)
      try child.wait { $0.lines[0].contains("pid 2") && $0.lines[2].hasPrefix(" 1 store ") }
      withExtendedLifetime(peer) {}
    }
  }

  @Test("A reply of the next program is not matched with a command of the one before")
  func oldCommand() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let child = try TerminalChild(["posts", "--wait"], in: runtime)
      try {
        let program = try FakeProgram(runtime, pid: 1)
        let peer = try program.serveBlog(pid: 1)
        try child.wait(for: "authors/7")
        try child.type("i")
        #expect(try peer.command().id == 1)
      }()
      try child.wait(for: "The program has ended.")
      let program = try FakeProgram(runtime, pid: 2)
      let peer = try program.serveBlog(pid: 2)
      // With its stores, which come after its name: without one there is nothing to watch.
      try child.wait { $0.text.contains("pid 2") && $0.text.contains("authors/7") }
      try child.type("\r")
      let watch = try peer.command()
      #expect(watch.id == 1)
      try peer.send(Blog.reply(watch.id))
      try peer.send(Blog.detail(Blog.stores[5]))
      try child.wait { $0.text.contains("stale after") && $0.lines[23].hasPrefix(" esc back") }
      withExtendedLifetime(peer) {}
    }
  }

  @Test("NO_COLOR and a terminal without UTF-8 are respected") func plain() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime, environment: ["NO_COLOR=1", "LC_ALL=C"])
      let peer = try program.serveBlog()
      try child.wait { $0.text.contains("authors/7") && $0.lines[23].hasSuffix("quit") }
      #expect(!child.screen.hasColour)
      #expect(child.screen.text.utf8.allSatisfy { $0 < 0x80 })
      #expect(child.screen.text.contains("! failure"))
      withExtendedLifetime(peer) {}
    }
  }

  @Test("Lines that are no messages are left out") func rubbish() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([program.path], in: runtime)
      let peer = try program.accept()
      for line in ["", "\u{1B}[2J", "[]", "{", #"{"type":"hello"}"#] { try peer.send(line) }
      try peer.send(Blog.hello())
      try peer.send(#"{"type":"later"}"#)
      try peer.send(Blog.snapshot)
      try child.wait { $0.lines[0].hasPrefix(" posts") && $0.text.contains("authors/7") }
      try peer.send(#"{"type":"changes","stores":[{"id":"x"}]}"#)
      try peer.send(#"{"type":"reply","id":77,"ok":true}"#)
      try peer.send(Blog.changes(missed: 3))
      try child.wait { $0.lines[2].hasSuffix("3 changes left out") }
      #expect(child.screen.lines[23].hasSuffix("quit") && child.screen.unknown == [])
    }
  }

  @Test("A terminal without a size is drawn with 80×24") func noSize() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime, hasSize: false)
      let peer = try program.serveBlog()
      try child.wait { $0.text.contains("authors/7") && $0.lines[23].hasSuffix("quit") }
      withExtendedLifetime(peer) {}
    }
  }

  @Test("Without an argument, --wait connects to the next start of the same program")
  func sameProgram() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      var first: FakeProgram? = try FakeProgram(runtime, pid: 1)
      let child = try TerminalChild(["--wait"], in: runtime)
      var peer = try first?.serveBlog(pid: 1)
      try child.wait(for: "posts · pid 1 ")
      let other = try FakeProgram(runtime, program: "other", pid: 5)
      let next = try FakeProgram(runtime, pid: 2)
      (first, peer) = (nil, nil)
      peer = try next.serveBlog(pid: 2)
      try child.wait(for: "posts · pid 2 ")
      withExtendedLifetime((other, peer)) {}
    }
  }

  @Test("The time since the start of the program is drawn without a message") func uptime()
    async throws
  {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try TerminalChild([], in: runtime)
      let peer = try program.serveBlog()
      try child.wait { $0.lines[0].contains("up 12:3") && $0.text.contains("authors/7") }
      let title = child.screen.lines[0]
      try child.wait { $0.lines[0].contains("up 1") && $0.lines[0] != title }
      withExtendedLifetime(peer) {}
    }
  }
}
