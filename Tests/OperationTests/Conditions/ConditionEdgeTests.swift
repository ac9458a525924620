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

@Suite(.timeLimit(.minutes(5))) struct ConditionEdgeTests {
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))

  /// Returns a store that runs when the condition becomes satisfied.
  private func store(
    of condition: some OperationRunSpecification, _ script: Script
  ) -> OperationStore<QueryState<Int, any Error>> {
    client.store(for: OpenQuery(script: script).rerunOnChange(of: condition, evenIfFresh: true))
  }

  @Test("A condition that falls while it is subscribed to starts a run when it rises")
  func fallsBefore() async throws {
    let script = Script()
    let condition = FallingCondition()
    let store = store(of: condition, script)
    let subscription = store.subscribe { _ in }
    #expect(script.attempts == 0)
    condition.rise()
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("A condition that is satisfied at first, and stays so, starts no run")
  func staysSatisfied() {
    let condition = ChangingCondition([true, true])
    let script = Script()
    let store = store(of: condition, script)
    let subscription = store.subscribe { _ in }
    #expect(condition.results.withLock { $0 }.isEmpty)
    #expect(store.activeTasks.isEmpty && script.attempts == 0)
    subscription.cancel()
  }

  @Test("After a change during an evaluation, the same thread evaluates the condition again")
  func changeDuringEvaluation() async {
    let condition = ChangingCondition([false, true, false])
    let script = Script()
    let store = store(of: condition, script)
    let subscription = store.subscribe { _ in }
    // The first result, and those of the changes during the evaluations.
    #expect(condition.results.withLock { $0 }.isEmpty)
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }
}

/// A condition that changes while it is evaluated, but for the last time.
private final class ChangingCondition: OperationRunSpecification {
  let results: Mutex<[Bool]>
  private let changes = Broadcast<Void>()

  init(_ results: [Bool]) { self.results = Mutex(results) }

  func isSatisfied(in context: OperationContext) -> Bool {
    let (result, isLast) = results.withLock { ($0.removeFirst(), $0.isEmpty) }
    // All changes during an evaluation are answered by one further evaluation.
    if !isLast { for _ in 0..<3 { changes.send(()) } }
    return result
  }

  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription { changes.subscribe { onChange() } }
}
