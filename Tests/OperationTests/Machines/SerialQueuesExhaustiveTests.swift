import TestSupport
import Testing

@testable import Operation

/// In each scope as many runs are current ones as the lowest limit in its queue allows, in the order of the
/// queue. A run that waits continues exactly once, when it is a current one or is removed from the queue.
/// When the last run is removed, nothing is left of the scope.
@Suite("SerialQueuesMachine, every sequence") struct SerialQueuesExhaustiveTests {
  private enum Step {
    case append(Int), wait(Int), remove(Int)
  }

  private struct Walk {
    private let runs = (0..<4).map { _ in TaskNode() }
    private let limits: [Int]
    private var machine = SerialQueuesMachine<Int>()
    /// The queue of each scope.
    private var queues: [[Int]] = [[], []]
    private var appended: Set<Int> = []
    private var hasWaited: Set<Int> = []
    private var waiting: Set<Int> = []

    init(limits: [Int]) { self.limits = limits }

    /// The first three runs have one scope, the last one has another.
    private func scope(_ index: Int) -> Int { index / 3 }
    private func key(_ index: Int) -> SerialScope {
      SerialScope(scope(index), limit: limits[index])
    }

    /// The current runs of the scope of a run.
    private func current(_ index: Int) -> [Int] {
      let queue = queues[scope(index)]
      return Array(queue.prefix(queue.map { limits[$0] }.min() ?? 0))
    }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .append(let index):
        guard appended.insert(index).inserted else { return false }
        machine.append(runs[index], to: key(index))
        queues[scope(index)].append(index)
      case .wait(let index):
        guard appended.contains(index), hasWaited.insert(index).inserted else { return false }
        let mustWait = queues[scope(index)].contains(index) && !current(index).contains(index)
        let continues = machine.wait(for: runs[index].id, in: key(index), waiter: index)
        try mustHold(
          continues == (mustWait ? nil : index), "a run waits if it is no current one")
        if mustWait { waiting.insert(index) }
      case .remove(let index):
        guard appended.contains(index) else { return false }
        try remove(index)
      }
      try mustHold(
        machine.isEmpty == queues.allSatisfy(\.isEmpty), "nothing is left after the last run")
      return true
    }

    private mutating func remove(_ index: Int) throws {
      let isLast = queues[scope(index)] == [index]
      queues[scope(index)].removeAll { $0 == index }
      let own = waiting.remove(index)
      let next = current(index).filter { waiting.remove($0) != nil }
      let departure = machine.remove(runs[index].id, from: key(index))
      try mustHold(departure.own == own, "a removed run does not wait any more")
      try mustHold(
        departure.emptied == (isLast ? key(index) : nil), "the scope is removed with its last run")
      try mustHold(
        departure.next == next, "\(next) continue, and not \(departure.next)")
    }
  }

  @Test(
    "Runs of a scope continue in the order of the queue, as many as its lowest limit, and once each",
    arguments: [[1, 1, 1, 1], [2, 2, 2, 1], [2, 1, 3, 1], [1, 3, 2, 1]])
  func everySequence(_ limits: [Int]) {
    let events = (0..<4).flatMap { [Step.append($0), .wait($0), .remove($0)] }
    exhaust("SerialQueuesMachine", events: events, length: 6, from: Walk(limits: limits)) {
      walk, step in try walk.take(step)
    }
  }
}
