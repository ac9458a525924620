import ReactiveStreams
import Synchronization

/// A value that is set once, and that one task waits for.
///
/// The lock guards the state. The continuation is resumed without it.
final class OneShot<Value: Sendable>: Sendable {
  private enum State: Sendable {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case finished(Value)
  }

  private let state = Mutex(State.open)

  /// Whether there is no value yet.
  var isOpen: Bool { state.withLock { if case .finished = $0 { false } else { true } } }

  /// Sets the value. Later calls have no effect.
  func finish(_ value: Value) {
    let old = state.withLock { state in
      if case .finished = state { return state }
      return exchange(&state, with: .finished(value))
    }
    if case .waiting(let waiter) = old { waiter.resume(returning: value) }
  }

  /// Waits for the value.
  ///
  /// - Parameter onCancel: Called when the task is cancelled. Returns the value, unless it is set
  ///   already.
  nonisolated(nonsending) func wait(onCancel: @Sendable () -> Value) async -> Value {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result = state.withLock { state -> Value? in
          if case .finished(let value) = state { return value }
          state = .waiting(continuation)
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      finish(onCancel())
    }
  }
}

extension OneShot<Bool> {
  /// Waits, and returns whether an event has occurred; `false` if the task is cancelled first.
  nonisolated(nonsending) func wait() async -> Bool { await wait { false } }
}

/// Waits until a condition holds; returns `false` if the task is cancelled first.
///
/// - Parameters:
///   - holds: The condition. It is called on any thread.
///   - subscribe: Subscribes a closure that is called whenever the condition may have changed.
nonisolated(nonsending) func wait(
  until holds: @escaping @Sendable () -> Bool,
  changes subscribe: (@escaping @Sendable () -> Void) -> OperationSubscription
) async -> Bool {
  if holds() { return !Task.isCancelled }
  let shot = OneShot<Bool>()
  let subscription = subscribe { if holds() { shot.finish(true) } }
  if holds() { shot.finish(true) }
  defer { subscription.cancel() }
  return await shot.wait()
}
