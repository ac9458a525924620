import ReactiveStreams
import Synchronization

/// Something that happens once, or is given up, and that one task waits for.
///
/// The lock guards the state; the continuation is resumed without it.
final class OneShot: Sendable {
  private enum State: Sendable {
    case open
    case waiting(UnsafeContinuation<Bool, Never>)
    case done(Bool)
  }

  private let state = Mutex(State.open)

  /// It has happened, or will not; what came first counts.
  func finish(_ hasHappened: Bool) {
    let waiter = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
      switch state {
      case .done: return nil
      case .open:
        state = .done(hasHappened)
        return nil
      case .waiting(let waiter):
        state = .done(hasHappened)
        return waiter
      }
    }
    waiter?.resume(returning: hasHappened)
  }

  /// Waits, and tells whether it has happened; it has not if the task is cancelled before.
  nonisolated(nonsending) func wait() async -> Bool {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let result = state.withLock { state -> Bool? in
          if case .done(let hasHappened) = state { return hasHappened }
          state = .waiting(continuation)
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      finish(false)
    }
  }
}

/// Waits until something holds that may change with every call of what `subscribe` is given; tells
/// whether it does, which it does not if the task is cancelled before.
nonisolated(nonsending) func wait(
  until holds: @escaping @Sendable () -> Bool,
  changes subscribe: (@escaping @Sendable () -> Void) -> OperationSubscription
) async -> Bool {
  if holds() { return !Task.isCancelled }
  let shot = OneShot()
  let subscription = subscribe { if holds() { shot.finish(true) } }
  if holds() { shot.finish(true) }
  defer { subscription.cancel() }
  return await shot.wait()
}
