import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// A store of pages with optimistic edits of all of them, of which the server takes note when their
/// work succeeds, and a run for the next page.
///
/// Every page shows each edit once that has not failed, whether the server has given it with the page
/// or not, and confirms each once that has succeeded.
@Suite("The layers of pages, every sequence") struct PageLayersExhaustiveTests {
  private typealias State = PaginatedState<Int, [Int], any Error>
  private typealias Machine = StoreMachine<State>

  private enum Step: CaseIterable {
    case edit, succeedFirst, succeedLast, failWork
    case begin, land, yield, fail, cancel
  }

  private struct Run {
    let core: Machine.Core
    let result: State.OperationValue
  }

  private struct Walk {
    private static let nobody = Nobody()
    private var layered: LayeredMachine<State>
    private var works: [(number: Int, id: OperationTaskID)] = []
    /// The edits of which the server knows.
    private var known: [Int] = []
    private var run: Run?
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
        layered.perform(isEdit: true) { _ = $0.endEdit(id, isSuccess: step != .failWork) }
      case .begin:
        guard run == nil else { return false }
        begin()
      default:
        guard let run else { return false }
        take(step, run)
      }
      try check()
      return true
    }

    private mutating func edit() {
      let id = OperationTaskID.next()
      works.append((next, id))
      layered.perform(isEdit: true) { [next] machine in
        machine.beginEdit(id) { pages in
          for index in pages.indices { pages[index].value.append(next) }
        } show: { state, value, updates in
          state.show(value, updates: updates)
        }
      }
    }

    private mutating func begin() {
      let core = Machine.Core(driver: Self.nobody)
      let last = layered.machine.state.currentValue.last?.id ?? 0
      let page = PaginatedPage(id: last + 1, value: known)
      run = Run(
        core: core,
        result: PaginatedResult(
          kind: .nextPage, pages: PaginatedPages([page]), place: .after(last)))
      layered.perform { machine in
        var context = machine.context
        context.pageRunKind = .nextPage
        let wish = Machine.Wish(core: core, box: .init(context), lease: .awaiter)
        _ = machine.grant(wish, verdict: nil)
      }
    }

    private mutating func take(_ step: Step, _ run: Run) {
      switch step {
      case .yield:
        return layered.perform { _ = $0.yield(run.core.id, .success(run.result)) }
      case .land: layered.perform { _ = $0.end(run.core.id, .success(run.result)) }
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
      if works.isEmpty, run == nil { try mustHold(machine.overlay.isNone, "layers are left") }
    }
  }

  @Test("Every page shows each edit once") func everySequence() {
    exhaust("StoreMachine, layers of pages", events: Step.allCases, length: 8, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
