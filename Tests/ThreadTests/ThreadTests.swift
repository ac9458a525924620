import LoopbackServer
import SharingOperation
import Synchronization
import Testing

@testable import thread

@Suite struct ThreadTests {
  @Test("A branch that is fetched with the thread waits for it, and is not overwritten by it")
  func parent() async throws {
    try await withThreads { client, lines async throws in
      let store = client.store(for: ThreadRequest(rootNodeId: 20).resilient)
      let top = Task.immediate { try await store.fetch() }
      let branch = Task.immediate { try await store.fetchTree(for: 21) }
      #expect(try await top.value.children.map(\.nodeId) == [21])
      #expect(try await branch.value.children.map(\.nodeId) == [22])
      #expect(store.currentValue?[id: 22]?.author == "Priya")
      #expect(
        lines.all == [
          "-> asking for comment 20", "<- comment 20, with 1 below it",
          "-> asking for comment 21", "<- comment 21, with 1 below it",
        ])
    }
  }

  @Test("A thread that is fetched again waits for the branch in flight")
  func child() async throws {
    try await withThreads { client, lines async throws in
      let store = client.store(for: ThreadRequest(rootNodeId: 20).resilient)
      try await store.fetch()
      let branch = Task.immediate { try await store.fetchTree(for: 21) }
      let top = Task.immediate { try await store.fetch() }
      _ = try await (branch.value, top.value)
      #expect(lines.all.filter { $0.hasPrefix("->") }.map { $0.suffix(2) } == ["20", "21", "20"])
      #expect(lines.all[3].hasPrefix("<- comment 21"))
    }
  }

  @Test("Branches that do not overlap do not wait for each other, and both are kept")
  func branches() async throws {
    try await withThreads { client, _ async throws in
      let store = client.store(for: ThreadRequest(rootNodeId: 1).resilient)
      try await store.fetch()
      let second = store.runTask(using: branch(2))
      let third = store.runTask(using: branch(3))
      try await third.runIfNeeded()
      // A wait for the second one would have started it.
      #expect(!second.hasStarted)
      try await second.runIfNeeded()
      #expect(store.currentValue?[id: 5] != nil && store.currentValue?[id: 7] != nil)
      #expect(store.currentValue?.unopened.map(\.nodeId) == [5, 7])
    }
  }

  @Test("A branch starts the one that it is part of, and waits for it")
  func branchOfBranch() async throws {
    try await withThreads { client, _ async throws in
      let store = client.store(for: ThreadRequest(rootNodeId: 1).resilient)
      try await store.fetch()
      try await store.fetchTree(for: 2)
      let second = store.runTask(using: branch(2))
      let fifth = store.runTask(using: branch(5))
      try await fifth.runIfNeeded()
      #expect(second.isFinished)
      #expect(store.currentValue?[id: 8] != nil)
    }
  }

  @Test("A failure does not change the tree, and a reset removes it")
  func failure() async throws {
    try await withThreads { client, _ async throws in
      let store = client.store(for: ThreadRequest(rootNodeId: 1))
      try await store.fetch()
      await #expect(throws: ThreadError(status: 404)) { try await store.fetchTree(for: 99) }
      #expect(store.currentValue?.children.count == 3)
      #expect(store.error as? ThreadError == ThreadError(status: 404))
      store.resetState()
      #expect(store.currentValue == nil && store.error == nil)
    }
  }

  @Test("A wrapper accepts a custom operation type")
  func wrapper() async throws {
    try await withThreads { client, _ async throws in
      @SharedQuery(ThreadRequest(rootNodeId: 20), client: client) var thread
      for await comment in $thread.values where comment != nil { break }
      #expect(thread?.author == "Priya")
    }
  }

  @Test("The story opens every comment of the thread")
  func story() async throws {
    try await withThreads { client, _ async throws in
      let printed = Lines()
      try await Story(client: client) { printed.add($0) }.run()
      for id in [1, 5, 8, 9, 10, 20, 21] {
        #expect(printed.all.contains { $0.hasPrefix("  ") && $0.contains("\(id) ") })
      }
      #expect(printed.all.contains("Everything below 2 and 3: side by side."))
      #expect(client.store(for: ThreadRequest(rootNodeId: 1)).currentValue?.unopened == [])
    }
  }

  private func branch(_ id: Int) -> OperationContext {
    var context = OperationContext()
    context.treeNode = id
    return context
  }

  private func withThreads(
    _ body: (OperationClient, Lines) async throws -> Void
  ) async throws {
    let server = LoopbackServer(
      router: Router(ThreadRoutes()), behaviour: ServerBehaviour(latency: .zero))
    try server.start()
    defer { server.stop() }
    let lines = Lines()
    var context = OperationContext()
    context.serverURL = server.baseURL
    context.report = { lines.add($0) }
    try await body(OperationClient(defaults: .testing, context: context), lines)
  }
}

/// Lines that any thread may append to.
private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
