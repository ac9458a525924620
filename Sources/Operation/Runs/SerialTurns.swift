import Synchronization

/// Gives the runs of a scope their turns, one after the other.
///
/// The lock guards the machine; continuations are resumed without it.
final class SerialTurns: Sendable {
  private typealias Continuation = UnsafeContinuation<Void, Never>

  private let machine = Mutex(SerialTurnsMachine<Continuation>())

  init() {}

  /// Takes a place in the line of a scope. It is taken by the caller and not in the task of the
  /// run, because tasks do not begin in the order in which they were made.
  func enter(_ scope: SerialScope, _ id: OperationTaskID) {
    machine.withLock { $0.enter(scope, id) }
  }

  /// Gives a place in the line back.
  func leave(_ scope: SerialScope, _ id: OperationTaskID) {
    pass { $0.leave(scope, id) }
  }

  /// Lets the next one in the line go on, and releases scopes that are there no more.
  private func pass(
    _ transition: (inout SerialTurnsMachine<Continuation>) -> Continuation?
  ) {
    let (next, dropped) = machine.withLock { (transition(&$0), $0.takeDropped()) }
    next?.resume()
    withExtendedLifetime(dropped) {}
  }

  /// Waits for the turn of a run that is in the line. A cancelled run takes its turn, too: it has
  /// to end after those before it.
  nonisolated(nonsending) func wait(for scope: SerialScope, _ id: OperationTaskID)
    async
  {
    await withUnsafeContinuation { continuation in
      if machine.withLock({ $0.wait(for: scope, id, waiter: continuation) }) {
        continuation.resume()
      }
    }
  }

  func end(_ scope: SerialScope, _ id: OperationTaskID) {
    pass { $0.end(scope, id) }
  }
}
