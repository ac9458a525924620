import Operation
import Testing

@Suite(.timeLimit(.minutes(5))) struct OptimisticTests {
  /// Steps, and the displayed value after each of them.
  struct Race: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [(OptimisticStep, [Int])]

    init(_ name: String, _ steps: (OptimisticStep, [Int])...) {
      self.name = name
      self.steps = steps
    }

    var testDescription: String { name }
  }

  static let races = [
    Race(
      "a refetch lands, then the work succeeds",
      (.push(1), [1]), (.fetch(5), [1]), (.edit(9), [1, 9]), (.land(5), [105, 9]),
      (.succeed(9), [105, 9])),
    Race(
      "the work succeeds, then the refetch lands that had started before",
      (.push(1), [1]), (.fetch(5), [1]), (.edit(9), [1, 9]), (.succeed(9), [1, 9]),
      (.land(5), [105, 9]), (.fetch(6), [105, 9]), (.land(6), [106])),
    Race(
      "a refetch lands, then the work fails",
      (.push(1), [1]), (.edit(9), [1, 9]), (.fetch(5), [1, 9]), (.land(5), [105, 9]),
      (.fail(9), [105])),
    Race(
      "the work fails, then the refetch lands",
      (.push(1), [1]), (.edit(9), [1, 9]), (.fetch(5), [1, 9]), (.fail(9), [1]), (.land(5), [105])),
    Race(
      "a second edit fails while the first one succeeds",
      (.push(1), [1]), (.edit(8), [1, 8]), (.edit(9), [1, 8, 9]), (.fail(9), [1, 8]),
      (.succeed(8), [1, 8])),
    Race(
      "a first edit succeeds, then the second one fails",
      (.push(1), [1]), (.edit(8), [1, 8]), (.edit(9), [1, 8, 9]), (.succeed(8), [1, 8, 9]),
      (.fail(9), [1, 8])),
    Race(
      "a second edit succeeds, then the first one fails",
      (.push(1), [1]), (.edit(8), [1, 8]), (.edit(9), [1, 8, 9]), (.succeed(9), [1, 8, 9]),
      (.fail(8), [1, 9])),
    Race(
      "a first edit fails, then the second one succeeds",
      (.push(1), [1]), (.edit(8), [1, 8]), (.edit(9), [1, 8, 9]), (.fail(8), [1, 9]),
      (.succeed(9), [1, 9])),
    Race(
      "a push comes during the work that succeeds",
      (.push(1), [1]), (.edit(9), [1, 9]), (.push(2), [2, 9]), (.succeed(9), [2, 9])),
    Race(
      "a push comes after the work",
      (.push(1), [1]), (.edit(9), [1, 9]), (.succeed(9), [1, 9]), (.push(2), [2])),
    Race(
      "a push comes during the work that fails",
      (.push(1), [1]), (.edit(9), [1, 9]), (.push(2), [2, 9]), (.fail(9), [2])),
    Race(
      "the work is cancelled beside another edit and a push",
      (.push(1), [1]), (.edit(8), [1, 8]), (.edit(9), [1, 8, 9]), (.push(2), [2, 8, 9]),
      (.cancelWork(8), [2, 9]), (.succeed(9), [2, 9])),
    Race(
      "the work is cancelled before the push",
      (.push(1), [1]), (.edit(8), [1, 8]), (.cancelWork(8), [1]), (.push(2), [2])),
    Race(
      "a reset during the work, which succeeds later",
      (.push(1), [1]), (.edit(9), [1, 9]), (.reset, []), (.succeed(9), []), (.push(2), [2])),
    Race(
      "a reset during the work, which fails later",
      (.push(1), [1]), (.edit(9), [1, 9]), (.reset, []), (.push(2), [2]), (.fail(9), [2])),
    Race(
      "a reset after the work",
      (.push(1), [1]), (.edit(9), [1, 9]), (.succeed(9), [1, 9]), (.reset, [])),
    Race(
      "a cancelled run restores the value from before its yields, below the edits",
      (.push(1), [1]), (.fetch(5), [1]), (.edit(8), [1, 8]), (.yield(5), [205, 8]),
      (.succeed(8), [205, 8]), (.edit(9), [205, 8, 9]), (.cancelRun(5), [1, 8, 9]),
      (.succeed(9), [1, 8, 9])),
    Race(
      "an older run lands after a newer one, and gets the edit that it does not have",
      (.push(1), [1]), (.fetch(5), [1]), (.edit(9), [1, 9]), (.succeed(9), [1, 9]),
      (.fetch(6), [1, 9]), (.land(6), [106]), (.land(5), [105, 9])),
    Race(
      "a cancelled run restores a value that contains an edit, which is not applied twice",
      (.push(1), [1]), (.fetch(5), [1]), (.edit(9), [1, 9]), (.succeed(9), [1, 9]),
      (.fetch(6), [1, 9]), (.land(6), [106]), (.fetch(7), [106]), (.yield(7), [207]),
      (.cancelRun(7), [106]), (.land(5), [105, 9])),
  ]

  @Test("The displayed value after each step of a race is the expected one", arguments: races)
  func race(_ race: Race) async {
    let driver = OptimisticDriver()
    var model = OptimisticModel()
    for (step, expected) in race.steps {
      await driver.perform(step)
      model.perform(step)
      #expect(driver.store.currentValue == expected, "\(race.name): \(step)")
      #expect(model.shown == expected, "the model in \(race.name): \(step)")
    }
    await driver.finish()
  }

  /// Performs one random schedule. Returns whether the store displays the value of the plain model.
  static func followsModel(seed: UInt64) async -> Bool {
    var random = SplitMix(seed: seed)
    let driver = OptimisticDriver()
    var model = OptimisticModel()
    var works: [Int] = []
    var runs: [Int] = []
    var steps: [OptimisticStep] = []
    let states = Recorder<[Int]?>()
    let subscription = driver.store.subscribe { event in
      if case .stateChanged(let state) = event { states.append(state.currentValue) }
    }
    for number in 1...Int.random(in: 3...18, using: &random) {
      let step = randomStep(number, &works, &runs, &random)
      steps.append(step)
      await driver.perform(step)
      model.perform(step)
      let store = driver.store
      let isRight =
        store.currentValue == model.shown && store.confirmedValue == model.confirmed
        && store.isOptimistic == model.isOptimistic && states.all.last == model.shown
      #expect(
        isRight,
        """
        seed \(seed), \(steps): displays \(store.currentValue ?? []) instead of \(model.shown), \
        has confirmed \(store.confirmedValue ?? []) instead of \(model.confirmed)
        """)
      if !isRight {
        await driver.finish()
        return false
      }
    }
    subscription.cancel()
    await driver.finish()
    return true
  }

  private static func randomStep(
    _ number: Int, _ works: inout [Int], _ runs: inout [Int], _ random: inout SplitMix
  ) -> OptimisticStep {
    func takeWork() -> Int? {
      works.isEmpty ? nil : works.remove(at: .random(in: works.indices, using: &random))
    }
    func takeRun() -> Int? {
      runs.isEmpty ? nil : runs.remove(at: .random(in: runs.indices, using: &random))
    }
    switch Int.random(in: 0..<24, using: &random) {
    case 0..<4: if let work = takeWork() { return .succeed(work) }
    case 4..<6: if let work = takeWork() { return .fail(work) }
    case 6: if let work = takeWork() { return .cancelWork(work) }
    case 7..<10: if let run = takeRun() { return .land(run) }
    case 10: if let run = takeRun() { return .failRun(run) }
    case 11..<13: if let run = takeRun() { return .cancelRun(run) }
    case 13..<15: if let run = runs.randomElement(using: &random) { return .yield(run) }
    case 15: return .push(number)
    case 16:
      if Int.random(in: 0..<3, using: &random) == 0 {
        runs = []
        return .reset
      }
    case 17..<20:
      runs.append(number)
      return .fetch(number)
    default: break
    }
    works.append(number)
    return .edit(number)
  }
}
