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

@Suite struct ConditionEdgeTests {
  @Test("A condition that falls while it is subscribed to starts a run when it rises")
  func fallsBefore() async throws {
    let script = Script()
    let condition = FallingCondition()
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
    let store = client.store(
      for: OpenQuery(script: script).rerunOnChange(of: condition, evenIfFresh: true))
    let subscription = store.subscribe { _ in }
    #expect(script.attempts == 0)
    condition.rise()
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("The first result is no edge, and each rise is an edge") func rises() {
    var machine = ConditionEdgeMachine()
    for (result, isEdge) in [(true, false), (true, false), (false, false), (true, true)] {
      let mayEvaluate = machine.begin()
      #expect(mayEvaluate)
      let end = machine.end(result)
      #expect(end == (isEdge, false))
    }
  }

  @Test("After a change during an evaluation, the same thread evaluates the condition again")
  func changeDuringEvaluation() {
    var machine = ConditionEdgeMachine()
    let edge = ConditionEdge()
    var (results, edges) = ([false, true, false, true], 0)
    edge.check({ false }, onEdge: {})
    edge.check(
      {
        // Another thread is notified that the condition may have changed.
        if results.count > 1 {
          edge.check(
            {
              Issue.record("evaluated twice"); return true
            }, onEdge: {})
        }
        return results.removeFirst()
      }, onEdge: { edges += 1 })
    #expect(results.isEmpty && edges == 2)
    let mayEvaluate = [machine.begin(), machine.begin()]
    #expect(mayEvaluate == [true, false])
    let ends = [machine.end(false), machine.end(true)]
    #expect(ends[0] == (false, true) && ends[1] == (true, false))
  }
}
