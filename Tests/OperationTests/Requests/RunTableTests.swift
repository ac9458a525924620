import TestSupport
import Testing

@testable import Operation

@Suite("RunTable") struct RunTableTests {
  private typealias Table = RunTable<Int, any Error, Int>

  private func insert(
    _ number: Int, into table: inout Table, awaiters: Int = 1, handles: Int = 0,
    isObserved: Bool = false, isStarted: Bool = true
  ) -> OperationTaskID {
    let core = TaskCore<Int, any Error>(TaskNode(driver: IdleDriver()))
    table.insert(
      Table.Record(
        task: OperationTask(core, box: .init(.number(number))), awaiters: awaiters,
        handles: handles, isHeldByObservers: isObserved, isStarted: isStarted, payload: number))
    return core.id
  }

  private func joined(_ admission: Table.Admission) -> OperationTaskID? {
    if case .join(let core) = admission { core.id } else { nil }
  }

  private func isNew(_ admission: Table.Admission) -> Bool {
    if case .new = admission { true } else { false }
  }

  private func compared(_ admission: Table.Admission) -> [OperationTaskID]? {
    if case .compare(let candidates) = admission { candidates.map(\.id) } else { nil }
  }

  private let rules: [Deduplication] = [.never, .equivalentContexts, .by { _, _ in true }]

  @Test("Every rule admits the first run as a new one")
  func empty() {
    for rule in rules { #expect(isNew(Table().admit(.number(1), rule: rule, verdict: nil))) }
  }

  @Test("A run joins the oldest run with an equivalent context")
  func equivalent() {
    var table = Table()
    let first = insert(1, into: &table)
    _ = insert(1, into: &table)
    let rule = Deduplication.equivalentContexts
    #expect(joined(table.admit(.number(1), rule: rule, verdict: nil)) == first)
    #expect(isNew(table.admit(.number(2), rule: rule, verdict: nil)))
    #expect(isNew(table.admit(.number(1), rule: .never, verdict: nil)))
  }

  @Test("A predicate is called with every run in the table, and is called again for new ones")
  func predicate() {
    var table = Table()
    let first = insert(1, into: &table)
    let rule = Deduplication.by { $0.fixtureNumber == $1.fixtureNumber }
    let admission = table.admit(.number(2), rule: rule, verdict: nil)
    #expect(compared(admission) == [first])
    guard case .compare(let candidates) = admission else { return }
    let verdict = rule.verdict(on: .number(2), among: candidates)
    #expect(verdict.match == nil)
    #expect(isNew(table.admit(.number(2), rule: rule, verdict: verdict)))
    let second = insert(2, into: &table)
    #expect(compared(table.admit(.number(2), rule: rule, verdict: verdict)) == [first, second])
  }

  @Test("A run that ends while the predicate is called is not joined")
  func endedMeanwhile() {
    var table = Table()
    let first = insert(1, into: &table)
    let second = insert(2, into: &table)
    let verdict = RunVerdict(compared: [first, second], match: first)
    let rule = Deduplication.by { _, _ in true }
    #expect(joined(table.admit(.number(1), rule: rule, verdict: verdict)) == first)
    _ = table.remove(first)
    #expect(compared(table.admit(.number(1), rule: rule, verdict: verdict)) == [second])
    _ = table.remove(second)
    #expect(isNew(table.admit(.number(1), rule: rule, verdict: verdict)))
    #expect(table.isEmpty)
  }

  @Test(
    "A run remains in the table while it is held",
    arguments: [
      (1, 0, false, true, 0, false), (0, 0, true, true, 1, false), (0, 0, true, true, 0, true),
      (0, 1, false, false, 0, false), (0, 1, false, true, 0, true), (0, 0, false, true, 5, true),
      (0, 0, false, false, 5, true), (2, 1, true, false, 1, false),
    ])
  func holding(
    awaiters: Int, handles: Int, isObserved: Bool, isStarted: Bool, observers: Int, isFree: Bool
  ) {
    var table = Table()
    let id = insert(
      1, into: &table, awaiters: awaiters, handles: handles, isObserved: isObserved,
      isStarted: isStarted)
    #expect((table.removeIfFree(id, observerCount: observers) != nil) == isFree)
    #expect(table.isEmpty == isFree)
    #expect((table[id] == nil) == isFree)
  }

  @Test("A run that is not in the table is neither changed nor removed")
  func unknown() {
    var table = Table()
    let id = insert(1, into: &table)
    #expect(table.remove(id)?.payload == 1)
    table.update(id) { $0.awaiters += 1 }
    #expect(table.remove(id) == nil)
    #expect(table.removeIfFree(id, observerCount: 0) == nil)
    #expect(table.count == 0)
  }

  @Test("Leases are counted as runs are added, changed and removed")
  func leases() {
    var table = Table()
    let first = insert(1, into: &table, awaiters: 2)
    let second = insert(2, into: &table, awaiters: 0, isObserved: true)
    #expect(table.leaseCount(observerCount: 3) == 5)
    table.update(first) { $0.awaiters -= 1 }
    table.update(second) { $0.isHeldByObservers = false }
    #expect(table.leaseCount(observerCount: 3) == 1)
    _ = table.remove(first)
    #expect(table.leaseCount(observerCount: 3) == 0)
  }

  @Test("Only runs whose contexts have the same hash are compared")
  func hashes() {
    let comparisons = Tape<Void>()
    func context(_ number: Int) -> OperationContext {
      var context = OperationContext()
      context[CountedKey.self] = CountedNumber(number: number, comparisons: comparisons)
      return context
    }
    var table = Table()
    var ids: [OperationTaskID] = []
    for number in 0..<100 {
      let core = TaskCore<Int, any Error>(TaskNode(driver: IdleDriver()))
      let isNew = isNew(table.admit(context(number), rule: .equivalentContexts, verdict: nil))
      #expect(isNew)
      table.insert(
        Table.Record(
          task: OperationTask(core, box: .init(context(number))), awaiters: 1, isStarted: true,
          payload: number))
      ids.append(core.id)
    }
    #expect(comparisons.take().isEmpty)
    for number in 0..<100 {
      let joined = joined(table.admit(context(number), rule: .equivalentContexts, verdict: nil))
      #expect(joined == ids[number])
    }
    // The run is compared with one context, in both directions.
    #expect(comparisons.take().count == 200)
    for id in ids { _ = table.remove(id) }
    #expect(isNew(table.admit(context(1), rule: .equivalentContexts, verdict: nil)))
  }
}

private enum CountedKey: OperationContext.Key {
  static var defaultValue: CountedNumber? { nil }
}

/// A number that counts its comparisons.
private struct CountedNumber: Hashable {
  let number: Int
  let comparisons: Tape<Void>

  static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.comparisons.note(())
    return lhs.number == rhs.number
  }

  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
