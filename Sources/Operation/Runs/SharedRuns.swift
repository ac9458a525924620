import Synchronization

/// The runs that copies of one request share when they run without a store.
///
/// The lock guards the table of runs; requests, continuations and cancellations are outside.
final class SharedRuns<Value: Sendable, Failure: Error>: TaskDriver {
  typealias Continuation = OperationContinuation<Value, Failure>
  private typealias Table = RunTable<Value, Failure, [Continuation]>

  private enum Step: Sendable {
    case ask([Table.Candidate])
    case joined(TaskCore<Value, Failure>)
    case started
  }

  private let table = Mutex(Table())

  /// Joins the run that is the same, or starts one; the caller holds a lease.
  func join(
    _ context: OperationContext, rule: Deduplication, continuation: Continuation,
    body:
      nonisolated(nonsending) @escaping @Sendable (Continuation) async -> Result<Value, Failure>
  ) -> TaskCore<Value, Failure> {
    let core = TaskCore<Value, Failure>(driver: self)
    var verdict: Table.Verdict?
    while true {
      let step = table.withLock { [verdict] in
        Self.step(in: &$0, core, context, rule, verdict, continuation)
      }
      switch step {
      case .ask(let candidates):
        verdict = rule.verdict(on: context, among: candidates)
      case .joined(let shared):
        return shared
      case .started:
        launch(core, body)
        return core
      }
    }
  }

  private static func step(
    in table: inout Table, _ core: TaskCore<Value, Failure>, _ context: OperationContext,
    _ rule: Deduplication, _ verdict: Table.Verdict?, _ continuation: Continuation
  ) -> Step {
    switch table.admit(context, rule: rule, verdict: verdict) {
    case .ask(let candidates):
      return .ask(candidates)
    case .join(let shared):
      table.update(shared.id) {
        $0.awaiters += 1
        $0.payload.append(continuation)
      }
      return .joined(shared)
    case .new:
      table.insert(
        Table.Record(
          task: OperationTask(core, box: .init(context)), awaiters: 1, isStarted: true,
          payload: [continuation]))
      return .started
    }
  }

  private func launch(
    _ core: TaskCore<Value, Failure>,
    _ body:
      nonisolated(nonsending) @escaping @Sendable (Continuation) async -> Result<Value, Failure>
  ) {
    _ = core.node.start()
    let all = Continuation { [self] result in
      let listeners = table.withLock { $0[core.id]?.payload }
      for listener in listeners ?? [] { listener.yield(with: result) }
    }
    core.node.attach(
      Task {
        let output = await body(all)
        let record = table.withLock { $0.remove(core.id) }
        core.end(with: output)
        withExtendedLifetime(record) {}
      })
  }

  /// Every run was started when it was made.
  func enter(
    _ task: TaskNode, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool {
    if onlyToStart { return false }
    table.withLock { $0.update(task.id) { $0.awaiters += 1 } }
    return true
  }

  func leave(_ id: OperationTaskID) {
    let record = table.withLock { table in
      table.update(id) { $0.awaiters -= 1 }
      return table.removeIfFree(id, observerCount: 0)
    }
    record?.core.cancelRun()
  }

  func cancel(_ id: OperationTaskID) {
    table.withLock { $0.remove(id) }?.core.cancelRun()
  }
}
