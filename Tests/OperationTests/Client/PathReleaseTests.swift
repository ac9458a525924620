import Testing

@testable import Operation

/// Elements of paths are the user's, and so is what they do when they go away: that is done without
/// the lock of the client, where it may use the client.
@Suite("The end of a path", .timeLimit(.minutes(1))) struct PathReleaseTests {
  private let clock = ManualClock()
  private let client: OperationClient
  /// How many stores there were when an element went away.
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

  @Test("That of a store that is cleared, when its deadline comes")
  func deadline() async {
    _ = client.store(for: number(["kept"]).retained(.forever))
    _ = client.store(for: number(["gone", sentinel()]))
    client.clearStore(with: ["gone", Sentinel(1) {}])
    #expect(ends.count == 0)
    await clock.advance(by: .seconds(300))
    #expect(ends.all == [1])
  }

  @Test("That of a store whose deadline is swept with others")
  func sweptDeadline() {
    let kept = client.store(for: number(["kept"]))
    _ = client.store(for: number(["gone", sentinel()]))
    client.clearStore(with: ["gone", Sentinel(1) {}])
    for id in 0..<100 {
      _ = client.store(for: number(["other", id]))
      client.clearStore(with: ["other", id])
    }
    // By the creation of a store, which is counted.
    #expect(ends.all == [2])
    withExtendedLifetime(kept) {}
  }

  @Test("That by which a branch of the tree is found, when the last store there goes")
  func branch() async {
    _ = client.store(for: number(["user", sentinel(), "posts"]))
    _ = client.store(for: number(["user", Sentinel(1) {}, "friends"]).retained(.forever))
    await clock.advance(by: .seconds(300))
    #expect(ends.count == 0)
    client.clearStores()
    #expect(ends.all == [0])
  }

  @Test("That by which a place is found, when the last of its stores goes")
  func place() async {
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

  @Test("That of an equal path which is looked up anew stays nowhere")
  func equalPath() {
    _ = client.store(for: number(["user", Sentinel(1) {}]).retained(.forever))
    _ = client.store(for: number(["user", sentinel()]))
    #expect(ends.all == [1])
  }
}
