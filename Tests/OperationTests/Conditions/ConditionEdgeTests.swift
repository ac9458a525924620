import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

/// A condition that is satisfied until it gets a subscriber.
private final class FallingCondition: OperationRunSpecification {
  private let isOn = Mutex(true)
  private let onChange = Mutex<(@Sendable () -> Void)?>(nil)

  func isSatisfied(in context: OperationContext) -> Bool { isOn.withLock { $0 } }

  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    isOn.withLock { $0 = false }
    self.onChange.withLock { $0 = onChange }
    return OperationSubscription { [self] in self.onChange.withLock { $0 = nil } }
  }

  func rise() {
    isOn.withLock { $0 = true }
    onChange.withLock { $0 }?()
  }
}

/// A condition that may have changed again during each evaluation but the last one.
private final class RestlessCondition: OperationRunSpecification {
  private struct State {
    var results = [false, true, false, true]
    var isEvaluating = false
    var onChange: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  var remaining: [Bool] { state.withLock { $0.results } }

  func isSatisfied(in context: OperationContext) -> Bool {
    let (result, onChange, isNested) = state.withLock { state in
      let result = state.results.removeFirst()
      return (
        result, state.results.isEmpty ? nil : state.onChange,
        exchange(&state.isEvaluating, with: true)
      )
    }
    if isNested { Issue.record("evaluated twice at a time") }
    // As another thread does.
    onChange?()
    state.withLock { $0.isEvaluating = false }
    return result
  }

  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    state.withLock { $0.onChange = onChange }
    return OperationSubscription { [self] in state.withLock { $0.onChange = nil } }
  }
}

@Suite struct ConditionEdgeTests {
  private let script = Script()
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))

  private func store(
    on condition: some OperationRunSpecification
  ) -> OperationStore<OpenQuery.State> {
    client.store(
      for: OpenQuery(script: script).rerunOnChange(of: condition, evenIfFresh: true))
  }

  @Test("A condition that falls while it is subscribed to starts a run when it rises")
  func fallsBefore() async throws {
    let condition = FallingCondition()
    let subscription = store(on: condition).subscribe { _ in }
    #expect(script.attempts == 0)
    condition.rise()
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("The first result is no edge, and a rise is an edge") func rises() async {
    let broadcast = Broadcast<Bool>()
    let subscription = store(on: .latest(of: broadcast, initially: true)).subscribe { _ in }
    for value in [true, false] {
      broadcast.send(value)
      #expect(script.attempts == 0)
    }
    broadcast.send(true)
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("After a change during an evaluation, the same thread evaluates the condition again")
  func changeDuringEvaluation() async {
    let condition = RestlessCondition()
    let subscription = store(on: condition).subscribe { _ in }
    #expect(condition.remaining.isEmpty)
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }
}
