import TestSupport
import Testing

@testable import Operation

/// A waiter continues exactly once: with the output, or without one if its wait is cancelled. A task
/// is started once, and its output never changes. Its Swift task is cancelled with it, whether it is
/// attached before or after, and so is that of a launch that was replaced.
@Suite("TaskMachine, every sequence") struct TaskMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case start, restart, attach, attachReplaced, cancelWithOutput, cancelWithout, end
    case waitFirst, waitSecond, cancelFirst, cancelSecond
  }

  private static let task = Task<Void, Never> {}
  private static let ids = [OperationTaskID.next(), OperationTaskID.next()]

  private struct Walk {
    private var machine = TaskMachine<Int, Int>()
    private var hasStarted = false
    private var isAttached = false
    private var launch = 0
    private var isCancelled = false
    private var output: Int?
    private var waiting: Set<Int> = []
    private var hasWaited: Set<Int> = []
    private var next = 0

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .start:
        try mustHold(machine.start() == (!hasStarted && output == nil), "the task is started once")
        hasStarted = hasStarted || output == nil
      case .restart: try restart()
      case .attach:
        guard hasStarted, !isAttached else { return false }
        let isTooLate = machine.attach(TaskMachineExhaustiveTests.task, launch: launch)
        try mustHold(
          isTooLate == isCancelled, "a Swift task that is attached late is cancelled at once")
        isAttached = true
      case .attachReplaced:
        guard launch > 0 else { return false }
        let isTooLate = machine.attach(TaskMachineExhaustiveTests.task, launch: launch - 1)
        try mustHold(isTooLate, "the Swift task of a replaced launch is cancelled at once")
      case .cancelWithOutput, .cancelWithout: try cancel(step == .cancelWithOutput ? next : nil)
      case .end: try end(with: next, machine.end(with: next).elements)
      case .waitFirst, .waitSecond: return try wait(step == .waitFirst ? 0 : 1)
      case .cancelFirst, .cancelSecond: return try cancelWait(step == .cancelFirst ? 0 : 1)
      }
      try mustHold(machine.output == output, "the output is the first one")
      try mustHold(machine.waiters.count == waiting.count, "\(waiting) are waiting")
      try mustHold(machine.progress.hasStarted == hasStarted, "hasStarted is right")
      try mustHold(machine.progress.isCancelled == isCancelled, "isCancelled is right")
      return true
    }

    private mutating func restart() throws {
      let isPossible = hasStarted && output == nil
      let replaced = machine.restart(launch: launch + 1)
      try mustHold(
        (replaced != nil) == (isPossible && isAttached),
        "the Swift task is replaced if it is attached")
      try mustHold(machine.restart(launch: launch) == nil, "an earlier launch replaces nothing")
      if isPossible { (launch, isAttached) = (launch + 1, false) }
      try mustHold(machine.launch == launch, "the launch is the last one")
    }

    private mutating func end(with new: Int, _ waiters: [Int]) throws {
      let resumed = waiters
      try mustHold(resumed == (output == nil ? waiting.sorted() : []), "every waiter continues")
      guard output == nil else { return }
      (output, waiting) = (new, [])
    }

    private mutating func cancel(_ new: Int?) throws {
      let actions = machine.cancel(with: new)
      let isOver = output != nil
      try mustHold(
        (actions.cancelled != nil) == (isAttached && hasStarted && !isOver),
        "the Swift task is cancelled if it is attached")
      if !isOver { isCancelled = true }
      if let new {
        try end(with: new, actions.resumed.elements)
      } else {
        try mustHold(actions.resumed.elements.isEmpty, "without an output every waiter still waits")
      }
    }

    private mutating func wait(_ index: Int) throws -> Bool {
      guard hasWaited.insert(index).inserted else { return false }
      let id = TaskMachineExhaustiveTests.ids[index]
      let given = machine.wait(id, waiter: index)
      try mustHold(given == output, "a waiter continues only with the output")
      if given == nil { waiting.insert(index) }
      return true
    }

    private mutating func cancelWait(_ index: Int) throws -> Bool {
      let waiter = machine.cancelWait(TaskMachineExhaustiveTests.ids[index])
      let expected = waiting.remove(index)
      try mustHold(waiter == expected, "only the cancelled waiter continues")
      return true
    }
  }

  @Test("Every waiter continues once, and the first output is kept") func everySequence() {
    exhaust("TaskMachine", events: Step.allCases, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }

  /// A step of a schedule: an edge from one task to another, or the end or the cancellation of a task.
  private enum GraphStep { case wait(Int, Int), end(Int), cancel(Int) }

  /// Tasks beside a plain set of edges. No edge closes a cycle, and a task that has ended or was cancelled
  /// has none.
  private struct Schedule {
    let nodes = (0..<4).map { _ in TaskNode() }
    private var edges: [[Int]] = Array(repeating: [], count: 4)

    private func reaches(_ target: Int, from start: Int) -> Bool {
      start == target || edges[start].contains { reaches(target, from: $0) }
    }

    mutating func take(_ step: GraphStep) throws -> Bool {
      switch step {
      case .wait(let one, let other):
        let isOver = nodes[one].progress.isEnded || nodes[one].progress.isCancelled
        nodes[one].addDependency(on: TaskDependency(node: nodes[other]) {})
        if !isOver, !reaches(one, from: other) { edges[one].append(other) }
      case .end(let index):
        if nodes[index].progress.isEnded { return false }
        nodes[index].end(with: Result<Int, any Error>.success(index).asOutput)
        edges[index] = []
      case .cancel(let index):
        if nodes[index].progress.isCancelled { return false }
        nodes[index].cancelRun(with: nil)
        edges[index] = []
      }
      for (index, node) in nodes.enumerated() {
        let found = node.dependencies
        try mustHold(
          found.map(\.node.id) == edges[index].map { nodes[$0].id }, "the edges are \(edges)")
        try mustHold(found.allSatisfy(\.isConfirmed), "each edge is confirmed")
      }
      return true
    }
  }

  @Test("A schedule has every edge that closes no cycle, and never one that does")
  func schedule() {
    let edges = (0..<4).flatMap { one in (0..<4).map { GraphStep.wait(one, $0) } }
    OperationIssue.withHandler({ _ in }) {
      exhaust(
        "TaskDependency", events: edges + (0..<4).flatMap { [.end($0), .cancel($0)] },
        length: 4, making: { Schedule() }, step: { try $0.take($1) })
    }
  }
}
