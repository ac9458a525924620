import FoundationEssentials
import Operation
import Testing

/// A custom state, which counts and derives all other members.
private struct CounterState: OperationState {
  typealias StateValue = Int
  typealias OperationValue = Int
  typealias StatusValue = Int
  typealias Failure = Refused

  var currentValue = 0
  let initialValue = 0
  var valueUpdateCount = 0
  var valueLastUpdatedAt: Date?
  var error: Refused?
  var errorUpdateCount = 0
  var errorLastUpdatedAt: Date?
  var tasks: [OperationTask<Int, Refused>] = []
  var isLoading: Bool { !tasks.isEmpty }

  mutating func scheduleFetchTask(_ task: inout OperationTask<Int, Refused>) {
    task.context.fixtureNumber += 1
    tasks.append(task)
  }

  mutating func update(with result: Result<Int, Refused>, using context: OperationContext) {
    switch result {
    case .success(let value):
      (currentValue, error) = (currentValue + value, nil)
      (valueUpdateCount, valueLastUpdatedAt) = (valueUpdateCount + 1, context.operationClock.now())
    case .failure(let failure):
      (error, errorUpdateCount) = (failure, errorUpdateCount + 1)
    }
  }

  mutating func update(
    with result: Result<Int, Refused>, for task: OperationTask<Int, Refused>
  ) {
    update(with: result, using: task.context)
  }

  mutating func finishFetchTask(_ task: OperationTask<Int, Refused>) {
    tasks.removeAll { $0.id == task.id }
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = CounterState() }
    return ResetEffect(tasksToCancel: tasks)
  }
}

private struct CounterQuery: QueryRequest, Hashable {
  typealias State = CounterState

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    context.fixtureNumber
  }
}

@Suite("OperationState") struct OperationStateTests {
  @Test("A custom state derives its status from its members")
  func status() {
    var state = CounterState()
    #expect(state.status.isIdle)
    state.update(with: .success(2), using: OperationContext())
    #expect(state.status == .result(.success(2)))
    state.update(with: .failure(Refused()), using: OperationContext())
    #expect(state.status == .result(.failure(Refused())))
    #expect(CounterState.kind == .query)
  }

  @Test("A store has a custom state, which can change a scheduled task")
  func ownState() async throws {
    let store = OperationClient(defaults: .testing)
      .store(for: CounterQuery(), initialState: CounterState())
    #expect(try await store.run() == 1)
    #expect(try await store.run(using: .number(4)) == 5)
    #expect(store.currentValue == 6)
    #expect(store.valueUpdateCount == 2)
    store.resetState()
    #expect(store.currentValue == 0 && store.status.isIdle)
  }

  @Test("An event of a store contains the state or its run")
  func events() async throws {
    let script = Script { _, _, yield in
      yield(.success(9))
      return .success(1)
    }
    let store = OperationStore<QueryState<Int, Refused>>
      .detached(query: TypedQuery(script: script))
    let log = EventLog<(Bool, OperationTaskID?)>()
    let task = store.runTask()
    let subscription = store.subscribe { log.append(($0.state != nil, $0.run?.id)) }
    try await task.runIfNeeded()
    subscription.cancel()
    #expect(log.values.allSatisfy { $0.0 == ($0.1 == nil) })
    #expect(Set(log.values.compactMap(\.1)) == [task.id])
    #expect(log.values.filter { $0.1 != nil }.count == 3)
  }
  @Test("Pages are equal, and hash alike, if their identifiers and values are")
  func pages() {
    let pages = [(0, "a"), (0, "b"), (1, "a")].map { PaginatedPage(id: $0, value: $1) }
    #expect(pages[0] != pages[1])
    #expect(Set(pages + pages).count == 3)
    #expect(Set(pages.map(\.hashValue)).count == 3)
  }
}
