import Testing

@testable import storm

@Suite(.timeLimit(.minutes(5))) struct StormTests {
  @Test(
    "Subscribers receive the same states in random operations, and stores are released",
    arguments: 1...4)
  func short(seed: UInt64) async {
    let result = await Storm(steps: 3_000).run(seed: seed)
    #expect(result.failures == [], "seed \(seed)")
  }
}
