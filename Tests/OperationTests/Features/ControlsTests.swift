import Operation
import Synchronization
import Testing

private typealias Score = QueryState<Int, any Error>

/// A controller that retains its controls for the test.
private final class Scores: OperationController {
  typealias State = Score
  private let retained = Mutex<OperationControls<Score>?>(nil)

  var controls: OperationControls<Score> {
    get throws { try #require(retained.withLock { $0 }) }
  }

  func control(with controls: OperationControls<Score>) -> OperationSubscription {
    retained.withLock { $0 = controls }
    return .empty
  }

  /// Adds to the score in one transaction.
  func add(_ points: Int) throws {
    let controls = try controls
    controls.withExclusiveAccess { controls.yield((controls.state?.currentValue ?? 0) + points) }
  }
}

@Suite("Controls", .timeLimit(.minutes(5))) struct ControlsTests {
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: ManualClock())
  private let scores = Scores()

  private func store(isDetached: Bool) -> OperationStore<Score> {
    let request = OpenQuery(script: Script()).controlled(by: scores)
    return isDetached ? .detached(query: request) : client.store(for: request)
  }

  @Test("A controller reads the state of its store", arguments: [true, false])
  func reads(isDetached: Bool) async throws {
    let store = store(isDetached: isDetached)
    #expect(try scores.controls.state?.status.isIdle == true)
    try await store.run()
    #expect(try scores.controls.state?.currentValue == 1)
  }

  @Test("A transaction reads its own writes, and notifies once", arguments: [true, false])
  func transaction(isDetached: Bool) throws {
    let store = store(isDetached: isDetached)
    let states = EventLog<Int?>()
    let subscription = store.subscribe { states.append($0.state?.currentValue) }
    let controls = try scores.controls
    let last = controls.withExclusiveAccess {
      for value in 1...3 { controls.yield(value) }
      return controls.state?.currentValue
    }
    #expect(last == 3)
    #expect(states.values == [nil, 3])
    subscription.cancel()
  }

  @Test("Concurrent transactions of many threads lose no write", arguments: [true, false])
  func counts(isDetached: Bool) async throws {
    let store = store(isDetached: isDetached)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 { group.addTask { [scores] in try scores.add(1) } }
      try await group.waitForAll()
    }
    #expect(store.currentValue == 100)
  }

  @Test("An error of the body is thrown, and its writes remain")
  func throwing() throws {
    let store = store(isDetached: true)
    let controls = try scores.controls
    #expect(throws: Refused.self) {
      try controls.withExclusiveAccess {
        controls.yield(5)
        throw Refused()
      }
    }
    #expect(store.currentValue == 5)
  }

  @Test("Without the store there is no state, and the body is not called")
  func released() throws {
    _ = store(isDetached: true)
    let controls = try scores.controls
    let log = EventLog<Int>()
    #expect(controls.state == nil)
    #expect(controls.withExclusiveAccess { log.append(1) } == nil)
    #expect(log.count == 0)
  }
}
