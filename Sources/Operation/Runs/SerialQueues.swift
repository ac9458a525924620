import Synchronization

/// The queues of the serialized runs of a client: in each scope one run after the other is in flight.
///
/// The lock guards the machine. Continuations are resumed without it.
final class SerialQueues: Sendable {
  private typealias Continuation = UnsafeContinuation<Void, Never>

  private let machine = Mutex(SerialQueuesMachine<Continuation>())

  /// Appends a run to the queue of a scope.
  ///
  /// The caller does this, and not the task of the run, because tasks do not begin in the order in
  /// which they were made.
  func append(_ id: OperationTaskID, to scope: SerialScope) {
    machine.withLock { $0.append(id, to: scope) }
  }

  /// Removes a run from the queue of a scope before it has waited.
  func remove(_ id: OperationTaskID, from scope: SerialScope) {
    resumeNext { $0.remove(id, from: scope) }
  }

  /// Waits until a queued run is the first of its queue.
  ///
  /// A cancelled run waits, too: it has to end after those before it.
  nonisolated(nonsending) func wait(for id: OperationTaskID, in scope: SerialScope) async {
    await withUnsafeContinuation { continuation in
      if machine.withLock({ $0.wait(for: id, in: scope, waiter: continuation) }) {
        continuation.resume()
      }
    }
  }

  /// Ends a run, so that the next one of the queue can begin.
  func end(_ id: OperationTaskID, in scope: SerialScope) { resumeNext { $0.end(id, in: scope) } }

  private func resumeNext(
    _ transition: (inout SerialQueuesMachine<Continuation>) -> Continuation?
  ) {
    let (next, dropped) = machine.withLock { (transition(&$0), $0.takeDropped()) }
    next?.resume()
    withExtendedLifetime(dropped) {}
  }
}
