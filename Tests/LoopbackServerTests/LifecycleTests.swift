import Dispatch
import Foundation
import FoundationNetworking
import Glibc
import LoopbackServer
import Synchronization
import Testing

@Suite struct LifecycleTests {
  @Test func secondStartIsAnErrorAndSecondStopIsNot() async throws {
    let server = LoopbackServer(router: Router())
    server.stop()
    try server.start()
    #expect(throws: ServerError.alreadyRunning) { try server.start() }
    server.stop()
    server.stop()
    try server.start()
    #expect(try await server.fetch("/").status == 404)
    server.stop()
  }

  /// Runs in a process of its own, where no other server gets the port.
  @Test func stopReleasesThePort() async {
    await #expect(processExitsWith: .success) {
      let server = LoopbackServer(router: Router())
      try server.start()
      _ = try RawSocket(connectedTo: server.baseURL)
      server.stop()
      #expect(throws: ServerError.system(call: "connect", code: ECONNREFUSED)) {
        _ = try RawSocket(connectedTo: server.baseURL)
      }
    }
  }

  @Test func serverThatNobodyHoldsStops() throws {
    var server: LoopbackServer? = LoopbackServer(router: Router())
    try server?.start()
    let url = try #require(server?.baseURL)
    server = nil
    #expect(throws: ServerError.system(call: "connect", code: ECONNREFUSED)) {
      _ = try RawSocket(connectedTo: url)
    }
  }

  /// Passes only when all 50 handlers run at once, since each waits for the others.
  @Test func fiftyRequestsAreServedAtOnce() async throws {
    let count = 50
    let arrived = Mutex(0)
    let everyone = DispatchSemaphore(value: 0)
    var router = Router()
    router.get("/meet/:id") { request in
      let isLast = arrived.withLock { arrived in
        arrived += 1
        return arrived == count
      }
      if isLast { for _ in 0..<count { everyone.signal() } }
      guard everyone.wait(timeout: .now() + 20) == .success else { return Response(status: 504) }
      return .status(200, request.parameters["id"] ?? "")
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = count
    let session = URLSession(configuration: configuration)
    try await withServer(router) { server async throws in
      try await withThrowingTaskGroup { group in
        for id in 0..<count {
          group.addTask {
            let answer = try await server.fetch("/meet/\(id)", session: session)
            return try answer.status == 200 && answer.message == "\(id)"
          }
        }
        for try await isRight in group { #expect(isRight) }
      }
      #expect(server.requestCount(for: "/meet/:id") == count)
    }
    session.invalidateAndCancel()
  }

  @Test func stopInterruptsWaitingConnections() async throws {
    let behaviour = ServerBehaviour(latency: .seconds(600))
    let limits = ServerLimits(timeout: .seconds(600))
    let server = LoopbackServer(router: Router(), behaviour: behaviour, limits: limits)
    try server.start()
    let silent = try RawSocket(connectedTo: server.baseURL)
    let waiting = try RawSocket(connectedTo: server.baseURL)
    try waiting.send("GET /slow HTTP/1.1\r\n\r\n")
    while server.requestCount(for: "/slow") == 0 { await Task.yield() }
    server.stop()
    #expect(try waiting.readToEnd() == "")
    // Accepted or not yet, this one is cut too; how the client sees it depends on that.
    _ = try? silent.readToEnd()
  }

  /// Runs in a process of its own, where no other test opens or closes anything.
  @Test func stopLeavesNoDescriptorAndNoThread() async {
    await #expect(processExitsWith: .success) {
      func entries(_ directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(directory)")
      }
      // What else a process has open is not the server's: the one of the test's own timers comes late.
      func sockets() throws -> Int {
        try entries("fd").count { number in
          let target = try? FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/self/fd/\(number)")
          return target?.hasPrefix("socket:") == true
        }
      }
      func startAndStop() throws {
        // A machine with much to do may leave a thread without its turn for longer than a client waits.
        let server = LoopbackServer(
          router: Router(BlogRoutes()), behaviour: ServerBehaviour(latency: .zero),
          limits: ServerLimits(timeout: .seconds(600)))
        try server.start()
        let idle = try RawSocket(connectedTo: server.baseURL)
        #expect(try server.exchange("GET /authors HTTP/1.1\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        server.stop()
        _ = try? idle.readToEnd()
      }
      try startAndStop()
      let (descriptors, threads) = (try sockets(), try entries("task").count)
      for _ in 0..<50 { try startAndStop() }
      #expect(try sockets() == descriptors)
      // A thread ends a moment after its last statement.
      let deadline = ContinuousClock.now + .seconds(60)
      while try entries("task").count > threads, .now < deadline { await Task.yield() }
      #expect(try entries("task").count <= threads)
    }
  }
}
