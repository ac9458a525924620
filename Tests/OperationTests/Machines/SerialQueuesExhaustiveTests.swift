import TestSupport
import Testing

@testable import Operation

/// In each scope one run is the current one at a time, in the order of the queue. A run that waits
/// continues exactly once, when it is the current one or leaves the queue. When the last one has left,
/// nothing is left of the scope.
@Suite("SerialQueuesMachine, every sequence") struct SerialQueuesExhaustiveTests {
  private enum Step {
    case enter(Int), wait(Int), leave(Int)
  }

  private struct Walk {
    let ids = (0..<4).map { _ in OperationTaskID.next() }
    private var machine = SerialQueuesMachine<Int>()
    /// The line of each scope; the first one has the turn.
    private var lines: [[Int]] = [[], []]
    private var hasEntered: Set<Int> = []
    private var hasAsked: Set<Int> = []
    private var waiting: Set<Int> = []

    /// The first three go to one scope, the last one goes to another.
    private func scope(_ index: Int) -> Int { index / 3 }
    private func key(_ index: Int) -> SerialScope { SerialScope(scope(index)) }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .enter(let index):
        guard hasEntered.insert(index).inserted else { return false }
        machine.append(ids[index], to: key(index))
        lines[scope(index)].append(index)
      case .wait(let index):
        guard hasEntered.contains(index), hasAsked.insert(index).inserted else { return false }
        let line = lines[scope(index)]
        let mustWait = line.contains(index) && line.first != index
        let continues = machine.wait(for: ids[index], in: key(index), waiter: index)
        try mustHold(
          continues == (mustWait ? nil : index), "a run waits if there is another one before it")
        if mustWait { waiting.insert(index) }
      case .leave(let index):
        guard hasEntered.contains(index) else { return false }
        try leave(index)
      }
      try mustHold(
        machine.isEmpty == lines.allSatisfy(\.isEmpty), "nothing is left when all have gone")
      return true
    }

    private mutating func leave(_ index: Int) throws {
      let wasCurrent = lines[scope(index)].first == index
      let isLast = lines[scope(index)] == [index]
      lines[scope(index)].removeAll { $0 == index }
      let own = waiting.remove(index)
      let next = wasCurrent ? lines[scope(index)].first.flatMap { waiting.remove($0) } : nil
      let departure = machine.remove(ids[index], from: key(index))
      try mustHold(departure.own == own, "a run that leaves does not wait any more")
      try mustHold(
        departure.emptied == (isLast ? key(index) : nil), "the scope leaves with its last run")
      try mustHold(departure.next == next, "\(next ?? -1) goes on, and not \(departure.next ?? -1)")
    }
  }

  @Test("One after the other, in the order of the line, and everybody once")
  func everySequence() {
    let events = (0..<4).flatMap { [Step.enter($0), .wait($0), .leave($0)] }
    exhaust("SerialQueuesMachine", events: events, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
