import SharingOperation

/// Reads two threads of comments, and prints what happens.
struct Story: Sendable {
  let client: OperationClient
  let write: @Sendable (String) -> Void

  func run() async throws {
    write("The top of a thread: one fetch.")
    let tools = client.store(for: ThreadRequest(rootNodeId: 1).resilient)
    try await tools.fetch()
    show(tools.currentValue)

    while let branches = tools.currentValue?.unopened, !branches.isEmpty {
      write("")
      write("Everything below \(list(branches)): side by side.")
      try await open(branches, in: tools)
      show(tools.currentValue)
    }

    write("")
    write("A branch that is asked for with the thread: it waits for what is above it.")
    let bees = client.store(for: ThreadRequest(rootNodeId: 20).resilient)
    // Immediate, so that the thread is fetched first.
    let top = Task.immediate { try await bees.fetch() }
    let branch = Task.immediate { try await bees.fetchTree(for: 21) }
    write("   \(bees.activeTasks.count) fetches are in the state of the store")
    _ = try await (top.value, branch.value)
    show(bees.currentValue)
  }

  /// Fetches the replies below each of some comments. No two of them contain each other, so no run
  /// waits.
  private func open(
    _ branches: [Comment], in store: OperationStore<ThreadRequest.State>
  ) async throws {
    try await withThrowingTaskGroup { group in
      for branch in branches {
        // Immediate, so that they are fetched in this order.
        group.addImmediateTask { _ = try await store.fetchTree(for: branch.nodeId) }
      }
      try await group.waitForAll()
    }
  }

  private func list(_ comments: [Comment]) -> String {
    comments.map { String($0.nodeId) }.joined(separator: " and ")
  }

  private func show(_ comment: Comment?, indent: String = "  ") {
    guard let comment else { return }
    write("\(indent)\(comment.nodeId) \(comment.author): \(comment.text)")
    let hidden = comment.replyCount - comment.children.count
    if hidden > 0 { write("\(indent)  ... \(hidden) more") }
    for child in comment.children { show(child, indent: indent + "  ") }
  }
}
