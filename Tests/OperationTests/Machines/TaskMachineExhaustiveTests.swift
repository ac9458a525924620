import TestSupport
import Testing

@testable import Operation

/// Who waits goes on exactly once: with the output when there is one, or with nothing because he was
/// cancelled. A task is started once, its output never changes, and its Swift task is cancelled if
/// either comes before the other.
@Suite("TaskMachine, every sequence") struct TaskMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case start, attach, cancelWithOutput, cancelWithout, end
    case waitFirst, waitSecond, giveUpFirst, giveUpSecond
  }

  private static let task = Task<Void, Never> {}
  private static let ids = [OperationTaskID.next(), OperationTaskID.next()]

  private struct Walk {
    private var machine = TaskMachine<Int, Int>()
    private var hasStarted = false
    private var isAttached = false
    private var isCancelled = false
    private var output: Int?
    private var waiting: Set<Int> = []
    private var hasWaited: Set<Int> = []
    private var hasGivenUp: Set<Int> = []
    private var next = 0

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .start:
        try mustHold(machine.start() == (!hasStarted && output == nil), "it is started once")
        hasStarted = hasStarted || output == nil
      case .attach:
        guard hasStarted, !isAttached else { return false }
        let isTooLate = machine.attach(TaskMachineExhaustiveTests.task)
        try mustHold(isTooLate == isCancelled, "one that comes too late is cancelled at once")
        isAttached = true
      case .cancelWithOutput, .cancelWithout: try cancel(step == .cancelWithOutput ? next : nil)
      case .end: try end(with: next, machine.end(with: next).elements)
      case .waitFirst, .waitSecond: return try wait(step == .waitFirst ? 0 : 1)
      case .giveUpFirst, .giveUpSecond: return try giveUp(step == .giveUpFirst ? 0 : 1)
      }
      try mustHold(machine.output == output, "the output is the first one")
      try mustHold(machine.waiterCount == waiting.count, "\(waiting) wait")
      try mustHold(machine.progress.hasStarted == hasStarted, "it says whether it has started")
      try mustHold(machine.progress.isCancelled == isCancelled, "it says whether it is cancelled")
      return true
    }

    private mutating func end(with new: Int, _ waiters: [Int]) throws {
      let resumed = waiters
      try mustHold(resumed == (output == nil ? waiting.sorted() : []), "who waits goes on")
      guard output == nil else { return }
      (output, waiting) = (new, [])
    }

    private mutating func cancel(_ new: Int?) throws {
      let actions = machine.cancel(with: new)
      let isOver = output != nil
      try mustHold(
        (actions.cancelled != nil) == (isAttached && hasStarted && !isOver),
        "the Swift task is cancelled if it is there")
      if !isOver { isCancelled = true }
      if let new {
        try end(with: new, actions.resumed.elements)
      } else {
        try mustHold(actions.resumed.elements.isEmpty, "without an output everybody waits on")
      }
    }

    private mutating func wait(_ index: Int) throws -> Bool {
      guard hasWaited.insert(index).inserted else { return false }
      let id = TaskMachineExhaustiveTests.ids[index]
      switch machine.wait(id, waiter: index) {
      case .suspend:
        try mustHold(output == nil && !hasGivenUp.contains(index), "there is something to wait for")
        waiting.insert(index)
      case .resume(let given):
        try mustHold(output != nil || hasGivenUp.contains(index), "he goes on for a reason")
        try mustHold(given == output, "he gets the output")
      }
      return true
    }

    private mutating func giveUp(_ index: Int) throws -> Bool {
      guard hasGivenUp.insert(index).inserted else { return false }
      let waiter = machine.cancelWait(TaskMachineExhaustiveTests.ids[index])
      let expected = waiting.remove(index)
      try mustHold(waiter == expected, "who waits and gives up goes on, and nobody else")
      return true
    }
  }

  @Test("Everybody who waits goes on once, and the first output counts") func everySequence() {
    exhaust("TaskMachine", events: Step.allCases, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }

  /// What a schedule may do: an edge from one task to another, or the end of a task.
  private enum GraphStep { case wait(Int, Int), end(Int) }

  /// The schedule beside a plain set of edges: none closes a circle, and nothing is left of a task
  /// that has ended.
  private struct Schedule {
    let nodes = (0..<4).map { _ in TaskNode() }
    private var graph = TaskSchedule()
    private var edges: [[Int]] = Array(repeating: [], count: 4)

    private func reaches(_ target: Int, from start: Int) -> Bool {
      start == target || edges[start].contains { reaches(target, from: $0) }
    }

    mutating func take(_ step: GraphStep) throws -> Bool {
      switch step {
      case .wait(let one, let other):
        let refused = graph.add([TaskDependency(node: nodes[other]) {}], to: nodes[one].id)
        try mustHold(
          refused.isEmpty != reaches(one, from: other), "an edge is made unless it is a circle")
        if refused.isEmpty { edges[one].append(other) }
      case .end(let index):
        guard !edges[index].isEmpty else { return false }
        try mustHold(
          graph.remove(nodes[index].id, toReleaseOn: 1).mustRelease, "its edges are released")
        let removed = graph.nextToRelease(on: 1)
        try mustHold(removed?.count == edges[index].count, "its edges are given back")
        try mustHold(graph.nextToRelease(on: 1) == nil, "once")
        edges[index] = []
      }
      for (index, node) in nodes.enumerated() {
        let found = graph.dependencies(of: node.id).map(\.node.id)
        try mustHold(found == edges[index].map { nodes[$0].id }, "the edges are \(edges)")
      }
      try mustHold(graph.isEmpty == edges.allSatisfy(\.isEmpty), "nothing is left over")
      return true
    }
  }

  @Test("A schedule has every edge that closes no circle, and never one that does")
  func schedule() {
    let edges = (0..<4).flatMap { one in (0..<4).map { GraphStep.wait(one, $0) } }
    exhaust(
      "TaskSchedule", events: edges + (0..<4).map(GraphStep.end), length: 4, from: Schedule()
    ) { schedule, step in try schedule.take(step) }
  }
}
