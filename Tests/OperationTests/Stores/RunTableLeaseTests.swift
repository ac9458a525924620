@testable import Operation
import Testing

@Suite("The table of runs") struct RunTableLeaseTests {
  private typealias Table = RunTable<Int, any Error, String>
  private typealias Core = TaskCore<Int, any Error>

  private enum Number: OperationContext.Key { static var defaultValue: Int { 0 } }

  private func context(_ number: Int) -> OperationContext {
    var context = OperationContext()
    context[Number.self] = number
    return context
  }

  private func record(_ number: Int) -> Table.Record {
    Table.Record(
      task: OperationTask(Core(TaskNode(driver: IdleDriver())), box: .init(context(number))),
      payload: "\(number)")
  }

  private func makeTable(_ numbers: Int...) -> (Table, [OperationTaskID]) {
    var table = Table()
    let records = numbers.map(record)
    for record in records { table.insert(record) }
    return (table, records.map(\.core.id))
  }

  @Test("An empty table begins a new run under every rule")
  func empty() {
    let rules: [Deduplication] = [.never, .equivalentContexts, .by { _, _ in true }]
    for rule in rules {
      guard case .new = Table().admit(context(1), rule: rule, verdict: nil) else {
        Issue.record("\(rule) joined a run that does not exist")
        continue
      }
    }
  }

  @Test("Without deduplication every caller starts a new run")
  func never() {
    let (table, _) = makeTable(1)
    guard case .new = table.admit(context(1), rule: .never, verdict: nil) else {
      Issue.record("a run was joined")
      return
    }
  }

  @Test("Of several runs in an equivalent context the oldest is joined")
  func equivalent() {
    let (table, ids) = makeTable(2, 1, 1)
    guard case .join(let core) = table.admit(context(1), rule: .equivalentContexts, verdict: nil)
    else {
      Issue.record("no run was joined")
      return
    }
    #expect(core.id == ids[1])
    guard case .new = table.admit(context(3), rule: .equivalentContexts, verdict: nil) else {
      Issue.record("joined a run in another context")
      return
    }
  }

  @Test("A predicate is called for all runs, and again if the runs have changed since")
  func predicate() {
    var (table, ids) = makeTable(1, 2)
    let rule = Deduplication.by { $0[Number.self] == $1[Number.self] }
    guard case .compare(let candidates) = table.admit(context(2), rule: rule, verdict: nil) else {
      Issue.record("the predicate was not called")
      return
    }
    #expect(candidates.map(\.id) == ids)
    let verdict = rule.verdict(on: context(2), among: candidates)
    #expect(verdict.match == ids[1])
    guard case .join(let core) = table.admit(context(2), rule: rule, verdict: verdict) else {
      Issue.record("no run was joined")
      return
    }
    #expect(core.id == ids[1])
    _ = table.remove(ids[1])
    guard case .compare = table.admit(context(2), rule: rule, verdict: verdict) else {
      Issue.record("the chosen run was removed, and the predicate was not called again")
      return
    }
    table.insert(record(3))
    let none = RunVerdict(compared: [ids[0]], match: nil)
    guard case .compare = table.admit(context(2), rule: rule, verdict: none) else {
      Issue.record("a run was added, and the predicate was not called for it")
      return
    }
  }

  @Test(
    "A run is held by awaiters, by observers while there are any, and by handles before its start",
    arguments: [0, 1], [0, 1])
  func held(awaiters: Int, handles: Int) {
    for isHeldByObservers in [true, false] {
      for observerCount in [0, 2] {
        for isStarted in [true, false] {
          var (table, ids) = makeTable(1)
          table.update(ids[0]) {
            $0.awaiters = awaiters
            $0.handles = handles
            $0.isHeldByObservers = isHeldByObservers
            $0.isStarted = isStarted
          }
          let isHeld =
            awaiters > 0 || (isHeldByObservers && observerCount > 0) || (handles > 0 && !isStarted)
          let removed = table.removeIfFree(ids[0], observerCount: observerCount)
          #expect((removed == nil) == isHeld)
          #expect(table.isEmpty == !isHeld)
        }
      }
    }
  }

  @Test("An event of a run that is not in the table changes nothing")
  func missing() {
    var (table, ids) = makeTable(1)
    _ = table.remove(ids[0])
    table.update(ids[0]) { $0.awaiters -= 1 }
    let again = table.remove(ids[0])
    let free = table.removeIfFree(ids[0], observerCount: 0)
    #expect(again == nil)
    #expect(free == nil)
    #expect(table.isEmpty)
  }
}
