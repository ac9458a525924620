import Synchronization

/// Gives the runs of a scope their turns, one after the other.
///
/// The lock guards the machine; continuations are resumed without it.
final class SerialTurns: Sendable {
  private let machine = Mutex(SerialTurnsMachine<UnsafeContinuation<Void, Never>>())

  init() {}

  /// Waits for the turn of a run. A cancelled run takes its turn, too: it has to end after those
  /// before it.
  nonisolated(nonsending) func wait(for scope: SerialScope, _ id: OperationTaskID) async {
    await withUnsafeContinuation { continuation in
      if machine.withLock({ $0.wait(for: scope, id, waiter: continuation) }) {
        continuation.resume()
      }
    }
  }

  func end(_ scope: SerialScope, _ id: OperationTaskID) {
    machine.withLock { $0.end(scope, id) }?.resume()
  }
}
