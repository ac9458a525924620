import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// A store of pages with optimistic edits of all pages, and a run for the next page. The server
/// includes an edit in its pages once the work of the edit has succeeded.
///
/// Every page displays each edit that has not failed once, whether the page of the server includes it
/// or not. Every page confirms each edit that has succeeded once.
@Suite("The layers of pages, every sequence") struct PageLayersExhaustiveTests {
  private typealias State = PaginatedState<Int, [Int], any Error>
  private typealias Machine = StoreMachine<State>

  private enum Step: CaseIterable {
    case edit, succeedFirst, succeedLast, failWork
    case begin, land, yield, fail, cancel
    /// A run for the first page, which the run for the next page waits for.
    case beginFirst, landFirst
  }

  private struct Run {
    let core: Machine.Core
    /// The result of the run, once its request has been called.
    var result: State.OperationValue?
  }

  private struct Walk {
    private static let driver = IdleDriver()
    private var layered: LayeredMachine<State>
    private var works: [(number: Int, id: OperationTaskID)] = []
    /// The edits that the server includes.
    private var known: [Int] = []
    private var run: Run?
    private var first: Run?
    private var next = 0

    init() {
      var context = OperationContext()
      context.operationClock = ManualClock()
      let state = State(initialValue: PaginatedPages([PaginatedPage(id: 0, value: [])]))
      layered = LayeredMachine(Machine(state: state, context: context))
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .edit: edit()
      case .succeedFirst, .succeedLast, .failWork:
        guard !works.isEmpty else { return false }
        let (number, id) = works.remove(at: step == .succeedLast ? works.count - 1 : 0)
        if step != .failWork { known.append(number) }
        layered.perform(.edit) { $0.endEdit(id, isSuccess: step != .failWork) }
      case .begin:
        guard run == nil else { return false }
        begin()
      case .beginFirst:
        // A page that includes an edit would get it twice, as it has no place in the order of edits.
        guard run == nil, first == nil, known.isEmpty else { return false }
        beginFirst()
      case .landFirst:
        guard let result = first?.result, let core = first?.core else { return false }
        first = nil
        layered.perform { _ = $0.end(core.id, .success(result)) }
        call()
      default:
        guard let run, let result = run.result else { return false }
        take(step, run, result)
      }
      try check()
      return true
    }

    private mutating func edit() {
      let id = OperationTaskID.next()
      works.append((next, id))
      layered.perform(.edit) { [next] machine in
        machine.beginEdit(id) { pages in
          for index in pages.indices { pages[index].value.append(next) }
        } show: { state, value, updates in
          state.show(value, updates: updates)
        }
      }
    }

    private mutating func begin() {
      run = Run(core: admit(.nextPage))
      if first == nil { call() }
    }

    private mutating func beginFirst() {
      let page = PaginatedPage(id: 0, value: known)
      first = Run(
        core: admit(.refetch),
        result: PaginatedResult(
          kind: .refetch, pages: PaginatedPages([page]), place: .present))
    }

    private mutating func admit(_ kind: PaginatedRunKind) -> Machine.Core {
      let core = Machine.Core(TaskNode(driver: Self.driver))
      layered.perform { machine in
        var context = machine.context
        context.pageRunKind = kind
        let new = Machine.NewRun(core: core, box: .init(context), lease: .awaiter)
        _ = machine.admit(new, verdict: nil)
      }
      return core
    }

    /// Calls the request of the run for the next page, which returns the current edits of the server.
    private mutating func call() {
      guard let core = run?.core else { return }
      if !layered.machine.edits.isPlain, let record = layered.machine.runs[core.id] {
        layered.perform { $0.begin(core.id, in: record.task.context) }
      }
      let last = layered.machine.state.currentValue.last?.id ?? 0
      run?.result = PaginatedResult(
        kind: .nextPage, pages: PaginatedPages([PaginatedPage(id: last + 1, value: known)]),
        place: .after(last))
    }

    private mutating func take(_ step: Step, _ run: Run, _ result: State.OperationValue) {
      switch step {
      case .yield:
        return layered.perform { _ = $0.yield(run.core.id, .success(result)) }
      case .land: layered.perform { _ = $0.end(run.core.id, .success(result)) }
      case .fail: layered.perform { _ = $0.end(run.core.id, .failure(Failed())) }
      default: layered.perform { _ = $0.cancel(run.core.id) }
      }
      self.run = nil
    }

    private func check() throws {
      let machine = layered.machine
      let live = known + works.map(\.number)
      for page in machine.visibleState(to: .current).currentValue {
        try mustHold(
          page.value.sorted() == live.sorted(), "\(page.id) shows \(page.value), not \(live)")
      }
      for page in machine.state.currentValue {
        try mustHold(
          page.value.sorted() == known.sorted(), "\(page.id) has \(page.value), not \(known)")
      }
      if works.isEmpty, run == nil, first == nil {
        try mustHold(machine.edits.isPlain, "a layer is left")
      }
    }
  }

  @Test("Every page displays each edit once") func everySequence() {
    exhaust("StoreMachine, layers of pages", events: Step.allCases, length: 7, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
