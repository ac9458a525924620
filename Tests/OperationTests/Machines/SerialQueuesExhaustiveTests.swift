import TestSupport
import Testing

@testable import Operation

/// In each scope one run is the current one at a time, in the order of the queue. A run that waits
/// continues exactly once, when it is the current one or is removed from the queue. When the last
/// run is removed, nothing is left of the scope.
@Suite("SerialQueuesMachine, every sequence") struct SerialQueuesExhaustiveTests {
  private enum Step {
    case append(Int), wait(Int), remove(Int)
  }

  private struct Walk {
    private let runs = (0..<4).map { _ in TaskNode() }
    private var machine = SerialQueuesMachine<Int>()
    /// The queue of each scope. The first run is the current one.
    private var queues: [[Int]] = [[], []]
    private var appended: Set<Int> = []
    private var hasWaited: Set<Int> = []
    private var waiting: Set<Int> = []

    /// The first three runs have one scope, the last one has another.
    private func scope(_ index: Int) -> Int { index / 3 }
    private func key(_ index: Int) -> SerialScope { SerialScope(scope(index)) }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .append(let index):
        guard appended.insert(index).inserted else { return false }
        machine.append(runs[index], to: key(index))
        queues[scope(index)].append(index)
      case .wait(let index):
        guard appended.contains(index), hasWaited.insert(index).inserted else { return false }
        let queue = queues[scope(index)]
        let mustWait = queue.contains(index) && queue.first != index
        let continues = machine.wait(for: runs[index].id, in: key(index), waiter: index)
        try mustHold(
          continues == (mustWait ? nil : index), "a run waits if there is another one before it")
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
      let wasCurrent = queues[scope(index)].first == index
      let isLast = queues[scope(index)] == [index]
      queues[scope(index)].removeAll { $0 == index }
      let own = waiting.remove(index)
      let next = wasCurrent ? queues[scope(index)].first.flatMap { waiting.remove($0) } : nil
      let departure = machine.remove(runs[index].id, from: key(index))
      try mustHold(departure.own == own, "a removed run does not wait any more")
      try mustHold(
        departure.emptied == (isLast ? key(index) : nil), "the scope is removed with its last run")
      try mustHold(
        departure.next == next, "\(next ?? -1) continues, and not \(departure.next ?? -1)")
    }
  }

  @Test("Runs of a scope continue one after the other, in the order of the queue, and once each")
  func everySequence() {
    let events = (0..<4).flatMap { [Step.append($0), .wait($0), .remove($0)] }
    exhaust("SerialQueuesMachine", events: events, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
