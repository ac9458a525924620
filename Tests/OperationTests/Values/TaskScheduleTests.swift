import Testing

@testable import Operation

@Suite("TaskSchedule") struct TaskScheduleTests {
  private let nodes = (0..<6).map { _ in TaskNode() }

  private func dependency(_ index: Int) -> TaskDependency {
    TaskDependency(node: nodes[index]) {}
  }

  private func add(_ from: Int, after other: Int, to graph: inout TaskSchedule) -> Bool {
    graph.add(dependency(other), to: nodes[from].id)
  }

  @Test("A task waits for the tasks after which it was scheduled, in that order")
  func dependencies() {
    var graph = TaskSchedule()
    #expect(add(0, after: 1, to: &graph))
    #expect(add(0, after: 2, to: &graph))
    #expect(graph.dependencies(of: nodes[0].id).map(\.node.id) == [nodes[1].id, nodes[2].id])
    #expect(graph.dependencies(of: nodes[1].id).isEmpty)
  }

  @Test("A task cannot wait for itself")
  func selfCycle() {
    var graph = TaskSchedule()
    #expect(!add(0, after: 0, to: &graph))
    #expect(graph.isEmpty)
  }

  @Test("No chain of waits may return to its beginning", arguments: 2...6)
  func cycle(length: Int) {
    var graph = TaskSchedule()
    for index in 0..<length - 1 { #expect(add(index, after: index + 1, to: &graph)) }
    #expect(!add(length - 1, after: 0, to: &graph))
    #expect(graph.dependencies(of: nodes[length - 1].id).isEmpty)
  }

  @Test("Two paths to one task are no cycle")
  func diamond() {
    var graph = TaskSchedule()
    for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
      #expect(add(from, after: to, to: &graph))
    }
    #expect(!add(3, after: 0, to: &graph))
    #expect(add(4, after: 0, to: &graph))
  }

  @Test("A dependency is confirmed, or removed if it closes a cycle of another kind")
  func confirmation() {
    var graph = TaskSchedule()
    for other in [1, 2] { #expect(add(0, after: other, to: &graph)) }
    func confirm(_ other: Int, closesCycle: Bool) -> TaskDependency? {
      graph.confirm(nodes[other].id, of: nodes[0].id, closesCycle: closesCycle)
    }
    #expect(graph.dependencies(of: nodes[0].id).map(\.isConfirmed) == [false, false])
    #expect(confirm(1, closesCycle: false)?.node == nil)
    #expect(graph.dependencies(of: nodes[0].id).map(\.isConfirmed) == [true, false])
    #expect(confirm(1, closesCycle: true)?.node == nil)
    #expect(confirm(3, closesCycle: true)?.node == nil)
    #expect(confirm(2, closesCycle: true)?.node === nodes[2])
    #expect(graph.dependencies(of: nodes[0].id).map(\.node.id) == [nodes[1].id])
    // The removed one is no edge any more.
    #expect(add(2, after: 0, to: &graph))
  }

  @Test("A task that has ended waits for no other task, and other tasks may wait for it")
  func removal() {
    var graph = TaskSchedule()
    #expect(add(0, after: 1, to: &graph))
    #expect(graph.remove(nodes[0].id, toReleaseOn: 1).mustRelease)
    #expect(graph.nextToRelease(on: 1)?.count == 1)
    #expect(graph.nextToRelease(on: 1) == nil)
    #expect(graph.remove(nodes[0].id, toReleaseOn: 1).removed.isEmpty)
    #expect(graph.isEmpty)
    #expect(add(1, after: 0, to: &graph))
  }

  @Test("Edges to tasks that have ended are returned at once")
  func removalOfEnded() {
    var graph = TaskSchedule()
    #expect(add(0, after: 1, to: &graph))
    #expect(add(0, after: 2, to: &graph))
    for node in nodes[1...2] { node.end(with: Result<Int, any Error>.success(1).asOutput) }
    let (removed, mustRelease) = graph.remove(nodes[0].id, toReleaseOn: 1)
    #expect(removed.count == 2 && !mustRelease)
    #expect(graph.isEmpty)
  }

  @Test("Where two chains are joined, only an edge that closes a cycle is refused")
  func joinedChains() {
    var graph = TaskSchedule()
    for (from, to) in [(0, 1), (3, 4), (1, 3), (2, 5), (5, 0)] {
      #expect(add(from, after: to, to: &graph))
    }
    #expect(!add(4, after: 2, to: &graph))
    #expect(add(2, after: 4, to: &graph))
  }

  @Test("Of several edges, those that close no cycle are added, and the others are refused")
  func refusal() {
    var graph = TaskSchedule()
    #expect(add(0, after: 1, to: &graph))
    let added = [0, 2, 1].map { add(1, after: $0, to: &graph) }
    #expect(added == [false, true, false])
    #expect(graph.dependencies(of: nodes[1].id).map(\.node.id) == [nodes[2].id])
  }

  @Test("A chain of any length is released with its end", arguments: [Int.max, 1_000, 2])
  func longChain(endedEvery step: Int) {
    weak var first: TaskNode?
    do {
      var next: TaskNode?
      for index in 0..<100_000 {
        let node = TaskNode()
        if let next { node.wait(for: TaskDependency(node: next) {}) }
        if index > 0, index.isMultiple(of: step) {
          next?.end(with: Result<Int, any Error>.success(index).asOutput)
        }
        if index == 0 { first = node }
        next = node
      }
    }
    #expect(first == nil)
  }

  @Test("The report of a cycle names both tasks")
  func report() {
    let issue = TaskSchedule.cycleIssue(nodes[0].id, of: ["path"], after: nodes[1].id)
    #expect(issue.kind == .scheduleCycle)
    #expect(issue.message.contains("\(nodes[0].id)"))
    #expect(issue.message.contains("\(nodes[1].id)"))
  }
}
