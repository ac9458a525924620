import Foundation
import LoopbackServer
import Testing

@Suite struct RouterTests {
  private struct Failure: Error {}

  private struct Echo: Codable, Equatable {
    var path: String
    var parameters: [String: String]
    var query: [String: String]
  }

  private static func echoRouter() -> Router {
    var router = Router()
    router.get("/echo/:first/:second") { request in
      try .json(
        Echo(path: request.path, parameters: request.parameters, query: request.query))
    }
    router.post("/header") { request in
      .status(200, request.headers["x-custom"] ?? "none")
    }
    router.post("/length") { .status(200, "\($0.body.count)") }
    router.get("/failure") { _ in throw Failure() }
    router.get("/teapot") { _ in throw HTTPError(418, "I am a teapot.") }
    router.delete("/things/:id") { _ in Response(status: 204) }
    router.get("/things/latest") { _ in .status(200, "literal") }
    router.get("/things/:id") { _ in .status(200, "parameter") }
    return router
  }

  @Test func unknownRouteIs404() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      for path in ["/", "/nothing", "/echo/one", "/echo/one/two/three"] {
        let answer = try await server.fetch(path)
        #expect(answer.status == 404)
        #expect(try answer.message == "There is nothing at \(path).")
      }
    }
  }

  @Test func wrongMethodIs405() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      let answer = try await server.fetch("/things/latest", method: "PUT")
      #expect(answer.status == 405)
      #expect(answer.header("Allow") == "DELETE, GET")
      #expect(try answer.message == "PUT is not allowed at /things/latest.")
    }
  }

  @Test func thrownErrorIs500UnlessItHasAStatus() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      let failure = try await server.fetch("/failure")
      #expect(failure.status == 500)
      #expect(try failure.message == "Failure()")
      let teapot = try await server.fetch("/teapot")
      #expect(teapot.status == 418)
      #expect(try teapot.message == "I am a teapot.")
    }
  }

  @Test func firstMatchWins() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      #expect(try await server.fetch("/things/latest").message == "literal")
      #expect(try await server.fetch("/things/3").message == "parameter")
      let deleted = try await server.fetch("/things/3", method: "DELETE")
      #expect(deleted.status == 204)
      #expect(deleted.data.isEmpty)
    }
  }

  @Test func pathAndQueryAreDecodedOnce() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      let path = "/echo/a%2Fb/caf%C3%A9%2520?q=1%2B1+%26&empty=&flag&q=2&n%20m=x=y"
      let echo = try await server.fetch(path).decode(Echo.self)
      let expected = Echo(
        path: "/echo/a/b/café%20", parameters: ["first": "a/b", "second": "café%20"],
        query: ["q": "1+1+&", "empty": "", "flag": "", "n m": "x=y"])
      #expect(echo == expected)
    }
  }

  @Test func headerNamesIgnoreCase() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      let answer = try server.exchange(
        "POST /header HTTP/1.1\r\nHost: x\r\nX-CUSTOM: one \r\nx-Custom:two\r\n\r\n")
      #expect(answer.hasSuffix(#"{"message":"one, two","status":200}"#))
    }
  }

  @Test func largeBodyArrivesWhole() async throws {
    try await withServer(Self.echoRouter()) { server async throws in
      let body = String(repeating: "x", count: 1024 * 1024)
      let answer = try await server.fetch("/length", method: "POST", body: body)
      #expect(try answer.message == "1048576")
    }
  }
}
