import Foundation
import Testing

@testable import inspect

@Suite(.serialized, .timeLimit(.minutes(5))) struct PlainTests {
  private func child(_ program: FakeProgram, _ arguments: [String]) throws -> ProgramChild {
    try ProgramChild([TerminalChild.program("inspect"), program.path] + arguments)
  }

  @Test("The stores are written to a pipe once, as lines without codes") func once() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, [])
      _ = try program.serveBlog()
      var lines: [String] = []
      while let line = try child.line() { lines.append(line) }
      #expect(lines.count == 8)
      #expect(lines[0] == "posts (pid 123), up 12:34, 6 stores")
      #expect(
        lines[6]
          == "✗ failure  12s  stale     0     0     3  posts/3    PostQuery  "
          + "the server answered with status 503"
      )
      #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
      #expect(try child.waitForEnd() == 0)
    }
  }

  @Test("--json prints one document") func json() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--json"])
      _ = try program.serveBlog()
      let text = try #require(try child.line())
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      let snapshot = object?["snapshot"] as? [String: Any]
      #expect((object?["hello"] as? [String: Any])?["pid"] as? Int == 123)
      #expect((snapshot?["stores"] as? [Any])?.count == 6)
      #expect(try child.waitForEnd() == 0)
    }
  }

  @Test("--follow prints each event until the program ends") func follow() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--follow"])
      try {
        let peer = try program.serveBlog()
        for _ in 0..<8 { _ = try child.line() }
        try peer.send(Blog.changes(removed: [4], events: Blog.retriedRun, missed: 2))
        var texts: [String] = []
        for _ in 0..<7 { texts.append(String(try child.line()?.dropFirst(13) ?? "")) }
        #expect(texts.first == "posts/3 run 3 started (invalidation)")
        #expect(texts[5] == "posts/3 run 3 ended: failure: status 503")
        #expect(texts[6].hasSuffix("left out"))
        try peer.send(Blog.changes(events: [Blog.event(4, "removed")]))
        #expect(try child.line()?.hasSuffix("posts/3 removed") == true)
      }()
      #expect(try child.line() == nil)
      #expect(try child.waitForEnd() == 0)
    }
  }

  @Test("--follow --json prints the messages as they are") func followJSON() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--follow", "--json"])
      let peer = try program.serveBlog()
      try peer.send(Blog.changes(events: Blog.retriedRun))
      #expect(try child.line() == Blog.hello())
      #expect(try child.line() == Blog.snapshot)
      #expect(try child.line() == Blog.changes(events: Blog.retriedRun))
    }
  }

  @Test("Without a program that answers there is an error") func none() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let environment = ["XDG_RUNTIME_DIR": runtime.path]
      for arguments in [[], ["posts"], [runtime.path + "/none.sock"], ["--list"], ["--what"]] {
        let child = try ProgramChild(
          [TerminalChild.program("inspect")] + arguments, environment: environment)
        #expect(try child.waitForEnd() == 1)
      }
      // The socket of a killed program.
      _ = FileManager.default.createFile(
        atPath: runtime.path + "/swift-operation/posts-1-1.sock", contents: nil)
      let child = try ProgramChild([TerminalChild.program("inspect")], environment: environment)
      #expect(try child.waitForEnd() == 1)
    }
  }

  @Test("Several programs are listed, and one is chosen by its name or process") func several()
    async throws
  {
    try await onThread {
      let runtime = try TemporaryFolder()
      let environment = ["XDG_RUNTIME_DIR": runtime.path]
      let programs = [
        try FakeProgram(runtime, program: "alpha", pid: 1),
        try FakeProgram(runtime, program: "beta", pid: 2),
      ]
      func run(_ arguments: [String], _ serving: [Int]) throws -> (lines: [String], status: Int32) {
        let child = try ProgramChild(
          [TerminalChild.program("inspect")] + arguments, environment: environment)
        var peers: [FakeProgram.Peer] = []
        for index in serving {
          let peer = try programs[index].accept()
          try peer.send(Blog.hello(program: ["alpha", "beta"][index], pid: index + 1))
          // The list needs only the name.
          try? peer.send(Blog.snapshot)
          peers.append(peer)
        }
        var lines: [String] = []
        while let line = try child.line() { lines.append(line) }
        return (lines, try child.waitForEnd())
      }
      let list = try run(["--list"], [0, 1])
      #expect(list.status == 0 && list.lines.count == 3)
      #expect(list.lines[1].hasPrefix("alpha          1  12:34"))
      #expect(try run(["--once"], [0, 1]).status == 1)
      #expect(try run(["beta", "--once"], [1]).lines.first?.hasPrefix("beta (pid 2)") == true)
      #expect(try run(["1", "--once"], [0]).lines.first?.hasPrefix("alpha (pid 1)") == true)
    }
  }

  @Test("A program is found by the name of its client, and others are listed where none is")
  func clientNames() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let programs = try (1...2).map { try FakeProgram(runtime, program: "Daemon", pid: $0) }
      let names = ["orders", "users"]
      func run(_ arguments: String...) throws -> (lines: [String], status: Int32) {
        let child = try ProgramChild(
          [TerminalChild.program("inspect")] + arguments,
          environment: ["XDG_RUNTIME_DIR": runtime.path], readsErrors: true)
        var peers: [FakeProgram.Peer] = []
        // A search for a name connects to all programs, and a list connects again.
        for round in 0..<(arguments[0] == "nothing" ? 2 : 1) {
          for (index, program) in programs.enumerated() {
            let peer = try program.accept()
            try peer.send(Blog.hello(program: "Daemon", pid: index + 1, name: names[index]))
            if round == 0 { try? peer.send(Blog.snapshot) }
            peers.append(peer)
          }
        }
        var lines: [String] = []
        while let line = try child.line() { lines.append(line) }
        return (lines, try child.waitForEnd())
      }
      let users = try run("users", "--once")
      #expect(users.lines.first?.hasPrefix("Daemon · users (pid 2)") == true && users.status == 0)
      let orders = try run("Daemon · orders", "--once")
      #expect(orders.lines.first?.hasPrefix("Daemon · orders (pid 1)") == true)
      let none = try run("nothing", "--once")
      #expect(none.status == 1 && none.lines.count == 4)
      #expect(none.lines.first == "inspect: No program is called nothing; there are:")
      #expect(none.lines.dropFirst(2).allSatisfy { $0.hasPrefix("Daemon · ") })
      #expect(try run("nothing", "--list").lines == none.lines)
    }
  }

  @Test("A program that refuses is reported with its reason, beside those that answer")
  func refused() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let full = try FakeProgram(runtime, program: "Daemon", pid: 1)
      func check(_ arguments: [String], rounds: Int, answering: FakeProgram? = nil) throws {
        let child = try ProgramChild(
          [TerminalChild.program("inspect")] + arguments,
          environment: ["XDG_RUNTIME_DIR": runtime.path], readsErrors: true)
        for _ in 0..<rounds {
          try full.accept().send(#"{"type":"bye","reason":"It is full."}"#)
          try answering?.accept().send(Blog.hello(program: "Other", pid: 2))
        }
        #expect(try child.line() == "inspect: \(full.path): It is full.")
        if answering != nil {
          #expect(try child.line()?.hasPrefix("PROGRAM") == true)
          #expect(try child.line()?.hasPrefix("Other") == true)
        }
        #expect(try child.line() == nil && child.waitForEnd() == (answering == nil ? 1 : 0))
      }
      try check(["--list"], rounds: 1)
      // A search for a name connects to all programs, and a list connects again.
      try check(["other", "--once"], rounds: 2)
      let other = try FakeProgram(runtime, program: "Other", pid: 2)
      try check(["--list"], rounds: 1, answering: other)
    }
  }

  @Test("--wait connects to the next program whose client has the name") func nextStart()
    async throws
  {
    try await onThread {
      let runtime = try TemporaryFolder()
      let orders = try FakeProgram(runtime, program: "Daemon", pid: 1)
      var users = try FakeProgram(runtime, program: "Daemon", pid: 2)
      let child = try ProgramChild(
        [TerminalChild.program("inspect"), "users", "--follow", "--wait"],
        environment: ["XDG_RUNTIME_DIR": runtime.path])
      func serve(_ program: FakeProgram, pid: Int, name: String) throws -> FakeProgram.Peer {
        let peer = try program.accept()
        try peer.send(Blog.hello(program: "Daemon", pid: pid, name: name))
        try? peer.send(Blog.snapshot)
        return peer
      }
      for pid in 2...3 {
        // The names of both programs are read. The connection to the first one is closed.
        _ = try serve(orders, pid: 1, name: "orders")
        try {
          let peer = try serve(users, pid: pid, name: "users")
          // The first line of a connection names the program. Seven lines with its stores follow.
          #expect(try child.line()?.hasPrefix("Daemon · users (pid \(pid))") == true)
          for _ in 0..<7 { _ = try child.line() }
          // The next program starts, and this one ends.
          users = try FakeProgram(runtime, program: "Daemon", pid: pid + 1)
          withExtendedLifetime(peer) {}
        }()
      }
    }
  }

  @Test("Arguments are parsed") func arguments() throws {
    #expect(try Arguments([]).form == .automatic)
    let arguments = try Arguments(["posts", "--web", "--wait", "--port", "8080"])
    #expect(arguments.form == .web && arguments.target == "posts" && arguments.waits)
    #expect(arguments.port == 8080)
    #expect(try Arguments(["--json"]).form == .once)
    #expect(try Arguments(["--demo", "-h"]).form == .help)
  }

  @Test(
    "The error of bad arguments describes them",
    arguments: [
      (["-x"], "'-x' is not an option of this program"),
      (["a", "b"], "there is more than one program to inspect"),
      (["--web", "--once"], "--once does not go with another form"),
      (["--web", "--json"], "--json goes with --once and --follow"),
      (["--list", "--wait"], "--list goes with neither --wait nor --demo"),
      (["--demo", "--list"], "--list goes with neither --wait nor --demo"),
      (["--port", "70000"], "--port needs a number up to 65535"),
      (["--demo", "posts"], "--demo has a program of its own"),
    ])
  func badArguments(_ arguments: [String], _ text: String) {
    #expect(throws: InspectError(text)) { try Arguments(arguments) }
  }

  @Test(
    "Colours and signs follow the environment",
    arguments: [
      (["TERM": "xterm"], true, true), (["TERM": "xterm", "NO_COLOR": "1"], false, true),
      (["NO_COLOR": ""], true, true), (["TERM": "dumb"], false, true), (["LANG": "C"], true, false),
      (["LANG": "de_DE.utf8"], true, true), (["LANG": "C.UTF-8", "LC_ALL": "POSIX"], true, false),
    ])
  func style(_ environment: [String: String], _ hasColour: Bool, _ isUnicode: Bool) {
    let style = OutputStyle(environment: environment, isTerminal: true)
    #expect(style.hasColour == hasColour && style.glyphs.isUnicode == isUnicode)
    #expect(!OutputStyle(environment: environment, isTerminal: false).hasColour)
  }

  @Test("A number is a process, and not the name of a client") func number() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let child = try ProgramChild(
        [TerminalChild.program("inspect"), "7", "--list"],
        environment: ["XDG_RUNTIME_DIR": runtime.path], readsErrors: true)
      let peer = try program.accept()
      try peer.send(Blog.hello(name: "7"))
      #expect(try child.line() == "inspect: No program is called 7; there are:")
      while try child.line() != nil {}
      #expect(try child.waitForEnd() == 1)
    }
  }

  @Test("The next start of a program is none that ran before, and comes before its last socket")
  func laterStart() throws {
    let runtime = try TemporaryFolder()
    let programs = try (2...4).map { try FakeProgram(runtime, pid: $0) }
    let target = Target(nil, programs: Programs(folder: "\(runtime.path)/swift-operation"))
    let last = UsedSocket(programs[1].path)
    #expect(target.connect(after: last)?.path == last.path)
    for pid in [5, 1] {
      let next = try FakeProgram(runtime, pid: pid)
      #expect(target.connect(after: last)?.path == next.path)
    }
    withExtendedLifetime(programs) {}
  }

  @Test("A program that does not answer is reported, and keeps no other one from being found")
  func silent() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let silent = try FakeProgram(runtime, program: "a\u{1B}[2J", pid: 1)
      let other = try FakeProgram(runtime, program: "b-c", pid: 2)
      let child = try ProgramChild(
        [TerminalChild.program("inspect"), "--list"],
        environment: ["XDG_RUNTIME_DIR": runtime.path], readsErrors: true)
      let peers = try (silent.accept(), other.accept())
      try peers.1.send(Blog.hello(program: "b c", pid: 2, name: "main"))
      try peers.0.send(#"{"type":"later"}"#)
      let path = silent.path.printable
      #expect(try child.line() == "inspect: \(path): the program does not answer")
      #expect(try child.waitForEnd() == 0)
      #expect(!path.contains("\u{1B}"))
    }
  }

  @Test("A program is named by its client, by its title, or by its own name") func names() throws {
    let fake = try FakeProgram(TemporaryFolder(), program: "b-c")
    let link = Link(path: fake.path, connection: try ProgramConnection(path: fake.path))
    let hello = Hello(program: "b c", pid: 2, name: "main", started: 0, now: 0)
    let program = Program(link: link, hello: hello)
    for name in ["main", "b c", "b c · main", "b c - main"] { #expect(program.isNamed(name)) }
    #expect(!program.isNamed("b-c"))
  }

  @Test("A path that is very long does not pad the other lines") func longPath() throws {
    let path = [String(repeating: "p", count: 5_000)]
    let stores = [Blog.store(1, path, "Q"), Blog.store(2, ["posts"], "Q")]
    let text = PlainText(style: OutputStyle(environment: [:], isTerminal: false))
    let lines = text.table(try Blog.model(stores), now: Blog.now).map(\.text)
    #expect(lines.contains { $0.contains(path[0] + "  Q") })
    #expect(lines.filter { $0.count > 200 }.count == 1)
  }

  @Test("Where the locale is not UTF-8, the title has no sign outside of ASCII") func plainTitle() {
    let hello = Hello(program: "p", pid: 1, name: "c", started: 0, now: 0)
    let styles = ["C", "C.UTF-8"].map {
      OutputStyle(environment: ["LC_ALL": $0], isTerminal: false)
    }
    #expect(styles.map { PlainText(style: $0).title(hello) } == ["p - c", "p · c"])
  }
}
