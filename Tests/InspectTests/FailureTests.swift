import Foundation
import Glibc
import Testing

@testable import inspect

/// What a user sees of a program that refuses the inspector, stops or ends.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FailureTests {
  private func child(
    _ program: FakeProgram, _ arguments: [String], readsErrors: Bool = true
  ) throws -> ProgramChild {
    try ProgramChild(
      [TerminalChild.program("inspect"), program.path] + arguments, readsErrors: readsErrors)
  }

  private func lines(_ child: ProgramChild) throws -> [String] {
    var lines: [String] = []
    while let line = try child.line() { lines.append(line) }
    return lines
  }

  @Test(
    "The reason for which a program refuses the connection is printed",
    arguments: [
      ("--once", "inspect: It is full. [2J", Int32(1)),
      ("--svg", "inspect: It is full. [2J", 1),
      ("--follow", "inspect: It is full. [2J", 1),
    ])
  func refused(_ form: String, _ text: String, _ status: Int32) async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, [form])
      try program.accept().send(#"{"type":"bye","reason":"It is full.\u001B[2J"}"#)
      let lines = try lines(child)
      #expect(lines.count == 1 && lines[0].hasSuffix(text))
      #expect(try child.waitForEnd() == status)
    }
  }

  @Test("A refusal that is repeated is printed once") func refusedAgain() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--follow", "--wait"])
      for reason in ["It is full.", "It is full.", "It is busy.", "It is full."] {
        try program.accept().send(#"{"type":"bye","reason":"\#(reason)"}"#)
      }
      for reason in ["full", "busy", "full"] {
        #expect(try child.line() == "inspect: It is \(reason).")
      }
    }
  }

  @Test("A program that ends before its greeting does not answer") func noGreeting() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--once", "--json"])
      try program.accept().send("")
      #expect(try lines(child) == ["inspect: the program does not answer"])
      #expect(try child.waitForEnd() == 1)
    }
  }

  @Test("The wait for a line ends at its deadline") func deadline() throws {
    let program = try FakeProgram(TemporaryFolder())
    let connection = try ProgramConnection(path: program.path)
    #expect(connection.nextLine(before: Time.monotonic - 1) == nil)
    #expect(connection.firstMessage(before: Time.monotonic - 1) == nil && !connection.isEnded)
    try program.accept().send("first")
    // What has arrived by then is read.
    #expect(connection.nextLine(before: Time.monotonic - 1) == Array("first".utf8))
    // The peer was released, which closed the connection.
    #expect(connection.nextLine(before: nil) == nil && connection.isEnded)
    connection.send(.unwatch)
    #expect(!connection.hasOutput)
  }

  @Test("A program that is stopped and accepts no connection is not waited for") func stopped()
    throws
  {
    let program = try FakeProgram(TemporaryFolder())
    var connections: [ProgramConnection] = []
    let error = #expect(throws: InspectError.self) {
      while connections.count < 1_000 {
        connections.append(try ProgramConnection(path: program.path))
      }
    }
    #expect(error?.description == "\(program.path): Resource temporarily unavailable")
  }

  @Test("The path of a socket that is too long is an error") func longPath() {
    let path = "/" + String(repeating: "a", count: 108)
    #expect(throws: InspectError("\(path): the path is too long")) {
      try ProgramConnection(path: path)
    }
  }

  @Test("--follow ends when its output is not read any more") func closedPipe() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let script = #""$0" "$1" --follow | head -n 1; echo "${PIPESTATUS[0]}""#
      let child = try ProgramChild([
        "/bin/bash", "-c", script, TerminalChild.program("inspect"), program.path,
      ])
      let peer = try program.serveBlog()
      // Until the inspector has ended.
      while (try? peer.send(Blog.changes(missed: 1))) != nil {}
      #expect(try lines(child) == ["posts (pid 123), up 12:34, 6 stores", "0"])
    }
  }

  @Test("Lines that are no messages, and stores that are not known, do not stop --follow")
  func unknown() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let child = try child(program, ["--follow"], readsErrors: false)
      let peer = try program.accept()
      for line in ["", "{", #"{"type":"later"}"#, Blog.hello()] { try peer.send(line) }
      try peer.send(Blog.snapshot([]))
      #expect(try child.line() == "posts (pid 123), up 12:34, 0 stores")
      #expect(try child.line()?.hasSuffix("PATH  REQUEST") == true)
      let kinds = [("paused", nil), ("runEnded", "success"), ("added", nil)]
      let events = kinds.map { Blog.event(9, $0, run: 2, outcome: $1) }
      try peer.send(Blog.changes(events: events))
      #expect(try child.line()?.hasSuffix(" store 9 run 2 paused") == true)
      #expect(try child.line()?.hasSuffix(" store 9 run 2 ended: success") == true)
      #expect(try child.line()?.hasSuffix(" store 9 added") == true)
    }
  }

  @Test("A store of the next program does not have the name of one that was removed")
  func removedNames() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      var program: FakeProgram? = try FakeProgram(runtime, pid: 1)
      let child = try child(try #require(program), ["--follow", "--wait"], readsErrors: false)
      var peer = try program?.serveBlog(pid: 1)
      for _ in 0..<8 { _ = try child.line() }
      try peer?.send(Blog.changes(removed: [4], events: [Blog.event(4, "removed")]))
      #expect(try child.line()?.hasSuffix(" posts/3 removed") == true)
      (program, peer) = (nil, nil)
      program = try FakeProgram(runtime, pid: 2)
      peer = try program?.serveBlog([], pid: 2)
      for _ in 0..<2 { _ = try child.line() }
      try peer?.send(Blog.changes(events: [Blog.event(4, "removed")]))
      #expect(try child.line()?.hasSuffix(" store 4 removed") == true)
    }
  }
}
