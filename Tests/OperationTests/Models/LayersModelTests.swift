import TestSupport
import Testing

@Suite struct LayersModelTests {
  @Test("After every step of random edits and runs, a store displays the value of the plain model")
  func schedules() async {
    await Schedules.each("Optimistic layers") { seed in
      try mustHold(
        await OptimisticTests.followsModel(seed: seed), "the store differs from its model")
    }
  }
}
