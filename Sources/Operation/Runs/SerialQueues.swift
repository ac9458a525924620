import Synchronization

/// The queues of the serialized and limited runs of a client: in each scope as many runs as its limit
/// are in flight.
///
/// One lock guards the machine. Continuations are resumed without it.
final class SerialQueues: Sendable {
  private typealias Continuation = CheckedContinuation<Void, Never>

  private let machine = Mutex(SerialQueuesMachine<Continuation>())

  /// Appends a run to the queue of a scope.
  ///
  /// The caller does this, and not the task of the run, because tasks do not begin in the order in
  /// which they were made.
  func append(_ run: TaskNode, to scope: SerialScope) {
    machine.withLock { $0.append(run, to: scope) }
  }

  /// Returns the run that all others of a scope wait for; `nil` if there can be several.
  func currentRun(in scope: SerialScope) -> TaskNode? {
    machine.withLock { $0.currentRun(in: scope) }
  }

  /// Returns how many of some runs wait in the queue of a scope.
  func waitingCount(of ids: [OperationTaskID], in scope: SerialScope) -> Int {
    machine.withLock { $0.waitingCount(of: ids, in: scope) }
  }

  /// Removes a run from the queue of a scope: it has ended, or is not needed any more. If it was
  /// a current run, the next one can begin.
  func remove(_ id: OperationTaskID, from scope: SerialScope) {
    let departure = machine.withLock { $0.remove(id, from: scope) }
    departure.own?.resume()
    departure.next.forEach { $0.resume() }
    withExtendedLifetime(departure) {}
  }

  /// Waits until a queued run is a current one of its queue, or has left it.
  ///
  /// - Parameter isOver: Returns whether a cancelled run has ended already, and leaves the queue at
  ///   once. Otherwise it has to call its request, and waits.
  nonisolated(nonsending) func wait(
    for id: OperationTaskID, in scope: SerialScope, isOver: @Sendable () -> Bool
  ) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        machine.withLock { $0.wait(for: id, in: scope, waiter: continuation) }?.resume()
      }
    } onCancel: {
      if isOver() { remove(id, from: scope) }
    }
  }
}
