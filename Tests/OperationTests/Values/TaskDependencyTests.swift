import Testing

@testable import Operation

/// A driver that counts the leases that are released.
private final class LeaseCounter: TaskDriver {
  let releases = Counter()

  func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool {
    true
  }
  func releaseLease(on id: OperationTaskID) { releases.increment() }
  func cancel(_ id: OperationTaskID) {}
}

@Suite("TaskDependency", .timeLimit(.minutes(5))) struct TaskDependencyTests {
  private let nodes = (0..<6).map { _ in TaskNode() }

  /// Makes one task wait for another one. Returns whether it does.
  private func add(_ from: Int, after other: Int) -> Bool {
    let old = nodes[from].dependencies.count
    let log = EventLog<OperationIssue>()
    OperationIssue.withHandler({ log.append($0) }) {
      nodes[from].addDependency(on: TaskDependency(node: nodes[other]) {})
    }
    let isAdded = nodes[from].dependencies.count > old
    #expect(log.values.map(\.kind) == (isAdded ? [] : [.scheduleCycle]))
    return isAdded
  }

  private func dependencies(of index: Int) -> [OperationTaskID] {
    nodes[index].confirmedDependencies.map(\.node.id)
  }

  @Test("A task waits for the tasks after which it was scheduled, in that order")
  func dependencies() {
    #expect(add(0, after: 1))
    #expect(add(0, after: 2))
    #expect(dependencies(of: 0) == [nodes[1].id, nodes[2].id])
    #expect(dependencies(of: 1).isEmpty)
  }

  @Test("A task cannot wait for itself")
  func selfCycle() {
    #expect(!add(0, after: 0))
    #expect(nodes[0].dependencies.isEmpty)
  }

  @Test("No chain of waits may return to its beginning", arguments: 2...6)
  func cycle(length: Int) {
    for index in 0..<length - 1 { #expect(add(index, after: index + 1)) }
    #expect(!add(length - 1, after: 0))
    #expect(nodes[length - 1].dependencies.isEmpty)
  }

  @Test("Two paths to one task are no cycle")
  func diamond() {
    for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] { #expect(add(from, after: to)) }
    #expect(!add(3, after: 0))
    #expect(add(4, after: 0))
  }

  @Test("A task that has ended waits for no other task, and other tasks may wait for it")
  func removal() {
    #expect(add(0, after: 1))
    nodes[0].end(with: Result<Int, any Error>.success(1).asOutput)
    #expect(nodes[0].dependencies.isEmpty)
    #expect(add(1, after: 0))
  }

  @Test("Where two chains are joined, only an edge that closes a cycle is refused")
  func joinedChains() {
    for (from, to) in [(0, 1), (3, 4), (1, 3), (2, 5), (5, 0)] { #expect(add(from, after: to)) }
    #expect(!add(4, after: 2))
    #expect(add(2, after: 4))
  }

  @Test("Of several edges, those that close no cycle are added, and the others are refused")
  func refusal() {
    #expect(add(0, after: 1))
    #expect([0, 2, 1].map { add(1, after: $0) } == [false, true, false])
    #expect(dependencies(of: 1) == [nodes[2].id])
  }

  @Test("Of two threads that schedule two tasks after each other, at least one finds the cycle")
  func bothAtOnce() async {
    for _ in 0..<500 {
      let pair = [TaskNode(), TaskNode()]
      let reported = await issues {
        await withTaskGroup(of: Void.self) { group in
          for index in 0..<2 {
            group.addTask {
              pair[index].addDependency(on: TaskDependency(node: pair[1 - index]) {})
            }
          }
        }
      }
      let added = pair.flatMap(\.confirmedDependencies).count
      #expect(added + reported.issues.count == 2)
      #expect(added < 2)
    }
  }

  @Test("A task that has waited does not wait for a successor that begins later")
  func laterSuccessor() async {
    let (successor, isPresent) = (nodes[2], Monitor(true))
    let next = TaskDependency(node: successor) { isPresent.update { $0 = false } }
    nodes[0].addDependency(
      on: TaskDependency(node: nodes[1], successor: { isPresent.value ? next : nil }) {})
    #expect(nodes[0].route(to: successor)?.count == 2)
    await nodes[0].waitForDependencies(nodes[0].confirmedDependencies)
    #expect(!isPresent.value)
    isPresent.update { $0 = true }
    #expect(nodes[0].route(to: successor) == nil)
  }

  @Test("A task does not wait for a successor that waits for it")
  func waitingSuccessor() async {
    let (isPresent, gate) = (Monitor(true), AsyncGate())
    let next = TaskDependency(node: nodes[2]) { isPresent.update { $0 = false } }
    nodes[0].addDependency(
      on: TaskDependency(node: nodes[1], successor: { isPresent.value ? next : nil }) {})
    nodes[0].addDependency(on: TaskDependency(node: nodes[3]) { await gate.wait() })
    nodes[2].addDependency(on: TaskDependency(node: nodes[0]) {})
    let waiting = Task { [nodes] in
      await nodes[0].waitForDependencies(nodes[0].confirmedDependencies)
    }
    // It still waits for another task.
    while nodes[0].route(to: nodes[2]) != nil { await Task.yield() }
    #expect(nodes[0].route(to: nodes[3]) != nil)
    gate.open()
    await waiting.value
    #expect(isPresent.value)
  }

  @Test("The lease on a task that was started for another one is released once")
  func lease() {
    let driver = LeaseCounter()
    nodes[0].addDependency(
      on: TaskDependency(node: TaskNode(driver: driver), start: { _ in true }) {})
    nodes[0].addDependency(
      on: TaskDependency(node: TaskNode(driver: driver), start: { _ in false }) {})
    #expect(nodes[0].startDependencies().count == 2)
    #expect(driver.releases.value == 0)
    for _ in 0..<2 { nodes[0].removeDependencies() }
    #expect(driver.releases.value == 1)
  }

  @Test("The lease is released if the waiter is cancelled while the task is started for it")
  func leaseOfCancelled() {
    let driver = LeaseCounter()
    let start = { @Sendable [nodes] (_: TaskPriority?) in
      nodes[0].cancelRun(with: nil)
      return true
    }
    nodes[0].addDependency(on: TaskDependency(node: TaskNode(driver: driver), start: start) {})
    _ = nodes[0].startDependencies()
    #expect(driver.releases.value == 1)
  }

  @Test("The lease is released if a successor waits for the waiter")
  func leaseBeforeSuccessor() async {
    let (driver, gate) = (LeaseCounter(), AsyncGate())
    let next = TaskDependency(node: nodes[2]) {}
    let node = TaskNode(driver: driver)
    nodes[0].addDependency(
      on: TaskDependency(node: node, successor: { next }, start: { _ in true }) {})
    nodes[0].addDependency(on: TaskDependency(node: nodes[3]) { await gate.wait() })
    nodes[2].addDependency(on: TaskDependency(node: nodes[0]) {})
    let waiting = Task { [nodes] in
      await nodes[0].waitForDependencies(nodes[0].startDependencies())
    }
    while driver.releases.value == 0 { await Task.yield() }
    #expect(driver.releases.value == 1)
    gate.open()
    await waiting.value
    #expect(driver.releases.value == 1)
  }

  @Test("A chain of any length is released with its end", arguments: [Int.max, 1_000, 2])
  func longChain(endedEvery step: Int) {
    weak var first: TaskNode?
    do {
      var next: TaskNode?
      for index in 0..<100_000 {
        let node = TaskNode()
        if let next { node.addDependency(on: TaskDependency(node: next) {}) }
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
  func report() async {
    nodes[0].addDependency(on: TaskDependency(node: nodes[1]) {})
    let issue = await issues {
      nodes[1].addDependency(on: TaskDependency(node: nodes[0]) {})
    }.issues.first
    #expect(issue?.kind == .scheduleCycle)
    for node in nodes[0...1] { #expect(issue?.message.contains("\(node.id)") == true) }
  }
}
