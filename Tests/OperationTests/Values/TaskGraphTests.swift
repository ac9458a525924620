import Testing

@testable import Operation

@Suite("TaskGraph") struct TaskGraphTests {
  private let nodes = (0..<6).map { _ in TaskNode(id: .next()) }

  private func dependency(_ index: Int) -> TaskDependency {
    TaskDependency(node: nodes[index]) {}
  }

  private func add(_ from: Int, after other: Int, to graph: inout TaskGraph) -> Bool {
    graph.add(dependency(other), to: nodes[from].id)
  }

  @Test("A task waits for those after which it was scheduled, in that order")
  func dependencies() {
    var graph = TaskGraph()
    #expect(add(0, after: 1, to: &graph))
    #expect(add(0, after: 2, to: &graph))
    #expect(graph.dependencies(of: nodes[0].id).map(\.node.id) == [nodes[1].id, nodes[2].id])
    #expect(graph.dependencies(of: nodes[1].id).isEmpty)
  }

  @Test("A task cannot wait for itself")
  func selfCycle() {
    var graph = TaskGraph()
    #expect(!add(0, after: 0, to: &graph))
    #expect(graph.isEmpty)
  }

  @Test("No chain of waits may come back to where it began", arguments: 2...6)
  func cycle(length: Int) {
    var graph = TaskGraph()
    for index in 0..<length - 1 { #expect(add(index, after: index + 1, to: &graph)) }
    #expect(!add(length - 1, after: 0, to: &graph))
    #expect(graph.dependencies(of: nodes[length - 1].id).isEmpty)
  }

  @Test("Two ways to one task are no cycle")
  func diamond() {
    var graph = TaskGraph()
    for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
      #expect(add(from, after: to, to: &graph))
    }
    #expect(!add(3, after: 0, to: &graph))
    #expect(add(4, after: 0, to: &graph))
  }

  @Test("A task that has ended waits for nobody, and others may wait where it did")
  func removal() {
    var graph = TaskGraph()
    #expect(add(0, after: 1, to: &graph))
    #expect(graph.remove(nodes[0].id)?.count == 1)
    #expect(graph.remove(nodes[0].id) == nil)
    #expect(graph.isEmpty)
    #expect(add(1, after: 0, to: &graph))
  }

  @Test("The report of a cycle names both tasks")
  func report() {
    let issue = TaskGraph.cycleIssue(nodes[0].id, after: nodes[1].id)
    #expect(issue.kind == .scheduleCycle)
    #expect(issue.message.contains("\(nodes[0].id)"))
    #expect(issue.message.contains("\(nodes[1].id)"))
  }
}
