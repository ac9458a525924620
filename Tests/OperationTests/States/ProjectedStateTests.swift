import FoundationEssentials
import Operation
import Testing

@Suite("Projected states") struct ProjectedStateTests {
  private typealias Base = QueryState<Int, Refused>

  private let date = Date(timeIntervalSince1970: 100)
  private var context: OperationContext { .timed(by: ManualClock(now: date)) }

  private var selected: SelectedState<Base, String?> {
    SelectedState(Base(initialValue: 1)) { $0.map { "<\($0)>" } }
  }

  @Test("A projection forwards tasks, results and resets to its state, and has the facts of that")
  func forwarding() {
    var state = selected
    #expect(state.initialValue == "<1>" && state.currentValue == "<1>")
    var task = OperationStore<Base>.detached(query: TypedQuery(script: Script()))
      .runTask(using: context)
    state.scheduleFetchTask(&task)
    #expect(state.isLoading && state.base.activeTasks.ids == [task.id])
    state.update(with: .success(2), for: task)
    #expect(state.currentValue == "<2>" && state.valueLastUpdatedAt == date)
    state.update(with: .failure(Refused()), for: task)
    #expect(state.error == Refused() && state.errorUpdateCount == 1)
    #expect(state.errorLastUpdatedAt == date)
    state.finishFetchTask(task)
    #expect(state.status == .result(.failure(Refused())))
    _ = state.reset(using: context)
    #expect(state.currentValue == "<1>" && state.error == nil && state.valueUpdateCount == 0)
    #expect(type(of: state).kind == .query && !type(of: state).preparesValues)
  }

  @Test("A projection has a value, and a retry, if its state has")
  func members() async throws {
    #expect(selected.hasValue && selected.hasInitialValue)
    let empty = SelectedState(Base()) { $0 }
    #expect(!empty.hasValue && !empty.hasInitialValue)
    let clock = ManualClock()
    let store = OperationClient(defaults: .testing, clock: clock).store(
      for: TypedQuery(script: Script(failures: 1)).retry(limit: 1)
        .backoff(.constant(.seconds(5))))
    let run = Task { try await store.run() }
    await clock.sleepers(atLeast: 1)
    #expect(SelectedState(store.state) { $0 }.retry?.failedAttempts == 1)
    await clock.advance(by: .seconds(5))
    #expect(try await run.value == 2)
  }

  @Test("A failure that is set in a projection of a part is stored, and a part changes nothing")
  func settingParts() {
    var state = selected
    state.update(with: .success("<3>"), using: context)
    #expect(state.currentValue == "<1>" && state.base.valueUpdateCount == 0)
    state.update(with: .failure(Refused()), using: context)
    #expect(state.base.error == Refused())
  }

  @Test("What is set in a state with a default is stored in the projected state")
  func settingWithDefault() {
    func check<State: DefaultableState>(
      _ base: State, default value: State.DefaultedValue, setting new: State.DefaultedValue
    ) where State.DefaultedValue: Equatable, State.Failure == any Error {
      var state = DefaultState(base, default: value)
      #expect(state.currentValue == value)
      state.update(with: .success(new), using: context)
      #expect(state.currentValue == new && state.base.valueUpdateCount == 1)
      state.update(with: .failure(Refused()), using: context)
      #expect(state.base.error is Refused && state.currentValue == new)
    }
    check(QueryState<Int, any Error>(), default: 7, setting: 3)
    check(MutationState<String, Int, any Error>(), default: 7, setting: 3)
    let pages: PaginatedPages<Int, String> = [PaginatedPage(id: 0, value: "a")]
    let none: PaginatedPages<Int, String> = [PaginatedPage(id: -1, value: "none")]
    check(PaginatedState<Int, String, any Error>(), default: none, setting: pages)
  }
}
