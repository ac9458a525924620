import Foundation
import FoundationNetworking
import LoopbackServer
import SharingOperation
import Testing

@testable import posts

/// Faults of servers. Each one ends in a state that describes it, and changes no other state.
@Suite("Faults: servers", .timeLimit(.minutes(5))) struct ServerFaultTests {
  struct Score: Codable, Sendable, Equatable {
    var name: String
    var points: Int
  }

  /// The routes of the test.
  private struct Routes: RouteCollection {
    /// Each request of `/held` waits for one signal.
    let held: DispatchSemaphore
    static let megabytes = 10
    /// Encoded once, because the client waits for the encoding. An array, because the leak
    /// sanitizer does not find the memory of a global `Data`.
    private static let long = Array(
      #"{"name": "\#(String(repeating: "x", count: megabytes << 20))", "points": 1}"#.utf8)

    func register(in router: inout Router) {
      router.get("/score") { _ in try .json(Score(name: "Blob", points: 1_234)) }
      router.get("/held") { [held] _ in
        held.wait()
        return try .json(Score(name: "Blob", points: 1_234))
      }
      router.get("/half") { _ in
        Self.json(Data(#"{"name": "Blob", "points": 12."#.utf8))
      }
      router.get("/long") { _ in Self.json(Data(Self.long)) }
      router.get("/loop") { request in
        Response(status: 302, headers: ["Location": "http://\(request.headers["Host"] ?? "")/loop"])
      }
    }

    private static func json(_ body: Data) -> Response {
      Response(headers: ["Content-Type": "application/json"], body: body)
    }
  }

  /// A server, and a client with a second store that the fault must not affect.
  private struct Site {
    let server: LoopbackServer
    let held = DispatchSemaphore(value: 0)
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let neighbour: OperationStore<QueryState<Score, any Error>>
    private let api: BlogAPI

    init(
      _ behaviour: ServerBehaviour = ServerBehaviour(latency: .zero), patience: TimeInterval = 2
    ) throws {
      server = LoopbackServer(router: Router(Routes(held: held)), behaviour: behaviour)
      try server.start()
      api = BlogAPI(url: server.baseURL, patience: patience)
      neighbour = client.store(for: Query(path: ["neighbour"]) { _ in Score(name: "", points: 0) })
      neighbour.currentValue = Score(name: "Blob", points: 7)
    }

    func store(_ route: String) -> OperationStore<QueryState<Score, any Error>> {
      client.store(
        for: Query<Score, any Error>(path: ["score", route]) { [api] _ in try await api.get(route) }
      )
    }

    /// Runs a store whose run must fail, and returns the reason.
    func reason(
      of store: OperationStore<QueryState<Score, any Error>>
    ) async throws -> BlogError.Reason {
      let updates = store.valueUpdateCount
      let thrown = await #expect(throws: BlogError.self) { try await store.run() }
      #expect(store.error as? BlogError == thrown)
      #expect(store.status.isFailure)
      #expect(store.valueUpdateCount == updates)
      #expect(client.activity.queries.failed >= 1)
      expectPeace(in: store)
      return try #require(thrown).reason
    }

    func expectPeace(in store: OperationStore<QueryState<Score, any Error>>) {
      #expect(!store.isLoading)
      #expect(store.leaseCount == 0)
      #expect(client.activity.queries.running == 0)
      #expect(neighbour.currentValue?.points == 7)
      #expect(neighbour.valueUpdateCount == 1)
    }
  }

  private static func isNoConnection(_ reason: BlogError.Reason) -> Bool {
    if case .noConnection = reason { true } else { false }
  }

  /// In the first line, at the end of the head, and in the body. Between two lines of the head,
  /// FoundationNetworking of Swift 6.3 traps ("Transfer completed, but there's no response").
  @Test(
    "A server that hangs up within a response: no connection, and the old value is kept",
    arguments: [0, 1, 9, 90, 110])
  func hangsUp(after bytes: Int) async throws {
    let site = try Site(
      ServerBehaviour(latency: .zero, faults: [.init("/score", .every(2), hangUpAfter: bytes)]))
    defer { site.server.stop() }
    let store = site.store("score")
    #expect(try await store.run().points == 1_234)
    let reason = try await site.reason(of: store)
    #expect(Self.isNoConnection(reason), "\(reason)")
    #expect(store.currentValue?.points == 1_234)
    #expect(try await store.run().points == 1_234)
    #expect(store.error == nil)
    #expect(store.errorUpdateCount == 1)
    site.expectPeace(in: store)
  }

  @Test("A server that answers after the timeout: no connection, with the timeout as the reason")
  func late() async throws {
    let site = try Site(
      ServerBehaviour(latency: .zero, delays: [.init("/score", .seconds(20))]))
    defer { site.server.stop() }
    let store = site.store("score")
    #expect(try await site.reason(of: store) == .noConnection("the server did not answer in time"))
    #expect(store.currentValue == nil)
  }

  @Test("A server that answers after the call was cancelled: the caller returned, no value changes")
  func tooLate() async throws {
    let site = try Site(patience: 60)
    defer {
      // If the test has failed before it signals.
      for _ in 0..<2 { site.held.signal() }
      site.server.stop()
    }
    let store = site.store("held")
    store.currentValue = Score(name: "Blob", points: 5)
    let run = Task { try await store.run() }
    while site.server.requestCount(for: "/held") == 0 { await Task.yield() }
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(store.currentValue?.points == 5)
    // A new run beside the late response of the first one has its own value.
    let next = Task { try await store.run() }
    while site.server.requestCount(for: "/held") == 1 { await Task.yield() }
    for _ in 0..<2 { site.held.signal() }
    #expect(try await next.value.points == 1_234)
    #expect(store.valueUpdateCount == 2)
    #expect(store.errorUpdateCount == 0)
    site.expectPeace(in: store)
  }

  @Test("A server that answers with half a number: not a blog, and the value does not change")
  func halfANumber() async throws {
    let site = try Site()
    defer { site.server.stop() }
    let store = site.store("half")
    store.currentValue = Score(name: "Blob", points: 5)
    #expect(try await site.reason(of: store) == .notABlog)
    #expect(store.currentValue?.points == 5)
  }

  @Test("A server that answers with ten megabytes: the value has them, and a reset removes it")
  func tenMegabytes() async throws {
    // The machine may be busy, or the test may run under a sanitizer.
    let site = try Site(patience: 30)
    defer { site.server.stop() }
    let store = site.store("long")
    #expect(try await store.run().name.utf8.count == Routes.megabytes << 20)
    #expect(store.status.isSuccess)
    site.expectPeace(in: store)
    store.resetState()
    #expect(store.currentValue == nil)
  }

  @Test("A server that hangs up within ten megabytes: no connection")
  func hangsUpInMegabytes() async throws {
    let site = try Site(
      ServerBehaviour(latency: .zero, faults: [.init("/long", .always, hangUpAfter: 5 << 20)]))
    defer { site.server.stop() }
    let reason = try await site.reason(of: site.store("long"))
    #expect(Self.isNoConnection(reason), "\(reason)")
  }

  @Test("A server that redirects to itself: a failure, after a number of requests")
  func redirectsToItself() async throws {
    let site = try Site()
    defer { site.server.stop() }
    let store = site.store("loop")
    let reason = try await site.reason(of: store)
    #expect(reason != .notABlog, "\(reason)")
    let count = site.server.requestCount(for: "/loop")
    #expect(count > 1)
    // There are no more requests when the run has failed.
    try await #require(site.store("score").run().points == 1_234)
    #expect(site.server.requestCount(for: "/loop") == count)
  }
}
