import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// A mutation's state has the value, the counts, the dates and the error of the results that it has
/// received. Its history has the latest calls with arguments that were not given up, up to its length,
/// oldest first, each with its own results. A call without arguments repeats the latest one that was
/// not given up. The value and the error are those of the call that was started last and not given
/// up. The state returns what it drops to the store.
@Suite("MutationState, every sequence") struct MutationStateExhaustiveTests {
  private enum Step: CaseIterable {
    case call, callAgain, schedule, startOldest
    case yieldOldest, yieldFailure, succeedOldest, failNewest
    case giveUpOldest, giveUpNewest, pauseNewest, write, writeFailure, endLate, reset
  }

  private typealias State = MutationState<Int, Int, Arrivals<Int?>.Failed>
  private typealias Failed = Arrivals<Int?>.Failed
  private typealias Task = OperationTask<Int, Failed>

  private struct Walk {
    private struct Call {
      let task: Task
      let arguments: Int?
      let start: Int
      var results: [(moment: Int, result: Result<Int, Failed>)] = []
      var isActive = true
      var isPaused = false
      /// Whether its last result was displayed, or was replaced by a write.
      var isDisplayed = false

      var status: OperationStatus<Int, Failed> {
        if isActive { return isPaused ? .paused : .loading }
        return results.last.map { .result($0.result) } ?? .loading
      }
    }

    private let clock = StepClock()
    private let cancellations = Tape<OperationTaskID>()
    private var state = State(initialValue: -1)
    private var arrivals = Arrivals<Int?>()
    /// The calls since the beginning, except those that were given up.
    private var calls: [Call] = []
    /// The started calls in the order of their starts, except those that were given up.
    private var started: [OperationTaskID] = []
    /// The calls that have ended, were given up, or were reset.
    private var ended: [Task] = []
    private var moment = 0
    private let maxHistory: Int
    private let context: OperationContext

    private var active: [Int] { calls.indices.filter { calls[$0].isActive } }
    private var running: [Int] { active.filter { started.contains(calls[$0].task.id) } }

    init(maxHistory: Int) {
      self.maxHistory = maxHistory
      var context = OperationContext.timed(by: clock)
      context.settings.values.maxHistory = maxHistory
      self.context = context
    }

    mutating func take(_ step: Step) throws -> Bool {
      moment += 1
      clock.set(moment)
      let before = remembered
      guard try perform(step) else { return false }
      let released = state.takeReleased().flatMap(numbers)
      if step != .reset {
        let present = remembered
        for number in before {
          try mustHold(
            present.contains(number) || released.contains(number),
            "\(number) is dropped without a release")
        }
      }
      try mustHold(state.takeReleased().isEmpty, "a released value is returned once")
      try check()
      return true
    }

    private mutating func perform(_ step: Step) throws -> Bool {
      switch step {
      case .call: try start(call(moment))
      case .callAgain: try start(call(nil))
      case .schedule: try call(moment)
      case .startOldest:
        guard let index = active.first(where: { !running.contains($0) }) else { return false }
        start(calls[index].task)
      case .yieldOldest: return yields(running.first, .success(moment))
      case .yieldFailure: return yields(running.last, .failure(Failed(moment: moment)))
      case .succeedOldest: return ends(running.first, .success(moment))
      case .failNewest: return ends(running.last, .failure(Failed(moment: moment)))
      case .giveUpOldest: return givesUp(active.first)
      case .giveUpNewest: return givesUp(active.last)
      case .pauseNewest: return pauses(active.last)
      case .write: write(.success(moment.isMultiple(of: 2) ? moment : nil))
      case .writeFailure: write(.failure(Failed(moment: moment)))
      case .endLate:
        guard let task = ended.last else { return false }
        state.setPaused(true, task.id)
        state.finishFetchTask(task)
        state.giveUpFetchTask(task)
      case .reset: try reset()
      }
      return true
    }

    private mutating func start(_ task: Task) {
      state.startFetchTask(task)
      started.append(task.id)
    }

    @discardableResult private mutating func call(_ arguments: Int?) throws -> Task {
      var context = context
      context.changeFacts { $0.input = arguments.map { RunArguments($0) } }
      try mustHold(state.taskToJoin(in: &context) == nil, "no call joins another one")
      let expected = arguments ?? calls.last { $0.arguments != nil }?.arguments
      let meant = context.input?.value as? Int
      try mustHold(meant == expected, "it is called with \(expected ?? -1)")
      var task = Task.idle(noting: cancellations, in: context)
      state.scheduleFetchTask(&task)
      calls.append(Call(task: task, arguments: expected, start: moment))
      return task
    }

    private mutating func yields(_ index: Int?, _ result: Result<Int, Failed>) -> Bool {
      guard let index else { return false }
      let isLast = started.last == calls[index].task.id
      state.update(with: result, for: calls[index].task)
      calls[index].results.append((moment, result))
      calls[index].isDisplayed = isLast
      if isLast { arrivals.note(result.map(Optional.some), at: moment) }
      return true
    }

    private mutating func ends(_ index: Int?, _ result: Result<Int, Failed>) -> Bool {
      guard let index, yields(index, result) else { return false }
      state.finishFetchTask(calls[index].task)
      calls[index].isActive = false
      ended.append(calls[index].task)
      return true
    }

    private mutating func givesUp(_ index: Int?) -> Bool {
      guard let index else { return false }
      state.giveUpFetchTask(calls[index].task)
      let task = calls.remove(at: index).task
      ended.append(task)
      started.removeAll { $0 == task.id }
      uncover()
      return true
    }

    /// Displays the call that is now the last one, if it has already ended.
    private mutating func uncover() {
      guard let index = calls.firstIndex(where: { $0.task.id == started.last }) else { return }
      guard !calls[index].isActive, !calls[index].isDisplayed else { return }
      guard let last = calls[index].results.last else { return }
      calls[index].isDisplayed = true
      arrivals.note(last.result.map(Optional.some), at: last.moment)
    }

    private mutating func pauses(_ index: Int?) -> Bool {
      guard let index else { return false }
      calls[index].isPaused.toggle()
      state.setPaused(calls[index].isPaused, calls[index].task.id)
      return true
    }

    private mutating func write(_ result: Result<Int?, Failed>) {
      state.update(with: result, using: context)
      for index in calls.indices where !calls[index].isActive { calls[index].isDisplayed = true }
      if case .success(nil) = result {
        arrivals.note(result, at: nil)
      } else {
        arrivals.note(result, at: moment)
      }
    }

    private mutating func reset() throws {
      for cancel in state.reset(using: context).cancellations { cancel() }
      let active = active.map { calls[$0].task }
      let cancelled = cancellations.take()
      try mustHold(
        cancelled.sorted() == active.map(\.id), "the calls in flight are cancelled, once each")
      ended += active
      (calls, started, arrivals) = ([], [], Arrivals())
    }

    private func check() throws {
      try arrivals.check(state)
      let value = arrivals.lastValue ?? -1
      try mustHold(state.currentValue == value, "the value is \(value.map(String.init) ?? "nil")")
      try mustHold(state.initialValue == -1, "the initial value is unchanged")
      let (active, history) = (active, calls.filter { $0.arguments != nil }.suffix(maxHistory))
      try mustHold(state.isLoading == !active.isEmpty, "\(active.count) calls are in flight")
      let isPaused = !active.isEmpty && active.allSatisfy { calls[$0].isPaused }
      try mustHold(state.isPaused == isPaused, "the state is paused if every call is paused")
      try mustHold(state.status == status(isPaused), "the status is \(status(isPaused))")
      let ids = history.map { $0.task.id }
      try mustHold(
        state.history.ids == ids, "\(history.compactMap(\.arguments)) are in the history")
      for (index, attempt) in state.history.enumerated() {
        try check(attempt, history[history.startIndex + index])
      }
    }

    private func check(_ attempt: State.Attempt, _ call: Call) throws {
      let name = attempt.arguments
      let date = StepClock.date
      try mustHold(name == call.arguments, "\(name) has its arguments")
      try mustHold(attempt.startDate == date(call.start), "\(name) has the date of its call")
      let last = call.results.last
      try mustHold(
        attempt.lastUpdatedAt == last.map { date($0.moment) }, "\(name) has its last date")
      try mustHold(attempt.currentResult == last?.result, "\(name) has its last result")
      try mustHold(attempt.status == call.status, "\(name) is \(call.status)")
    }

    private func status(_ isPaused: Bool) -> OperationStatus<Int, Failed> {
      if !active.isEmpty { return isPaused ? .paused : .loading }
      if let error = arrivals.lastError { return .result(.failure(error)) }
      return arrivals.lastValue.flatMap(\.self).map { .result(.success($0)) } ?? .idle
    }

    /// The values that the state holds, except those that its store keeps: the last value, the error,
    /// and the tasks in flight.
    private var remembered: [Int] {
      var all: [Int] = []
      for attempt in state.attempts { all += numbers(in: attempt) }
      if let latest = state.latestEnded { all.append(latest.arguments) }
      return all
    }

    private func numbers(in attempt: State.Attempt) -> [Int] {
      guard let result = attempt.currentResult else { return [attempt.arguments] }
      return [attempt.arguments, number(in: result)]
    }

    private func number(in result: Result<Int, Failed>) -> Int {
      if case .success(let value) = result { 100 + value } else { 100 }
    }

    private func numbers(of value: any Sendable) -> [Int] {
      switch value {
      case let attempt as State.Attempt: numbers(in: attempt)
      case let result as Result<Int, Failed>: [number(in: result)]
      case let arguments as Int: [arguments]
      default: []
      }
    }
  }

  @Test(
    "Value, history and latest arguments follow from the results, call by call", arguments: 0...2)
  func everySequence(maxHistory: Int) {
    exhaust(
      "MutationState \(maxHistory)", events: Step.allCases, length: 5,
      from: Walk(maxHistory: maxHistory)
    ) { walk, step in
      try walk.take(step)
    }
  }
}
