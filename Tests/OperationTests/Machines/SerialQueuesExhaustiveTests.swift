import TestSupport
import Testing

@testable import Operation

/// In each scope one has his turn at a time, in the order of the line; those who have gone are
/// passed over. Everybody who waits goes on exactly once, when his turn comes. When the last one has
/// ended, nothing is left of the scope.
@Suite("SerialQueuesMachine, every sequence") struct SerialQueuesExhaustiveTests {
  private enum Step {
    case enter(Int), wait(Int), leave(Int), end(Int)
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
        let line = lines[scope(index)]
        guard line.contains(index), hasAsked.insert(index).inserted else { return false }
        let hasTurn = machine.wait(for: ids[index], in: key(index), waiter: index)
        try mustHold(hasTurn == (line.first == index), "he has the turn if he is the first one")
        if !hasTurn { waiting.insert(index) }
      case .leave(let index):
        // One who waits hears of no cancellation: he leaves with his turn.
        guard lines[scope(index)].contains(index), !hasAsked.contains(index) else { return false }
        try goes(index) { $0.remove($2, from: $1) }
      case .end(let index):
        guard hasEntered.contains(index) else { return false }
        if lines[scope(index)].first == index, !waiting.contains(index) {
          try goes(index) { $0.end($2, in: $1) }
        } else {
          let resumed = machine.end(ids[index], in: key(index))
          try mustHold(resumed == nil, "a stranger to the turn ends none")
        }
      }
      try mustHold(
        machine.isEmpty == lines.allSatisfy(\.isEmpty), "nothing is left when all have gone")
      return true
    }

    private mutating func goes(
      _ index: Int,
      _ transition: (inout SerialQueuesMachine<Int>, SerialScope, OperationTaskID) -> Int?
    ) throws {
      let hadTurn = lines[scope(index)].first == index
      lines[scope(index)].removeAll { $0 == index }
      let next = hadTurn ? lines[scope(index)].first.flatMap { waiting.remove($0) } : nil
      let resumed = transition(&machine, key(index), ids[index])
      try mustHold(resumed == next, "\(next ?? -1) goes on, and not \(resumed ?? -1)")
    }
  }

  @Test("One after the other, in the order of the line, and everybody once")
  func everySequence() {
    let events = (0..<4).flatMap { [Step.enter($0), .wait($0), .leave($0), .end($0)] }
    exhaust("SerialQueuesMachine", events: events, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
