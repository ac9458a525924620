import FoundationEssentials
import Operation
import Testing

@Suite("QueryState") struct QueryStateTests {
  private typealias State = QueryState<Int, Refused>

  private let clock = ManualClock(now: Date(timeIntervalSince1970: 100))
  private var context: OperationContext { .timed(by: clock) }

  /// A task of a store, which is not in the state under test.
  private func task() -> OperationTask<Int, Refused> {
    OperationStore<State>.detached(query: TypedQuery(script: Script())).runTask(using: context)
  }

  @Test("A state begins idle, with its value or without one")
  func beginning() {
    let empty = State()
    #expect(empty.currentValue == nil && empty.initialValue == nil)
    #expect(empty.status.isIdle && !empty.isLoading && empty.error == nil)
    #expect(empty.valueUpdateCount == 0 && empty.errorUpdateCount == 0)
    #expect(empty.valueLastUpdatedAt == nil && empty.errorLastUpdatedAt == nil)
    let full = State(initialValue: 4)
    #expect(full.currentValue == 4 && full.initialValue == 4)
    #expect(full.status.isIdle)
    #expect(State.emptyValue == nil && State.kind == .query)
  }

  @Test("A value is counted, has its date from the clock, and removes the error")
  func value() {
    var state = State()
    state.update(with: .failure(Refused()), using: context)
    state.update(with: .success(1), using: context)
    #expect(state.currentValue == 1 && state.error == nil)
    #expect(state.valueUpdateCount == 1 && state.errorUpdateCount == 1)
    #expect(state.valueLastUpdatedAt == Date(timeIntervalSince1970: 100))
    #expect(state.status == .result(.success(1)))
  }

  @Test("A failure keeps the current value")
  func failure() async {
    var state = State(initialValue: 4)
    await clock.advance(by: .seconds(1))
    state.update(with: .failure(Refused(attempt: 2)), using: context)
    #expect(state.currentValue == 4 && state.error == Refused(attempt: 2))
    #expect(state.valueUpdateCount == 0 && state.errorUpdateCount == 1)
    #expect(state.errorLastUpdatedAt == Date(timeIntervalSince1970: 101))
    #expect(state.status == .result(.failure(Refused(attempt: 2))))
  }

  @Test("Removing the value is an update, after which the state is idle")
  func noValue() {
    var state = State(initialValue: 4)
    state.update(with: .success(nil), using: context)
    #expect(state.currentValue == nil && state.valueUpdateCount == 1)
    #expect(state.status.isIdle && state.valueLastUpdatedAt == nil)
  }

  @Test("A value that is itself an optional nil is a value")
  func optionalValue() {
    var state = QueryState<Int?, Never>()
    #expect(state.status.isIdle)
    state.update(with: .success(.some(nil)), using: context)
    #expect(state.status == .result(.success(nil)))
  }

  @Test("A state is loading while it has tasks, and contains each once, in order")
  func tasks() {
    var state = State()
    var (first, second) = (task(), task())
    state.scheduleFetchTask(&first)
    state.scheduleFetchTask(&second)
    state.scheduleFetchTask(&first)
    #expect(state.activeTasks.ids == [first.id, second.id])
    #expect(state.status.isLoading)
    state.update(with: .success(3), for: first)
    #expect(state.currentValue == 3 && state.status.isLoading)
    #expect(state.valueLastUpdatedAt == Date(timeIntervalSince1970: 100))
    state.finishFetchTask(first)
    state.finishFetchTask(first)
    #expect(state.isLoading)
    state.finishFetchTask(second)
    #expect(state.status == .result(.success(3)))
  }

  @Test("The active tasks are in the order of their creation, also if they are added in another")
  func order() {
    var state = State()
    var tasks = (0..<3).map { _ in task() }
    for index in [2, 0, 1] { state.scheduleFetchTask(&tasks[index]) }
    #expect(Array(state.activeTasks.ids) == tasks.map(\.id))
  }

  @Test("A reset restores the initial value, and returns the tasks to cancel")
  func reset() {
    var state = State(initialValue: 4)
    var task = task()
    state.scheduleFetchTask(&task)
    state.update(with: .success(5), using: context)
    state.update(with: .failure(Refused()), using: context)
    _ = state.reset(using: context)
    #expect(state.currentValue == 4 && state.error == nil && !state.isLoading)
    #expect(state.valueUpdateCount == 0 && state.errorUpdateCount == 0)
    #expect(state.valueLastUpdatedAt == nil && state.errorLastUpdatedAt == nil)
    #expect(state.status.isIdle)
  }
}
