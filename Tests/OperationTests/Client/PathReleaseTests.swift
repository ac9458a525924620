import Testing

@testable import Operation

/// Path elements have types of the user, and their deinitialisers are user code. A client releases
/// elements without its lock, so that a deinitialiser may use the client.
@Suite("The release of a path", .timeLimit(.minutes(5))) struct PathReleaseTests {
  private let clock = ManualClock()
  private let client: OperationClient
  /// The number of stores at each release of an element.
  private let ends = Recorder<Int>()

  init() {
    client = OperationClient(defaults: .testing, clock: clock)
  }

  private func sentinel() -> Sentinel {
    Sentinel(1) { [weak client, ends] in ends.append(client?.stores(matching: []).count ?? -1) }
  }

  private func number(_ path: OperationPath) -> Query<Int, any Error> {
    Query(path: path) { _ in 1 }
  }

  @Test("The path of a cleared store is released at its deadline")
  func deadline() async {
    _ = client.store(for: number(["kept"]).retained(.forever))
    _ = client.store(for: number(["gone", sentinel()]))
    client.clearStore(with: ["gone", Sentinel(1) {}])
    #expect(ends.count == 0)
    await clock.advance(by: .seconds(300))
    #expect(ends.all == [1])
  }

  @Test("The path of a cleared store is released when its deadline is swept with others")
  func sweptDeadline() {
    let kept = client.store(for: number(["kept"]))
    _ = client.store(for: number(["gone", sentinel()]))
    client.clearStore(with: ["gone", Sentinel(1) {}])
    for id in 0..<100 {
      _ = client.store(for: number(["other", id]))
      client.clearStore(with: ["other", id])
    }
    // The creation of a store sweeps the deadlines, and that store is counted.
    #expect(ends.all == [2])
    withExtendedLifetime(kept) {}
  }

  @Test("The path element of a branch is released with the last store of the branch")
  func branch() async {
    _ = client.store(for: number(["user", sentinel(), "posts"]))
    _ = client.store(for: number(["user", Sentinel(1) {}, "friends"]).retained(.forever))
    await clock.advance(by: .seconds(300))
    #expect(ends.count == 0)
    client.clearStores()
    #expect(ends.all == [0])
  }

  @Test("The path element of an entry is released with the last store of the entry")
  func entry() async {
    await OperationIssue.withHandler({ _ in }) {
      _ = client.store(for: number(["user", sentinel()]))
      _ = client.store(
        for: Query<String, any Error>(path: ["user", Sentinel(1) {}]) { _ in "" }
          .retained(.forever))
      await clock.advance(by: .seconds(300))
      #expect(client.stores(matching: []).count == 1)
      #expect(ends.count == 0)
      client.clearStores()
      #expect(ends.all == [0])
    }
  }

  @Test("A path that is looked up is not retained if a store has an equal path")
  func equalPath() {
    _ = client.store(for: number(["user", Sentinel(1) {}]).retained(.forever))
    _ = client.store(for: number(["user", sentinel()]))
    #expect(ends.all == [1])
  }
}
