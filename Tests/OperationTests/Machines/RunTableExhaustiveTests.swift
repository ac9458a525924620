import TestSupport
import Testing

@testable import Operation

/// A run is in the table while it is held: by its awaiters, by observers while there are any, or by
/// handles before its start. A new run joins the oldest equivalent run. A predicate compares the new
/// run with every run in the table.
@Suite("RunTable, every sequence") struct RunTableExhaustiveTests {
  private typealias Table = RunTable<Int, any Error, Int>

  private enum Step: CaseIterable {
    case insertOne, insertTwo, handle, dropHandle, start, observe, noObservers
    case releaseOldest, releaseNewest, cancelOldest
  }

  private struct Run {
    let core: TaskCore<Int, any Error>
    let number: Int
    var awaiters = 0
    var handles = 0
    var isObserved = false
    var isStarted = true

    func isHeld(_ observers: Int) -> Bool {
      awaiters > 0 || (isObserved && observers > 0) || (handles > 0 && !isStarted)
    }
  }

  private struct Walk {
    private static let driver = IdleDriver()
    private var table = Table()
    private var runs: [Run] = []
    private var observers = 1

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .insertOne, .insertTwo:
        insert(Run(core: core(), number: step == .insertOne ? 1 : 2, awaiters: 1))
      case .handle: insert(Run(core: core(), number: 1, handles: 1, isStarted: false))
      case .dropHandle:
        guard let index = runs.firstIndex(where: { $0.handles > 0 }) else { return false }
        try release(index, { $0.handles -= 1 }, { $0.handles -= 1 })
      case .start:
        guard let index = runs.firstIndex(where: { !$0.isStarted }) else { return false }
        change(index, { $0.isStarted = true }, { $0.isStarted = true })
        change(index, { $0.awaiters += 1 }, { $0.awaiters += 1 })
      case .observe:
        guard let index = runs.lastIndex(where: { $0.isStarted && !$0.isObserved }) else {
          return false
        }
        observers = 1
        change(index, { $0.isObserved = true }, { $0.isHeldByObservers = true })
      case .noObservers:
        guard observers > 0 else { return false }
        observers = 0
        for index in runs.indices.reversed() { try release(index, { _ in }, { _ in }) }
      case .releaseOldest, .releaseNewest:
        let index =
          step == .releaseOldest
          ? runs.firstIndex { $0.awaiters > 0 } : runs.lastIndex { $0.awaiters > 0 }
        guard let index else { return false }
        try release(index, { $0.awaiters -= 1 }, { $0.awaiters -= 1 })
      case .cancelOldest:
        guard !runs.isEmpty else { return false }
        let run = runs.removeFirst()
        try mustHold(
          table.remove(run.core.id)?.core == run.core, "a run in the table can be removed")
      }
      try check()
      return true
    }

    private func core() -> TaskCore<Int, any Error> { TaskCore(TaskNode(driver: Self.driver)) }

    private mutating func insert(_ run: Run) {
      runs.append(run)
      table.insert(
        Table.Record(
          task: OperationTask(run.core, box: .init(.number(run.number))), awaiters: run.awaiters,
          handles: run.handles, isStarted: run.isStarted, payload: run.number))
    }

    private mutating func change(
      _ index: Int, _ model: (inout Run) -> Void, _ record: (inout Table.Record) -> Void
    ) {
      model(&runs[index])
      table.update(runs[index].core.id, record)
    }

    private mutating func release(
      _ index: Int, _ model: (inout Run) -> Void, _ record: (inout Table.Record) -> Void
    ) throws {
      change(index, model, record)
      let run = runs[index]
      let removed = table.removeIfFree(run.core.id, observerCount: observers)
      try mustHold(
        (removed == nil) == run.isHeld(observers), "a run is removed when it is no longer held")
      if !run.isHeld(observers) { runs.remove(at: index) }
    }

    private func check() throws {
      try mustHold(table.count == runs.count && table.isEmpty == runs.isEmpty, "the count is right")
      for number in 1...2 {
        let oldest = runs.first { $0.number == number }?.core
        let joined = joined(table.admit(.number(number), rule: .equivalentContexts, verdict: nil))
        try mustHold(joined == oldest?.id, "the oldest equivalent run is joined")
        let never = table.admit(.number(number), rule: .never, verdict: nil)
        try mustHold(self.joined(never) == nil, "without a rule no run is joined")
        try checkPredicate(number)
      }
    }

    private func checkPredicate(_ number: Int) throws {
      let rule = Deduplication.by { $0.fixtureNumber == $1.fixtureNumber }
      guard case .compare(let candidates) = table.admit(.number(number), rule: rule, verdict: nil)
      else { return try mustHold(runs.isEmpty, "the predicate is called if there is a run") }
      try mustHold(
        candidates.map(\.id) == runs.map(\.core.id), "the predicate is called with every run")
      let verdict = rule.verdict(on: .number(number), among: candidates)
      let admission = table.admit(.number(number), rule: rule, verdict: verdict)
      let expected = runs.first { $0.number == number }?.core.id
      try mustHold(joined(admission) == expected, "the predicate decides which run is joined")
      let partial = RunVerdict(compared: Set(verdict.compared.dropFirst()), match: verdict.match)
      guard case .compare = table.admit(.number(number), rule: rule, verdict: partial) else {
        return try mustHold(false, "the predicate is called again for a new run")
      }
    }

    private func joined(_ admission: Table.Admission) -> OperationTaskID? {
      if case .join(let core) = admission { core.id } else { nil }
    }
  }

  @Test("A run is in the table while it is held, and new runs join the right one")
  func everySequence() {
    exhaust("RunTable", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
