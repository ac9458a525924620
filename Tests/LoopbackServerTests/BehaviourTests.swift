import Foundation
import LoopbackServer
import Testing

@Suite struct BehaviourTests {
  private func statuses(_ count: Int, of path: String, at server: LoopbackServer) async throws
    -> [Int]
  {
    var statuses: [Int] = []
    for _ in 0..<count { statuses.append(try await server.fetch(path).status) }
    return statuses
  }

  @Test func firstRequestsFailThenSucceed() async throws {
    let behaviour = ServerBehaviour(latency: .zero, faults: [.init("/posts", .first(2))])
    try await withServer(behaviour: behaviour) { server async throws in
      #expect(try await server.fetch("/posts/1").status == 200)
      #expect(try await statuses(4, of: "/posts?page=1", at: server) == [503, 503, 200, 200])
    }
  }

  @Test func faultsFollowTheirSchedule() async throws {
    let behaviour = ServerBehaviour(
      latency: .zero,
      faults: [
        .init("/posts/:id", .every(2), status: 500), .init("/authors", .always, status: 429),
        .init("/authors/2", .every(0)),
      ])
    try await withServer(behaviour: behaviour) { server async throws in
      #expect(try await server.fetch("/posts/1").status == 200)
      #expect(try await server.fetch("/posts/2").status == 500)
      #expect(try await server.fetch("/posts/1").status == 200)
      #expect(try await statuses(2, of: "/authors", at: server) == [429, 429])
      #expect(try await statuses(2, of: "/authors/2", at: server) == [200, 200])
    }
  }

  @Test func hangsUpInTheMiddleOfAnAnswer() async throws {
    let get = "GET /posts/1 HTTP/1.1\r\nHost: x\r\n\r\n"
    let whole = try await answer(to: get, hangingUpAfter: .max)
    #expect(whole.hasPrefix("HTTP/1.1 200 OK\r\n"))
    for bytes in [0, 1, 20, whole.utf8.count - 1] {
      let answer = try await answer(to: get, hangingUpAfter: bytes)
      #expect(answer == String(decoding: whole.utf8.prefix(bytes), as: UTF8.self))
    }
    #expect(try await answer(to: get, hangingUpAfter: -1) == "")
  }

  private func answer(to text: String, hangingUpAfter bytes: Int) async throws -> String {
    let fault = ServerBehaviour.Fault("/posts/1", .always, hangUpAfter: bytes)
    var answer = ""
    try await withServer(behaviour: ServerBehaviour(latency: .zero, faults: [fault])) { server in
      answer = try server.exchange(text)
    }
    return answer
  }

  @Test func requestsAreCountedByPath() async throws {
    try await withServer { server async throws in
      _ = try await statuses(3, of: "/posts/1?x=1", at: server)
      _ = try await statuses(2, of: "/posts/2", at: server)
      _ = try await statuses(1, of: "/nothing", at: server)
      #expect(server.requestCount(for: "/posts/1") == 3)
      #expect(server.requestCount(for: "/posts/:id") == 5)
      #expect(server.requestCount(for: "/nothing") == 1)
      #expect(server.requestCount(for: "/posts") == 0)
    }
  }

  @Test func latencyDelaysTheAnswer() async throws {
    let behaviour = ServerBehaviour(
      latency: .milliseconds(50), delays: [.init("/authors/:id", .milliseconds(120))])
    try await withServer(behaviour: behaviour) { server async throws in
      let clock = ContinuousClock()
      let usual = try await clock.measure { _ = try await server.fetch("/authors") }
      let slow = try await clock.measure { _ = try await server.fetch("/authors/1") }
      #expect(usual >= .milliseconds(50))
      #expect(slow >= .milliseconds(120))
    }
  }
}
