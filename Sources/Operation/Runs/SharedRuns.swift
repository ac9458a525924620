import ReactiveStreams
import Synchronization

/// The runs that copies of one request share when they run without a store.
///
/// The lock guards the table of runs. Requests, continuations and cancellations are outside of it.
final class SharedRuns<Value: Sendable, Failure: Error>: TaskDriver {
  typealias Continuation = OperationContinuation<Value, Failure>
  typealias Body = nonisolated(nonsending) @Sendable (Continuation) async -> Result<Value, Failure>
  private typealias Table = RunTable<Value, Failure, WaitList<Continuation>>

  private let table = Mutex(Table())

  /// Joins a run that is the same, or starts one. The caller holds a lease.
  ///
  /// - Parameter caller: Identifies the continuation, see ``leave(_:_:)``.
  func join(
    _ context: OperationContext, rule: Deduplication, caller: OperationTaskID,
    continuation: Continuation, path: OperationPath?, body: @escaping Body
  ) -> TaskCore<Value, Failure> {
    let core = TaskCore<Value, Failure>(TaskNode(driver: self, path: path))
    let task = OperationTask(core, box: .init(context))
    // It calls the user's code, which must not run under the lock.
    _ = context.valuesHash
    var verdict: RunVerdict?
    while true {
      let admission = table.withLock { [verdict] table in
        let admission = table.admit(context, rule: rule, verdict: verdict)
        switch admission {
        case .compare: break
        case .join(let shared):
          table.update(shared.id) {
            $0.awaiters += 1
            $0.payload.insert(continuation, for: caller)
          }
        case .new:
          var record = Table.Record(
            task: task, awaiters: 1, isStarted: true, payload: WaitList())
          record.payload.insert(continuation, for: caller)
          table.insert(record)
        }
        return admission
      }
      switch admission {
      case .compare(let candidates): verdict = rule.verdict(on: context, among: candidates)
      case .join(let shared):
        shared.node.escalate()
        return shared
      case .new:
        launch(core, in: context, body)
        return core
      }
    }
  }

  /// Forgets the continuation of a caller that has returned.
  func leave(_ run: OperationTaskID, _ caller: OperationTaskID) {
    withExtendedLifetime(table.withLock { $0.update(run) { $0.payload.remove(caller) } }) {}
  }

  private func launch(
    _ core: TaskCore<Value, Failure>, in context: OperationContext, _ body: @escaping Body
  ) {
    _ = core.node.start()
    let all = Continuation { [self] result in
      let continuations = table.withLock { $0[core.id]?.payload }
      continuations?.forEach { $0.yield(with: result) }
    }
    core.node.attach(
      Task.make(on: context.executor) { [self] in
        core.node.beginRequest()
        let output = await CurrentWork.$value.withValue(core.node) { await body(all) }
        core.node.endRequest()
        let record = table.withLock { $0.remove(core.id) }
        core.end(with: output)
        withExtendedLifetime(record) {}
      })
  }

  func releaseLease(on id: OperationTaskID) {
    let record = table.withLock { table in
      table.update(id) { $0.awaiters -= 1 }
      return table.removeIfFree(id, observerCount: 0)
    }
    record?.core.cancelRun()
  }
}
