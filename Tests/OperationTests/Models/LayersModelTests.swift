import TestSupport
import Testing

@Suite struct LayersModelTests {
  @Test("Random schedules of edits and runs show what the plain model shows, after every step")
  func schedules() async {
    await Schedules.each("Optimistic layers") { seed in
      try mustHold(await OptimisticTests.followsModel(seed: seed), "the store parts from its model")
    }
  }
}
