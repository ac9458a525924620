/// A wait of the current run for another one. It is noted first, and then the other run must not wait for
/// the current one: of the waits that form a cycle, the last one that is noted finds all others.
struct RunWait: Sendable {
  private let id: OperationTaskID
  private let awaiter: TaskNode
  /// The cycle that the wait closes, so that it must not begin.
  let cycle: OperationDependencyError?

  init?(for run: TaskNode) {
    guard let awaiter = TaskNode.currentInRequest, !run.progress.isEnded else { return nil }
    self.awaiter = awaiter
    id = .next()
    awaiter.note(id, for: run)
    cycle = run.cycle(closedBy: awaiter)
  }

  func end() { awaiter.endWait(id) }
}

extension OperationDependencyError {
  /// Runs of one store, of which one waits for the other, are one reader.
  static func cycle(through runs: [TaskNode]) -> OperationDependencyError {
    .cycle(
      runs.compactMap(\.path).reduce(into: []) { paths, path in
        if path != paths.last { paths.append(path) }
      })
  }
}
