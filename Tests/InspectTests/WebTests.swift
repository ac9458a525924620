import Foundation
import Testing

@testable import inspect

/// The server of the page, without a browser.
@Suite(.serialized, .timeLimit(.minutes(5))) struct WebTests {
  @Test("The page is served with its token, and its policy allows nothing else") func page()
    async throws
  {
    try await onThread {
      let web = try WebChild(try FakeProgram(TemporaryFolder()))
      let answer = try web.answer(to: web.request("GET", "/", token: web.token))
      #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(answer.contains("Content-Security-Policy: default-src 'none'; script-src 'nonce-"))
      #expect(answer.contains("X-Content-Type-Options: nosniff\r\n"))
      #expect(answer.contains("Referrer-Policy: no-referrer\r\n"))
      #expect(
        !answer.contains("http://") && !answer.contains("https://") || answer.contains("www.w3.org")
      )
      #expect(!answer.contains("innerHTML") && !answer.contains("insertAdjacentHTML"))
      #expect(!answer.contains(" onclick=") && !answer.contains(" style="))
    }
  }

  @Test(
    "A request without the token, or with a foreign host or origin, is refused",
    arguments: ["/", "/events", "/command"])
  func refused(_ path: String) async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let method = path == "/command" ? "POST" : "GET"
      let good = web.token
      let foreign = ["Origin: http://evil.test"]
      let neighbour = ["Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"]
      let requests = [
        web.request(method, path, token: nil), web.request(method, path, token: ""),
        web.request(method, path, token: String(good.dropLast()) + "x"),
        web.request(method, path, token: good.uppercased() + "0"),
        web.request(method, path, host: "evil.test", token: good),
        web.request(method, path, host: "127.0.0.1", token: good),
        web.request(method, path, host: "127.0.0.1:\(web.port).evil.test", token: good),
        web.request(method, path, token: good, fields: foreign),
        web.request(method, path, token: good, fields: ["Origin: null"]),
        web.request(method, path, token: good, fields: neighbour),
        web.request(method, path, token: good, fields: ["Sec-Fetch-Site: cross-site"]),
        "\(method) \(path)?token=\(good) HTTP/1.1\r\n\r\n",
      ]
      for request in requests {
        let answer = try web.answer(to: request)
        #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(request)")
        #expect(answer.hasSuffix("\r\n\r\n") && !answer.contains(good))
      }
      let twice = "Host: 127.0.0.1:\(web.port)\r\nHost: evil.test"
      let answer = try web.answer(
        to: "\(method) \(path)?token=\(good) HTTP/1.1\r\n\(twice)\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 400 "))
    }
  }

  @Test("The events are those of the program, and commands reach it") func stream() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let stream = try web.connect(web.request("GET", "/events", token: web.token))
      let peer = try program.serveBlog()
      let text = try stream.text(
        with: [#"data: {"type":"stream","id":1}"#, "data: \(Blog.snapshot)\n\n"])
      #expect(text.contains("Content-Type: text/event-stream\r\n"))
      func post(_ body: String, stream: String = "1", type: String = "application/json") throws
        -> String
      { try web.post(body, stream: stream, type: type) }
      #expect(try post(#"{"id":5,"command":"invalidate","store":4}"#) == "204")
      let command = try peer.command()
      #expect(command == .init(id: 5, command: "invalidate", store: 4))
      #expect(try post(#"{"id":6,"command":"offline","offline":true}"#) == "204")
      #expect(try peer.command() == .init(id: 6, command: "offline", value: true))
      #expect(try post(#"{"id":7,"command":"unwatch"}"#, stream: "2") == "409")
      for body in [
        #"{"id":7,"command":"other","store":1}"#, "[]", #"{"id":7,"command":"watch"}"#, "{",
      ] {
        #expect(try post(body) == "400")
      }
      #expect(try post(#"{"id":7,"command":"unwatch"}"#, type: "text/plain") == "415")
      let noOrigin = web.request("POST", "/command?stream=1", token: web.token, body: "{}")
      #expect(try web.answer(to: noOrigin).hasPrefix("HTTP/1.1 403 "))
    }
  }

  @Test("A command for a store of one program does not reach the next one") func nextProgram()
    async throws
  {
    try await onThread {
      let runtime = try TemporaryFolder()
      var program: FakeProgram? = try FakeProgram(runtime, pid: 1)
      let web = try WebChild(try #require(program), arguments: ["--wait"])
      let stream = try web.connect(web.request("GET", "/events", token: web.token))
      var peer = try program?.serveBlog(pid: 1)
      _ = try stream.text(with: [#"{"type":"stream","id":1}"#, Blog.snapshot])
      (program, peer) = (nil, nil)
      _ = try stream.text(with: [#"{"type":"ended","waits":true}"#])
      program = try FakeProgram(runtime, pid: 2)
      peer = try program?.serveBlog(pid: 2)
      let text = try stream.text(with: [Blog.hello(pid: 2), Blog.snapshot])
      #expect(text.hasPrefix(#"data: {"type":"stream","id":2}"#))
      #expect(!text.contains("HTTP/1.1"))
      let body = #"{"id":1,"command":"clear","store":4}"#
      #expect(try web.post(body, stream: "1") == "409")
      #expect(try web.post(body, stream: "2") == "204")
      #expect(try peer?.command() == .init(id: 1, command: "clear", store: 4))
    }
  }

  @Test("A page receives the greeting that was read to find the program")
  func greeting() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let connection = try ProgramConnection(path: program.path)
      let peer = try program.serveBlog()
      #expect(connection.firstMessage(before: Time.monotonic + 60) != nil)
      let (page, end) = try Descriptor.pair()
      page.setNonBlocking()
      WebConnection(end).connect(to: connection, waits: true)
      guard case .bytes(let bytes) = page.read() else { throw Stuck(description: "no greeting") }
      #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("data: \(Blog.hello())\n\n"))
      withExtendedLifetime(peer) {}
    }
  }

  @Test("A page that does not read stops the reads from its program, and delays no other")
  func stuck() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let stuck = try web.connect(web.request("GET", "/events", token: web.token))
      let peer = try program.serveBlog()
      let value = String(repeating: "x", count: 100_000)
      let line = Blog.changes(stores: [Blog.store(1, ["posts"], "PostsQuery", value: value)])
      #expect(try peer.sendUntilFull(line) < 200)
      #expect(
        try web.answer(to: web.request("GET", "/", token: web.token)).hasPrefix("HTTP/1.1 200"))
      withExtendedLifetime(stuck) {}
    }
  }

  @Test("A hundred idle connections do not block a request")
  func connections() async throws {
    try await onThread {
      let web = try WebChild(try FakeProgram(TemporaryFolder()))
      let idle = try (0..<100).map { _ in try web.connect("GET /") }
      #expect(
        try web.answer(to: web.request("GET", "/", token: web.token)).hasPrefix("HTTP/1.1 200"))
      withExtendedLifetime(idle) {}
    }
  }

  @Test(
    "Bytes are parsed to requests",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: a\r\n", HTTPRequest.Parsing.incomplete),
      ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", .incomplete),
      (
        "POST /c?a=1&b HTTP/1.1\r\nHost:  a\r\nContent-Length: 2\r\n\r\nab",
        .request(
          HTTPRequest(
            method: "POST", path: "/c", query: ["a": "1", "b": ""],
            fields: ["host": "a", "content-length": "2"], body: Array("ab".utf8)))
      ),
      ("GET /\r\n\r\n", .refused(status: 400)), ("GET x HTTP/1.1\r\n\r\n", .refused(status: 400)),
      ("GET / HTTP/1.1\r\nno colon\r\n\r\n", .refused(status: 400)),
      ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", .refused(status: 400)),
      ("GET / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", .refused(status: 413)),
      ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", .refused(status: 501)),
      ("\r\n\r\n", .refused(status: 400)),
      (String(repeating: "a", count: 20_000), .refused(status: 431)),
    ] as [(String, HTTPRequest.Parsing)])
  func parse(_ text: String, _ expected: HTTPRequest.Parsing) {
    #expect(HTTPRequest.parse(Array(text.utf8)) == expected)
  }

  @Test("Every gate has its own token") func tokens() {
    let tokens = Set((0..<50).map { _ in WebGate(port: 1).token })
    #expect(tokens.count == 50 && tokens.allSatisfy { $0.count == 32 })
  }

  @Test(
    "What the server does not have, and methods that it does not take, are refused",
    arguments: [
      ("GET", "/other", 404), ("GET", "/favicon.ico", 404), ("HEAD", "/", 405),
      ("POST", "/events", 405), ("GET", "/command", 405),
    ])
  func notServed(_ method: String, _ path: String, _ status: Int) {
    let request = HTTPRequest(
      method: method, path: path, query: ["token": "secret"], fields: ["host": "localhost:8080"])
    #expect(WebGate(port: 8080, token: "secret").decide(request) == .refused(status: status))
  }

  @Test("A page that is opened after the end of the program is told so", arguments: [true, false])
  func late(_ waits: Bool) async throws {
    try await onThread {
      var program: FakeProgram? = try FakeProgram(TemporaryFolder())
      let web = try WebChild(try #require(program), arguments: waits ? ["--wait"] : [])
      program = nil
      let stream = try web.connect(web.request("GET", "/events", token: web.token))
      _ = try stream.text(
        with: [#"{"type":"stream","id":1}"#, #"data: {"type":"ended","waits":\#(waits)}"#])
    }
  }

  @Test("All pages are connected to the next start of the program") func allPages() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      var program: FakeProgram? = try FakeProgram(runtime, pid: 1)
      let web = try WebChild(try #require(program), arguments: ["--wait"])
      program = nil
      let streams = try (1...3).map { _ in
        try web.connect(web.request("GET", "/events", token: web.token))
      }
      for stream in streams { _ = try stream.text(with: [#"{"type":"ended","waits":true}"#]) }
      program = try FakeProgram(runtime, pid: 2)
      let peers = try streams.map { _ in try program?.serveBlog(pid: 2) }
      for stream in streams {
        let text = try stream.text(with: [Blog.hello(pid: 2), Blog.snapshot])
        // At once: a page does not begin again with the search for another one.
        #expect(text.split(separator: #"{"type":"stream""#).count == 2)
      }
      withExtendedLifetime(peers) {}
    }
  }

  @Test("A port that another server has is an error") func port() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let second = try ProgramChild(
        [TerminalChild.program("inspect"), program.path, "--web", "--port", "\(web.port)"],
        readsErrors: true)
      #expect(try second.line() == "inspect: port \(web.port): Address already in use")
      #expect(try second.waitForEnd() == 1)
    }
  }

  @Test(
    "Only a page of the same origin, or no page, gets the page",
    arguments: [(nil, true), ("none", true), ("same-origin", true), ("same-site", false)])
  func site(_ site: String?, _ isServed: Bool) {
    var request = HTTPRequest(method: "GET", path: "/", query: ["token": "secret"])
    request.fields = ["host": "localhost:8080"]
    request.fields["sec-fetch-site"] = site
    let decision = WebGate(port: 8080, token: "secret").decide(request)
    #expect(decision == (isServed ? .page : .refused(status: 403)))
  }

  @Test(
    "A browser leaves out the port 80",
    arguments: [(80, "127.0.0.1", true), (80, "localhost:80", false), (8080, "localhost", false)])
  func port80(_ port: UInt16, _ host: String, _ isServed: Bool) {
    var request = HTTPRequest(method: "GET", path: "/", query: ["token": "secret"])
    request.fields = ["host": host, "origin": "http://\(host)"]
    let decision = WebGate(port: port, token: "secret").decide(request)
    #expect(decision == (isServed ? .page : .refused(status: 403)))
  }

  @Test("A connection takes one request", arguments: [false, true])
  func oneRequest(_ isStream: Bool) throws {
    let (page, end) = try Descriptor.pair()
    end.setNonBlocking()
    let connection = WebConnection(end)
    let bytes = Array("GET / HTTP/1.1\r\n\r\n".utf8)
    #expect(page.write(bytes) == bytes.count)
    #expect(connection.readRequest() == .request(HTTPRequest(method: "GET", path: "/")))
    if isStream { connection.beginStream(1) } else { connection.answer(HTTPResponse(status: 200)) }
    #expect(page.write(bytes) == bytes.count)
    #expect(connection.readRequest() == .incomplete && !connection.isClosed)
  }

  @Test("Idle connections do not end a stream") func idleBesideStream() async throws {
    try await onThread {
      let program = try FakeProgram(TemporaryFolder())
      let web = try WebChild(program)
      let stream = try web.connect(web.request("GET", "/events", token: web.token))
      let peer = try program.serveBlog()
      _ = try stream.text(with: [Blog.snapshot])
      let idle = try (0..<100).map { _ in try web.connect("GET /") }
      #expect(try web.post(#"{"id":5,"command":"unwatch"}"#, stream: "1") == "204")
      #expect(try peer.command() == .init(id: 5, command: "unwatch"))
      withExtendedLifetime(idle) {}
    }
  }
}
