import Foundation
import Glibc
import Testing

@testable import LoopbackServer

/// Checks what goes over the wire, with requests that `URLSession` would not send.
@Suite struct WireTests {
  @Test func answerHasTheExpectedForm() async throws {
    var router = Router()
    router.get("/text") { _ in
      Response(headers: ["Content-Type": "text/plain"], body: Data("hello".utf8))
    }
    let head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
      + "Content-Length: 5\r\nConnection: close\r\n\r\n"
    try await withServer(router) { server async throws in
      #expect(try server.exchange("GET /text HTTP/1.1\r\nHost: x\r\n\r\n") == head + "hello")
      #expect(try server.exchange("HEAD /text HTTP/1.1\r\nHost: x\r\n\r\n") == head)
    }
  }

  @Test(arguments: [
    "\r\n\r\n", "GET\r\n\r\n", "GET /posts\r\n\r\n", "GET  /posts HTTP/1.1\r\n\r\n",
    "GET posts HTTP/1.1\r\n\r\n", "G(T /posts HTTP/1.1\r\n\r\n", "GET /posts FTP/1.1\r\n\r\n",
    "GET /a\nb HTTP/1.1\r\n\r\n", "GET /café HTTP/1.1\r\n\r\n", "GET /a\r\r\n\r\n",
    "GET /%ZZ HTTP/1.1\r\n\r\n", "GET /%FF HTTP/1.1\r\n\r\n", "GET /posts?a=% HTTP/1.1\r\n\r\n",
    "GET /posts HTTP/1.1\r\nNo colon\r\n\r\n", "GET /posts HTTP/1.1\r\nName : x\r\n\r\n",
    "GET /posts HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "GET /posts HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
    "POST /posts HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "POST /posts HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
  ])
  func malformedRequestIs400(text: String) async throws {
    try await withServer { server async throws in
      #expect(try server.exchange(text).hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
    }
  }

  @Test func unsupportedRequestsAreRefused() async throws {
    try await withServer { server async throws in
      let chunked = "POST /posts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
      #expect(try server.exchange(chunked).hasPrefix("HTTP/1.1 501 "))
      #expect(try server.exchange("GET / HTTP/2.0\r\n\r\n").hasPrefix("HTTP/1.1 505 "))
    }
  }

  @Test func headAndBodyAreBounded() async throws {
    let limits = ServerLimits(headSize: 100, bodySize: 10)
    try await withServer(limits: limits) { server async throws in
      let long = String(repeating: "x", count: 200_000)
      #expect(try server.exchange("GET /\(long)").hasPrefix("HTTP/1.1 431 "))
      #expect(try server.exchange("GET /\(long) HTTP/1.1\r\n\r\n").hasPrefix("HTTP/1.1 431 "))
      for length in ["11", "200000", "99999999999999999999999"] {
        let head = "POST /posts HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n"
        #expect(try server.exchange(head + long).hasPrefix("HTTP/1.1 413 "))
      }
      let exact = "POST /posts HTTP/1.1\r\nContent-Length: 10\r\n\r\n1234567890"
      #expect(try server.exchange(exact).hasPrefix("HTTP/1.1 400 "))
    }
  }

  @Test(arguments: [
    "", "GET /posts HT", "POST /posts HTTP/1.1\r\nContent-Length: 5\r\n\r\n{",
  ])
  func hangingClientIsDropped(text: String) async throws {
    try await withServer(limits: ServerLimits(timeout: .milliseconds(40))) { server async throws in
      #expect(try server.exchange(text).hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test func clientThatExpectsContinueIsAskedForTheBody() async throws {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n"
    try await withServer { server async throws in
      let socket = try RawSocket(connectedTo: server.baseURL)
      try socket.send("POST /nothing HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
      #expect(try socket.readToEnd(orUntil: interim) == interim)
      try socket.send("{}")
      #expect(try socket.readToEnd().hasPrefix("HTTP/1.1 404 "))
    }
  }

  @Test(.timeLimit(.minutes(5))) func clientThatNeverStopsSendingIsCut() async throws {
    let limits = ServerLimits(headSize: 100, timeout: .milliseconds(40))
    try await withServer(limits: limits) { server async throws in
      let socket = try RawSocket(connectedTo: server.baseURL)
      let chunk = String(repeating: "x", count: 1000)
      while (try? socket.send(chunk)) != nil {}
    }
  }

  @Test func sendingGivesUpOnAClientThatDoesNotRead() throws {
    var pair: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
    defer { for descriptor in pair { close(descriptor) } }
    let connection = Connection(descriptor: pair[0])
    #expect(throws: ServerError.system(call: "send", code: ETIMEDOUT)) {
      try connection.send(Data(count: 10_000_000), before: .now + .milliseconds(40))
    }
  }

  @Test func clientThatLeavesDoesNoHarm() async throws {
    try await withServer { server async throws in
      for text in ["", "GET /po", "GET /posts HTTP/1.1\r\n\r\n"] {
        try RawSocket(connectedTo: server.baseURL).send(text)
      }
      #expect(try await server.fetch("/posts").status == 200)
    }
  }
}
