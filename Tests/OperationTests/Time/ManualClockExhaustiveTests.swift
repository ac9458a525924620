import TestSupport
import Testing

@testable import Operation

/// A sleep ends when the clock reaches its time, or is cancelled; a cancelled one does not count from
/// then on. A call that waits for two sleeps ends when there are two, or is cancelled. An advance
/// wakes everything that is due, also if it is cancelled.
@Suite("ManualClock, every sequence") struct ManualClockExhaustiveTests {
  private enum Step: CaseIterable {
    case sleep, sleepNoTime, waitForTwo, advance, cancelSleep, cancelWait, cancelAdvance, run
  }

  private enum Kind: Equatable { case sleep(seconds: Int), waitForTwo, advance }

  /// A call in its own task.
  private struct Call {
    let kind: Kind
    let task: Task<Void, Never>
    var hasStarted = false
    var isCancelled = false
    var deadline = 0
    /// Whether the call returns, or throws; `nil` before its end.
    var returns: Bool?

    var isSleep: Bool { if case .sleep = kind { true } else { false } }
    var isSleeping: Bool { isSleep && hasStarted && !isCancelled && returns == nil }
    var isWaitingForTwo: Bool { kind == .waitForTwo && hasStarted && returns == nil }
  }

  private final class Walk {
    private let clock = ManualClock()
    private let executor = HandExecutor()
    private let ended = Tape<(index: Int, returns: Bool)>()
    private var results: [Int: Bool] = [:]
    private var calls: [Call] = []
    private var now = 0

    private var sleeping: Int { calls.count { $0.isSleeping } }

    deinit {
      for call in calls { call.task.cancel() }
      executor.run()
    }

    func take(_ step: Step) throws -> Bool {
      let isPossible =
        switch step {
        case .sleep: start(.sleep(seconds: 1)) { try await $0.sleep(for: .seconds(1)) }
        case .sleepNoTime: start(.sleep(seconds: 0)) { try await $0.sleep(for: .zero) }
        case .waitForTwo: start(.waitForTwo) { await $0.sleepers(atLeast: 2) }
        case .advance: start(.advance) { await $0.advance(by: .seconds(1)) }
        case .cancelSleep: cancelFirst { $0.isSleep }
        case .cancelWait: cancelFirst { $0.kind == .waitForTwo }
        case .cancelAdvance: cancelFirst { $0.kind == .advance }
        case .run: run()
        }
      guard isPossible else { return false }
      for (index, returns) in ended.take() { results[index] = returns }
      let expected = calls.map(\.returns)
      let present = calls.indices.map { results[$0] }
      try mustHold(present == expected, "the results are \(expected), and not \(present)")
      try mustHold(clock.sleeperCount == sleeping, "there are \(sleeping) sleeps")
      let isIdle = !calls.contains { $0.isSleeping || $0.isWaitingForTwo }
      try mustHold(clock.hasNoTraces == isIdle, "there are traces exactly while a call waits")
      return true
    }

    /// Makes a task, whose jobs are run in the step `run`. An advance is run alone.
    private func start(
      _ kind: Kind, _ body: @escaping @Sendable (ManualClock) async throws -> Void
    ) -> Bool {
      let last = calls.last
      let isAlone = last?.hasStarted ?? true
      guard isAlone || (kind != .advance && last?.kind != .advance) else { return false }
      let task = Task(executorPreference: executor) { [clock, ended, index = calls.count] in
        do {
          try await body(clock)
          ended.note((index, true))
        } catch {
          ended.note((index, false))
        }
      }
      calls.append(Call(kind: kind, task: task))
      return true
    }

    private func cancelFirst(_ isKind: (Call) -> Bool) -> Bool {
      let index = calls.firstIndex { isKind($0) && !$0.isCancelled && $0.returns == nil }
      guard let index else { return false }
      calls[index].isCancelled = true
      calls[index].task.cancel()
      return true
    }

    private func run() -> Bool {
      executor.run()
      for index in calls.indices where !calls[index].hasStarted {
        calls[index].hasStarted = true
        calls[index].deadline = now
        switch calls[index].kind {
        case .sleep(let seconds): calls[index].deadline += seconds
        case .waitForTwo: break
        case .advance:
          now += 1
          calls[index].returns = true
        }
        if calls[index].kind == .sleep(seconds: 0), !calls[index].isCancelled {
          calls[index].returns = true
        }
        if sleeping >= 2 {
          for other in 0...index where calls[other].isWaitingForTwo { calls[other].returns = true }
        }
      }
      for index in calls.indices where calls[index].returns == nil {
        let call = calls[index]
        // A wait that is cancelled returns; a sleep throws.
        if call.isCancelled {
          calls[index].returns = !call.isSleep
        } else if call.isSleep, call.deadline <= now {
          calls[index].returns = true
        }
      }
      return true
    }
  }

  @Test("Each call ends once, at its time or when it is cancelled, and leaves no trace")
  func everySequence() {
    exhaust("ManualClock", events: Step.allCases, length: 6, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}
