import Synchronization
import Testing

@testable import Operation

/// The confirmed state, the yields of runs, and the values that changes have replaced.
@Suite("CommittedState") struct CommittedStateTests {
  private typealias State = QueryState<Int, any Error>

  private final class Value: Sendable {
    let onEnd: @Sendable () -> Void
    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
  }

  private let ids = (0..<3).map { _ in OperationTaskID.next() }
  private var committed = CommittedState(State(initialValue: 0))

  private func write(_ value: Int) -> (inout State) -> Void {
    { $0.update(with: .success(value), using: OperationContext()) }
  }

  private mutating func yield(_ value: Int, of index: Int) {
    committed.beginYield(
      .init(id: ids[index], before: committed.state, idsInBase: [], redo: { _ in }))
    committed.change(write(value))
  }

  @Test("A cancelled run restores the state from before its first yield")
  mutating func undo() {
    yield(1, of: 0)
    yield(2, of: 0)
    #expect(committed.yields.count == 1)
    let entry = committed.undoYield(of: ids[0])
    #expect(entry?.before.currentValue == 0)
    #expect(committed.state.currentValue == 0)
    #expect(committed.yields.isEmpty)
  }

  @Test("A cancelled run whose yield is not the last one changes only what the next yield restores")
  mutating func undoEarlier() {
    yield(1, of: 0)
    yield(2, of: 1)
    let entry1 = committed.undoYield(of: ids[0])
    #expect(entry1 == nil)
    #expect(committed.state.currentValue == 2)
    let entry2 = committed.undoYield(of: ids[1])
    #expect(entry2 != nil)
    #expect(committed.state.currentValue == 0)
  }

  @Test("A run that yields again becomes the last one")
  mutating func yieldAgain() {
    yield(1, of: 0)
    yield(2, of: 1)
    yield(3, of: 0)
    #expect(committed.yields.map(\.id) == [ids[1], ids[0]])
    let entry3 = committed.undoYield(of: ids[0])
    #expect(entry3 != nil)
    #expect(committed.state.currentValue == 2)
  }

  @Test("A run that has not yielded restores nothing")
  mutating func undoNothing() {
    yield(1, of: 0)
    let entry4 = committed.undoYield(of: ids[2])
    #expect(entry4 == nil)
    #expect(committed.state.currentValue == 1)
  }

  @Test("Confirmed yields are not undone")
  mutating func confirm() {
    yield(1, of: 0)
    committed.confirmYields()
    let entry5 = committed.undoYield(of: ids[0])
    #expect(entry5 == nil)
    #expect(committed.state.currentValue == 1)
  }

  @Test("A failure confirms the yields up to its run, and is part of what later yields restore")
  mutating func confirmUpTo() {
    yield(1, of: 0)
    yield(2, of: 1)
    committed.confirmYields(of: ids[0]) {
      $0.update(with: .failure(Failed()), using: OperationContext())
    }
    #expect(committed.yields.map(\.id) == [ids[1], nil])
    let entry6 = committed.undoYield(of: ids[1])
    #expect(entry6 != nil)
    #expect(committed.state.currentValue == 1)
    #expect(committed.state.error is Failed)
  }

  @Test("A failure that is set is kept only while a yield before it can be undone")
  mutating func setFailure() {
    let fail: YieldedResult<State>.Redo = {
      $0.update(with: .failure(Failed()), using: OperationContext())
    }
    committed.confirmYields(of: nil, fail)
    #expect(committed.yields.isEmpty)
    yield(1, of: 0)
    committed.confirmYields(of: nil, fail)
    #expect(committed.yields.map(\.id) == [ids[0], nil])
    let undone = committed.undoYield(of: ids[0])
    #expect(undone != nil && committed.yields.isEmpty)
    #expect(committed.state.currentValue == 0 && committed.state.error is Failed)
  }

  @Test("A change of all states is also part of the state that a cancelled run restores")
  mutating func changeAll() {
    yield(1, of: 0)
    committed.changeAll { $0.update(with: .failure(Failed()), using: OperationContext()) }
    let entry7 = committed.undoYield(of: ids[0])
    #expect(entry7 != nil)
    #expect(committed.state.currentValue == 0)
    #expect(committed.state.error is Failed)
  }

  @Test("A yielded value is retained until it is moved out, even if no state contains it")
  func replacedYields() {
    let ended = Mutex(0)
    var committed = CommittedState(State(initialValue: 0))
    func yield(of index: Int) {
      let value = Value { ended.withLock { $0 += 1 } }
      committed.beginYield(
        .init(
          id: ids[index], before: committed.state, idsInBase: [],
          redo: { _ in withExtendedLifetime(value) {} }))
    }
    // The second yield of the first run replaces its first one. Then both runs are cancelled.
    for index in [0, 1, 0] { yield(of: index) }
    for id in ids { _ = committed.undoYield(of: id) }
    #expect(ended.withLock { $0 } == 0)
    do {
      var replaced = ReplacedValues<State>()
      committed.moveReplaced(into: &replaced)
      #expect(ended.withLock { $0 } == 0)
    }
    #expect(ended.withLock { $0 } == 3)
  }

  @Test(
    "A replaced value is retained until it is moved out, even if a yield would have restored it")
  func replaced() {
    struct Failure: Error {
      let value: Value
    }
    let ended = Mutex(0)
    let onEnd: @Sendable () -> Void = { ended.withLock { $0 += 1 } }
    var committed = CommittedState(QueryState<Value, Failure>())
    func set(_ result: Result<Value?, Failure>) {
      committed.changeAll { $0.update(with: result, using: OperationContext()) }
    }
    set(.failure(Failure(value: Value(onEnd))))
    committed.beginYield(
      .init(id: ids[0], before: committed.state, idsInBase: [], redo: { _ in }))
    // Replaces the failure in the state and in the one that a cancellation would restore.
    set(.failure(Failure(value: Value(onEnd))))
    set(.success(Value(onEnd)))
    set(.success(Value(onEnd)))
    #expect(ended.withLock { $0 } == 0)
    do {
      var replaced = ReplacedValues<QueryState<Value, Failure>>()
      committed.moveReplaced(into: &replaced)
      #expect(!replaced.isEmpty)
      #expect(ended.withLock { $0 } == 0)
    }
    #expect(ended.withLock { $0 } == 3)
  }

  @Test("No result is kept for a cancellation when no run that has yielded is left")
  mutating func failuresAlone() {
    yield(1, of: 0)
    committed.confirmYields(of: ids[1]) { _ in }
    #expect(committed.yields.map(\.id) == [ids[0], nil])
    committed.confirmYields(of: ids[0]) { _ in }
    #expect(committed.yields.isEmpty)
  }
}
