import Testing

@testable import Operation

/// The optimistic edits of a store, and how a state displays a value.
@Suite("OptimisticView") struct OptimisticViewTests {
  private typealias State = QueryState<Int, any Error>
  private typealias View = OptimisticView<State>

  private let ids = (0..<2).map { _ in OperationTaskID.next() }
  private let confirmed = State(initialValue: 1)
  private let show: View.Show = { state, value, updates in state.show(value, updates: updates) }
  private let increment: View.Layers.Edit = { $0 = ($0 ?? 0) + 10 }
  private var view = View()

  private mutating func compute() -> Int? {
    guard var computation = view.layers?.computation(oldest: .max) else { return nil }
    computation.perform()
    return view.edited?.layers.finish(&computation)
  }

  @Test("Without edits the confirmed state is displayed")
  mutating func plain() {
    #expect(view.isPlain && !view.isOptimistic && !view.needsComputation)
    #expect(view.displaying(confirmed).currentValue == 1)
    #expect(view.withBaseValue(confirmed).currentValue == 1)
    view.noteMissingEdits()
    let (isMissing, removed) = (view.takeMissingEdits(), view.removeAll())
    #expect(!isMissing && removed == nil)
  }

  @Test("An edit is displayed once it is computed, and counts as one update")
  mutating func append() {
    view.append(ids[0], increment, over: 1, show: show)
    #expect(!view.isPlain && view.isOptimistic && view.needsComputation)
    let settled = compute()
    #expect(settled == 0)
    let displayed = view.displaying(confirmed)
    #expect(displayed.currentValue == 11)
    #expect(displayed.valueUpdateCount == confirmed.valueUpdateCount + 1)
    #expect(view.withBaseValue(displayed).currentValue == 1)
  }

  @Test("Without another value, an edit is confirmed once an earlier one is settled")
  mutating func confirmation() {
    view.append(ids[0], increment, over: nil, displaying: 10, show: show)
    let empty = State(initialValue: nil)
    #expect(!view.displaying(empty).isConfirmed)
    #expect(view.displaying(empty, settled: 1).isConfirmed)
    #expect(view.displaying(confirmed).isConfirmed)
  }

  @Test("The first edit may begin with its displayed value, and then needs no computation")
  mutating func begin() {
    view.append(ids[0], increment, over: 1, displaying: 11, show: show)
    #expect(view.isOptimistic && !view.needsComputation)
    #expect(view.displaying(confirmed).currentValue == 11)
  }

  @Test("A settled edit is counted, and is missing from the state until it is computed")
  mutating func settle() {
    view.append(ids[0], increment, over: 1, show: show)
    view.append(ids[1], increment, over: 1, show: show)
    _ = compute()
    view.settle(ids[0])
    #expect(view.settlementCount == 1)
    let (isMissing, isStillMissing) = (view.takeMissingEdits(), view.takeMissingEdits())
    #expect(isMissing && !isStillMissing)
    #expect(view.needsComputation)
    let settled = compute()
    #expect(settled == 1)
    #expect(view.displaying(confirmed).currentValue == 21)
  }

  @Test("The last edit settles with all layers, and its value is returned")
  mutating func settleAll() {
    view.append(ids[0], increment, over: 1, displaying: 11, show: show)
    let layers = view.settleAll()
    #expect(layers?.displayed == 11)
    #expect(view.isPlain && view.settlementCount == 1)
  }

  @Test("Removed layers are returned, to be released without the lock")
  mutating func removeAll() {
    view.append(ids[0], increment, over: 1, show: show)
    let removed = view.removeAll()
    #expect(removed != nil)
    #expect(view.isPlain && view.settlementCount == 0)
  }

  @Test("Transitions are counted")
  mutating func transitions() {
    let before = view.transitionCount
    view.noteTransition()
    #expect(view.transitionCount == before + 1)
  }
}
