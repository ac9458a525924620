import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// A store's machine with optimistic edits, runs and exclusive access, beside the plain model of
/// ``OptimisticModel``.
///
/// Outside of exclusive access every thread reads the displayed value of the model, subscribers have
/// been notified of it, and the confirmed value is that of the model. During exclusive access other
/// threads read the earlier value and wait to write, and no subscriber is notified. A run that has
/// ended changes nothing.
@Suite("The layers of a store, every sequence") struct StoreLayersExhaustiveTests {
  private typealias State = QueryState<[Int], any Error>
  private typealias Machine = StoreMachine<State>

  private enum Step: CaseIterable {
    case edit, succeed, fail, fetch, land, yield, failRun, cancelRun, push, reset
    case beginAccess, endAccess
  }

  private struct Walk {
    private static let driver = IdleDriver()
    private var layered: LayeredMachine<State>
    private var model = OptimisticModel()
    private let notified = Tape<[Int]?>()
    private var lastNotified: [Int]?
    private var works: [(number: Int, id: OperationTaskID)] = []
    private var runs: [(number: Int, core: Machine.Core)] = []
    private var ended: [Machine.Core] = []
    private var depth = 0
    private var before: [Int]? = []
    private var next = 0

    init() {
      var context = OperationContext()
      context.operationClock = ManualClock()
      context.settings.values.deduplication = .never
      layered = LayeredMachine(Machine(state: State(initialValue: []), context: context))
      let subscriber = Subscriber<Machine.Event> { [notified] event in
        if case .stateChanged(let state) = event { notified.note(state.currentValue) }
      }
      layered.perform { _ = $0.subscribe(subscriber) }
      lastNotified = notified.take().last ?? nil
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .beginAccess:
        guard depth < 2 else { return false }
        if depth == 0 { before = layered.readByOthers.currentValue }
        depth += 1
        layered.perform { $0.beginExclusiveAccess(.current) }
      case .endAccess:
        guard depth > 0 else { return false }
        depth -= 1
        layered.endAccess()
      default: guard change(step) else { return false }
      }
      try check(step)
      return true
    }

    private mutating func change(_ step: Step) -> Bool {
      switch step {
      case .edit: edit()
      case .succeed, .fail:
        guard !works.isEmpty else { return false }
        // The first edit succeeds and the last one fails, so that they overtake each other.
        let (number, id) = works.remove(at: step == .succeed ? 0 : works.count - 1)
        model.perform(step == .succeed ? .succeed(number) : .fail(number))
        layered.perform(.edit) { $0.endEdit(id, isSuccess: step == .succeed) }
      case .push:
        model.perform(.push(next))
        layered.perform { [next] in $0.write(.success([next]), $0.context) }
      case .reset:
        model.perform(.reset)
        ended += runs.map(\.core)
        runs = []
        works = []
        layered.perform { _ = $0.reset($0.context) }
      default: return run(step)
      }
      return true
    }

    private mutating func edit() {
      let id = OperationTaskID.next()
      works.append((next, id))
      model.perform(.edit(next))
      layered.perform(.edit) { [next] machine in
        machine.beginEdit(id) { value in
          value?.append(next)
        } show: { state, value, updates in
          state.show(value, updates: updates)
        }
      }
    }

    private mutating func run(_ step: Step) -> Bool {
      if step == .fetch {
        let core = Machine.Core(TaskNode(driver: Self.driver))
        runs.append((next, core))
        model.perform(.fetch(next))
        layered.perform { machine in
          let new = Machine.NewRun(core: core, box: .init(machine.context), lease: .awaiter)
          _ = machine.admit(new, verdict: nil)
        }
        return true
      }
      guard let (number, core) = runs.first else { return false }
      switch step {
      case .yield:
        model.perform(.yield(number))
        layered.perform { _ = $0.yield(core.id, .success([200 + number])) }
        return true
      case .land:
        model.perform(.land(number))
        layered.perform { _ = $0.end(core.id, .success([100 + number])) }
      case .failRun:
        model.perform(.failRun(number))
        layered.perform { _ = $0.end(core.id, .failure(Failed())) }
      default:
        model.perform(.cancelRun(number))
        layered.perform { _ = $0.cancel(core.id) }
      }
      ended.append(runs.removeFirst().core)
      return true
    }

    private mutating func check(_ step: Step) throws {
      let machine = layered.machine
      try mustHold(!layered.isTorn, "other threads read a value during its computation")
      let new = notified.take()
      if let last = new.last { lastNotified = last }
      if depth > 0 {
        try mustHold(new.isEmpty, "a subscriber is notified during exclusive access")
        let seen = layered.readByOthers.currentValue
        try mustHold(
          seen == before, "the other threads read \(seen ?? []), and not \(before ?? [])")
        return try mustHold(layered.gateOfOthers != nil, "the other threads wait")
      }
      for core in ended {
        try mustHold(
          layered.machine.yield(core.id, .success([-1])) == nil,
          "a run that has ended does not yield")
      }
      let value = machine.visibleState(to: .current).currentValue
      try mustHold(
        value == model.shown, "the store displays \(value ?? []), and not \(model.shown)")
      try mustHold(
        machine.state.currentValue == model.confirmed, "\(model.confirmed) is confirmed")
      try mustHold(
        lastNotified == model.shown, "subscribers get \(model.shown), not \(lastNotified ?? [])")
      let seen = layered.readByOthers.currentValue
      try mustHold(
        seen == value && layered.gateOfOthers == nil, "every thread reads the value and may write")
      let pending = machine.edits.layers?.pendingCount ?? 0
      try mustHold(pending == works.count, "\(works.count) edits are pending, and not \(pending)")
      if works.isEmpty, runs.isEmpty { try mustHold(machine.edits.isPlain, "a layer is left") }
    }
  }

  @Test("The displayed, notified and confirmed values are those of the plain model")
  func everySequence() {
    exhaust("StoreMachine, layers", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
